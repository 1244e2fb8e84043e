/**
 * Owns writing down what attempts led to: what has come in while one batch was being written is the next batch. How many may wait is bounded
 * by the lanes, which are free only when their attempt is recorded.
 */
import type { Clock } from '../../model/clock.ts'
import type { SubscriptionId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import { retry } from '../../model/retry.ts'
import { findEnabled, recordAttempts, type AttemptRecord } from '../../store/delivery-verdicts.ts'
import type { Sql } from '../../store/sql.ts'
import { judgeEndpoints } from '../../store/subscriptions.ts'
import { newsLifetime } from './verdict.ts'

/** What it says about the endpoint; null: nothing, nobody was asked. */
export type Endpoint = 'answers' | 'fails' | 'gone' | null

export type Attempted = {
  readonly record: AttemptRecord
  readonly subscriptionId: SubscriptionId
  /** That was asked. */
  readonly url: string
  readonly endpoint: Endpoint
}

export type AttemptRecorder = {
  /** Resolves when it is written. Tries again while the database is away, until `signal`. Never throws. */
  record(attempted: Attempted, signal: AbortSignal): Promise<void>
}

/** Without one success for so long, a subscription is switched off. docs/contract/webhooks.md "Retries". */
export const failingLimit = 3 * 24 * 3_600_000
const batchSize = 256
const recordTries = 20
const recordPause = 1_000

type Waiting = { readonly attempted: Attempted; readonly signal: AbortSignal; readonly done: () => void }

export function createAttemptRecorder(deps: { sql: Sql; clock: Clock; log: Log }): AttemptRecorder {
  const { clock, log } = deps
  let waiting: Waiting[] = []
  let writing = false

  async function writeAll(): Promise<void> {
    if (writing) return
    writing = true
    // What is already on its way in comes into the same batch.
    await new Promise(setImmediate)
    while (waiting.length > 0) {
      const batch = waiting.slice(0, batchSize)
      waiting = waiting.slice(batchSize)
      await persist(batch)
      for (const { done } of batch) done()
    }
    writing = false
  }
  /** A 2xx that is not written down means a second delivery: worth several tries. */
  async function persist(batch: readonly Waiting[]): Promise<void> {
    const attempts = batch.map(({ attempted }) => attempted)
    const signal = batch[0]?.signal
    const wait = (error: unknown, tries: number): number | null => {
      log.error('delivery attempts could not be recorded', { error, count: attempts.length, tries })
      return tries < recordTries ? recordPause : null
    }
    // What is given up has been logged; the deliveries are due again when their claim has run out.
    await retry({ clock, wait, signal }, () => write(deps, attempts)).catch(() => {})
  }

  return {
    record: (attempted, signal) =>
      new Promise((done) => {
        waiting.push({ attempted, signal, done })
        void writeAll()
      }),
  }
}

async function write({ sql, clock, log }: { sql: Sql; clock: Clock; log: Log }, attempts: readonly Attempted[]) {
  const now = clock.now()
  const of = (endpoint: Endpoint): Set<SubscriptionId> =>
    new Set(attempts.filter((attempted) => attempted.endpoint === endpoint).map(({ subscriptionId }) => subscriptionId))
  const succeeded = of('answers')
  const failed = of('fails').difference(succeeded)
  const gone = attempts.flatMap(({ endpoint, subscriptionId: id, url }) =>
    endpoint === 'gone' && !succeeded.has(id) ? [{ id, url }] : [],
  )
  const news = { succeeded: [...succeeded], failed: [...failed], gone }
  const disabled = await judgeEndpoints(sql, { ...news, now, failingBefore: now - failingLimit })
  for (const { id: subscriptionId, disabledReason: reason } of disabled)
    log.warn('webhook subscription disabled', { subscriptionId, reason })
  const goesOn = await findEnabled(
    sql,
    gone.map(({ id }) => id),
  )
  // It was moved while its former address was asked: what that does not want any more is for the new one.
  const records = attempts.map(({ record, endpoint, subscriptionId }) =>
    endpoint === 'gone' && goesOn.has(subscriptionId) ? { ...record, verdict: 'retry' as const, runAt: now } : record,
  )
  await recordAttempts(sql, records, { now, staleBefore: now - newsLifetime })
}
