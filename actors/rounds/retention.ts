/**
 * Owns forgetting what nobody needs any more: finished deliveries with their log, refused calls, subscriptions of deleted workers, and idempotency keys
 * past their time. Every
 * round is bounded; several nodes may do this at the same time and skip what another is at.
 */
import type { Clock } from '../../model/clock.ts'
import { idempotencyLifetime } from '../../model/idempotency.ts'
import type { Log } from '../../model/log.ts'
import { forgetRefusals } from '../../store/call-refusals.ts'
import { forgetSubscriptionsOfDeleted } from '../../store/delete-worker.ts'
import { forgetDeliveries } from '../../store/delivery-log.ts'
import { forgetIdempotencyKeys } from '../../store/idempotency.ts'
import type { Sql } from '../../store/sql.ts'
import { createRounds, type Rounds } from './rounds.ts'

export const retentionEvery = 600_000
/** Ms. docs/contract/rest.md "Call refusals". */
const refusalsKept = 30 * 24 * 3_600_000
/** Ms. Longer than an event is tried again for. */
const subscriptionsKept = 3 * 24 * 3_600_000
const batchSize = 1_000
/** Bounds what one round deletes, so that a busy disk serves calls first. */
const batchesPerRound = 100

/** `keep` is how long, ms since their creation. */
export function createRetention(deps: {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly keep: { readonly deliveries: number }
}): Rounds {
  const { sql, clock, log, keep } = deps
  let closed = false

  async function forgetAll(forget: (limit: number) => Promise<number>): Promise<number> {
    let forgotten = 0
    for (let batch = 0; batch < batchesPerRound && !closed; batch += 1) {
      const count = await forget(batchSize)
      forgotten += count
      if (count < batchSize) break
    }
    return forgotten
  }
  async function look(): Promise<boolean> {
    const now = clock.now()
    const deliveries = await forgetAll((limit) => forgetDeliveries(sql, now - keep.deliveries, limit))
    await forgetAll((limit) => forgetRefusals(sql, now - refusalsKept, limit))
    await forgetAll((limit) => forgetSubscriptionsOfDeleted(sql, now - subscriptionsKept, limit))
    await forgetAll((limit) => forgetIdempotencyKeys(sql, now - idempotencyLifetime, limit))
    if (deliveries > 0) log.info('old deliveries forgotten', { deliveries })
    return false
  }
  const rounds = createRounds({ clock, log, every: retentionEvery, look })
  return {
    ...rounds,
    close() {
      closed = true
      return rounds.close()
    },
  }
}
