/** Owns the second table of `npm run bench growth`: how long removals take, and how long steps of running calls and claims wait meanwhile. */
import type { NewId, PersonId, TrunkId } from '../../model/ids.ts'
import { systemClock } from '../../app/clock.ts'
import { claimDue, enqueueDeliveries } from '../../store/deliveries.ts'
import { deletePerson } from '../../store/persons.ts'
import type { Sql } from '../../store/sql.ts'
import { deleteSubscription } from '../../store/subscriptions.ts'
import { createTrunks } from '../../store/trunks.ts'
import type { Grown } from './growth-fill.ts'
import { quantile } from './table.ts'

type Measured = { readonly sql: Sql; readonly grown: Grown; readonly newId: NewId }

export async function measureRemovals(measured: Measured): Promise<Record<string, string>[]> {
  const { sql, grown, newId } = measured
  const { accountId, finished } = grown
  const trunks = createTrunks({ sql, box: null as never, clock: systemClock, newId })
  const removals: Record<string, () => Promise<unknown>> = {
    'a person': () => deletePerson(sql, accountId, 'person' as PersonId),
    'a trunk': () => trunks.remove(accountId, 'trunk' as TrunkId),
    'a subscription': () => deleteSubscription(sql, accountId, finished),
  }
  const rows = []
  for (const [what, work] of Object.entries(removals)) rows.push(await timed(measured, what, work))
  return rows
}

async function timed(
  { sql, grown, newId }: Measured,
  what: string,
  work: () => Promise<unknown>,
): Promise<Record<string, string>> {
  const { accountId, workerId, running } = grown
  const [steps, claims]: [number[], number[]] = [[], []]
  let isOver = false
  const meanwhile = async (took: number[], act: () => Promise<unknown>): Promise<void> => {
    while (!isOver) {
      const began = performance.now()
      await act()
      took.push(performance.now() - began)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const step = (): Promise<unknown> => {
    const callId = running[steps.length % running.length] ?? newId<'call'>()
    const data = { callId, status: 'in_progress', providerStatus: null, ts: '' } as const
    const batch = {
      accountId,
      workerId,
      callId,
      events: [{ type: 'call.status_update', data }] as const,
      now: Date.now(),
      newId,
    }
    return sql.begin((tx) => enqueueDeliveries(tx, batch))
  }
  const claim = (): Promise<unknown> =>
    claimDue(sql, {
      nodeId: newId<'node'>(),
      now: Date.now(),
      limit: 8,
      lease: 1_000,
      perSubscription: 8,
      rooms: new Map(),
    })
  const beside = Promise.all([meanwhile(steps, step), meanwhile(claims, claim)])
  const began = performance.now()
  await work()
  const all = performance.now() - began
  isOver = true
  await beside
  const ms = (took: number[]): string => `${quantile(took, 0.5).toFixed(1)} / ${Math.max(...took).toFixed(1)}`
  return {
    removal: what,
    seconds: (all / 1000).toFixed(2),
    'a step, p50 / most ms': ms(steps),
    'a claim, p50 / most ms': ms(claims),
  }
}
