/** Owns the route by which the console examines a trunk: what its settings say together, and what its gateways answer to a telephone edge. */
import type { Bus } from '../../model/bus.ts'
import { BusNoResponders } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import type { AccountId, TrunkId } from '../../model/ids.ts'
import { notFound } from '../../model/problem.ts'
import {
  examinedWithin,
  examineSubject,
  settingChecksOf,
  TrunkChecks,
  type TrunkCheck,
} from '../../model/trunk-check.ts'
import type { Trunks } from '../../model/trunk.ts'
import type { Sql } from '../../store/sql.ts'
import { listWorkers } from '../../store/workers.ts'
import { idOf } from '../authenticate.ts'
import type { Api } from '../deps.ts'
import { createActing, type ActingDeps } from './acting.ts'

type Deps = ActingDeps & {
  readonly sql: Sql
  readonly bus: Pick<Bus, 'request'>
  readonly trunks: Pick<Trunks, 'find'>
}

/** Ms for the way there and back. */
const onTheWay = 2_000

export function addTrunkExamination(app: Api, deps: Deps): void {
  const acting = createActing(deps, 'manage')
  app.post(
    '/console/accounts/:accountId/trunks/:trunkId/examination',
    acting(
      'trunk.examine',
      (c) => ({ arguments: { trunkId: c.req.param('trunkId') ?? '' } }),
      async (c, { accountId }) => ({
        checks: await examine(deps, accountId, idOf<'trunk'>(c.req.param('trunkId') ?? '')),
      }),
    ),
  )
}

async function examine({ sql, bus, trunks }: Deps, accountId: AccountId, trunkId: TrunkId): Promise<TrunkCheck[]> {
  const trunk = await trunks.find(accountId, trunkId)
  if (!trunk) throw notFound()
  const workers = (await listWorkers(sql, accountId)).filter(({ id }) => trunk.workerIds.includes(id))
  const own = settingChecksOf(trunk, workers)
  if (trunk.direction === 'inbound') return [...own]
  return [...own, ...(await askEdge(bus, { accountId, trunkId }))]
}

async function askEdge(
  bus: Pick<Bus, 'request'>,
  asked: { readonly accountId: AccountId; readonly trunkId: TrunkId },
): Promise<readonly TrunkCheck[]> {
  try {
    const answer = await bus.request(examineSubject, toBytes(asked), { timeout: examinedWithin + onTheWay })
    const checks = TrunkChecks.safeParse(fromBytes(answer)).data?.checks
    return (
      checks ?? [unasked('it is busy, or could not look', 'try again in a moment; the log of the service tells more')]
    )
  } catch (error) {
    return error instanceof BusNoResponders
      ? [unasked('no process of the service speaks SIP', 'the operator switches it on by SIP=on')]
      : [unasked('no answer in time', 'try again in a moment')]
  }
}

const unasked = (got: string, mend: string): TrunkCheck => ({
  name: 'the telephone edge looks',
  verdict: 'failed',
  expected: 'what the gateways answer',
  got,
  mend,
})
