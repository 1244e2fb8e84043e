/** Owns for whom a tool works: the worker, the call when one is named, and who is on the line. Nothing of another account gets in. */
import { callerProofOf } from '../../model/caller-proof.ts'
import { toId, type AccountId, type WorkerId } from '../../model/ids.ts'
import { Problem } from '../../model/problem.ts'
import type { ToolCaller } from '../../model/tool.ts'
import { accountDefaultsOf, effectiveConfigOf, type WorkerConfig } from '../../model/worker.ts'
import { findAccount } from '../../store/accounts.ts'
import { findPerson, findPersonByPhone } from '../../store/persons.ts'
import type { Sql } from '../../store/sql.ts'
import { findCallAtHand, type CallAtHand } from '../../store/tool-calls.ts'
import { findWorker } from '../../store/workers.ts'
import type { CallerIdentity, ToolContext } from './worker-tool.ts'

type Asked = { readonly accountId: AccountId; readonly workerId: WorkerId; readonly caller: ToolCaller }

/** Throws Problem: NOT_FOUND without the worker, VALIDATION_FAILED (`phoneCallId`) for what is no call of it. */
export async function findToolContext(sql: Sql, { accountId, workerId, caller }: Asked): Promise<ToolContext> {
  // A caller waits for it.
  const [worker, account, found] = await Promise.all([
    findWorker(sql, accountId, workerId),
    findAccount(sql, accountId),
    findCall(sql, { accountId, workerId }, caller.phoneCallId),
  ])
  if (!worker) throw new Problem('NOT_FOUND', 'The worker does not exist.')
  const call = caller.phoneCallId === undefined ? null : required(found)
  return {
    accountId,
    worker,
    config: effectiveConfigOf(accountDefaultsOf(account?.config ?? {}), worker.config, ...layersOf(call)),
    language: call?.hookAnswer.locale ?? call?.request.locale ?? worker.language,
    call,
    caller: await identify(sql, accountId, call, caller.customerPhone ?? null),
  }
}

async function findCall(
  sql: Sql,
  owner: { readonly accountId: AccountId; readonly workerId: WorkerId },
  phoneCallId: string | undefined,
): Promise<CallAtHand | null> {
  const callId = phoneCallId === undefined ? null : toId<'call'>(phoneCallId)
  return callId && findCallAtHand(sql, { ...owner, callId })
}

const layersOf = (call: CallAtHand | null): WorkerConfig[] => [
  call?.request.config ?? {},
  call?.hookAnswer.config ?? {},
]

function required(call: CallAtHand | null): CallAtHand {
  if (call) return call
  throw new Problem('VALIDATION_FAILED', 'The call does not exist.', [
    { path: 'phoneCallId', message: 'must be a call of the worker' },
  ])
}

/** What the call knows goes before `customerPhone`. */
async function identify(
  sql: Sql,
  accountId: AccountId,
  call: CallAtHand | null,
  customerPhone: string | null,
): Promise<CallerIdentity | null> {
  const shown = call && numberOf(call)
  const number = shown ?? customerPhone
  const linked = call?.personId ? await findPerson(sql, accountId, call.personId) : null
  const person = linked ?? (number === null ? null : await findPersonByPhone(sql, accountId, number))
  const customer = call?.customer ?? null
  if (number === null && person === null && customer === null) return null
  // A number that the account names itself is its own word, also for a call that shows none.
  const isNamed = customerPhone !== null && shown === null && linked === null
  return { number, person, customer, proof: call && !isNamed ? callerProofOf(call) : null }
}

/** Of the other side. A browser has none, whatever its row says. */
function numberOf({ transport, direction, fromNumber, toNumber, customer }: CallAtHand): string | null {
  const dialed = direction === 'inbound' ? fromNumber : toNumber
  return (transport === 'webrtc' ? null : dialed) ?? customer?.phoneNumber ?? null
}
