/** Owns how far a tool reaches: everything of the account, or the one worker that was granted. What is out of reach is what does not exist. */
import { toId, type Id, type WorkerId } from '../../model/ids.ts'
import type { McpAccess } from '../../model/mcp-access.ts'
import { Problem } from '../../model/problem.ts'

export const reachesAll = ({ scopes }: Pick<McpAccess, 'scopes'>): boolean => scopes.includes('account_admin')

export const reachesWorker = (access: McpAccess, workerId: WorkerId): boolean =>
  reachesAll(access) || access.workerId === workerId

/** `argument` names it, `what` says it: `worker_id` and `worker`. */
export const noSuch = (argument: string, what: string): Problem =>
  new Problem('NOT_FOUND', `There is no such ${what}.`, [
    { path: argument, message: `must be the id of a ${what} of the account` },
  ])

/** Throws Problem NOT_FOUND for a text that is no id. */
export function idGiven<Kind extends string>(given: string, argument: string, what: string): Id<Kind> {
  const id = toId<Kind>(given)
  if (id === null) throw noSuch(argument, what)
  return id
}

/** Throws the same for a worker that is out of reach. */
export function workerGiven(access: McpAccess, given: string): WorkerId {
  const id = idGiven<'worker'>(given, 'worker_id', 'worker')
  if (!reachesWorker(access, id)) throw noSuch('worker_id', 'worker')
  return id
}
