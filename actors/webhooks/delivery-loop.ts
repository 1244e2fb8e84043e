/**
 * Owns when deliveries are claimed and sent. A claim is sent at once, never queued here; lanes.ts bounds how many, so that one
 * slow endpoint never delays another. Several loops on one database share the work.
 */
import type { Clock } from '../../model/clock.ts'
import { deadline } from '../../model/deadline.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { Telemetry } from '../../model/telemetry.ts'
import { claimDue, giveUpStale, releaseDeliveries, staleAtOnce, type ClaimedDelivery } from '../../store/deliveries.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { lookingFor, type DueWatch } from '../rounds/due-watch.ts'
import { createRounds, type Rounds } from '../rounds/rounds.ts'
import { createAttemptDelivery } from './attempt-delivery.ts'
import { createLanes, lanesInAll, lanesOfUnknown } from './lanes.ts'
import { createAttemptRecorder } from './record-attempts.ts'
import type { WebhookSender } from './sender.ts'

export type DeliveryLoop = {
  /** Something was committed. Cheap: call it as often as you like. */
  wake(): void
  start(): void
  /** Resolves when nothing is under way and nothing due is left. For ever, while an endpoint keeps it busy: whoever waits has a limit. */
  idle(): Promise<void>
  /** Claims no more, gives what is under way `closeGrace` ms, then ends and releases it. Idempotent. */
  close(): Promise<void>
}

type Deps = {
  readonly sql: Sql
  readonly box: SecretBox
  readonly sender: Pick<WebhookSender, 'send'>
  readonly clock: Clock
  readonly nodeId: NodeId
  readonly log: Log
  readonly telemetry?: Telemetry
  /** Absent: it looks once a second by itself. */
  readonly dueWatch?: Pick<DueWatch, 'on'>
  /** 0 ≤ random() < 1. */
  readonly random: () => number
}

/** Longer than sending (10 s) and all tries to record (20 s and their queries) can take. */
export const claimLease = 60_000
export const pollEvery = 1_000
export const closeGrace = 5_000
/** Longer than a restart of the service, so that events survive it; shorter than a queue that delays call.ended. */
export const staleAfter = 300_000
const sweepEvery = 30_000

export function createDeliveryLoop(deps: Deps): DeliveryLoop {
  const { sql, clock, nodeId, log } = deps
  const lanes = createLanes()
  const attempt = createAttemptDelivery(deps)
  const recorder = createAttemptRecorder(deps)
  const sweep = createSweep(deps)
  const cut = new AbortController()
  let rounds: Rounds | null = null
  let closed: Promise<void> | null = null

  /** True when there may be more to claim. */
  async function claim(): Promise<boolean> {
    const limit = lanes.room()
    if (closed || limit === 0) return false
    const bounds = { limit, perSubscription: lanesOfUnknown, rooms: lanes.rooms() }
    const claimed = await claimDue(sql, { nodeId, now: clock.now(), lease: claimLease, ...bounds })
    for (const delivery of claimed) lanes.run(delivery.subscriptionId, deliver(delivery), wake)
    // What lacked room in its own subscription is looked for when that has room again.
    return claimed.length === limit
  }
  async function deliver(delivery: ClaimedDelivery): Promise<void> {
    const began = clock.now()
    const attempted = await attempt(delivery, cut.signal)
    lanes.judge(delivery.subscriptionId, clock.now() - began)
    // Ended by close(): it is released, not judged.
    if (attempted) await recorder.record(attempted, cut.signal)
  }
  async function look(): Promise<boolean> {
    const more = await claim()
    if (!more) await sweep()
    return more
  }
  const wake = (): void => rounds?.wake()
  async function idle(): Promise<void> {
    await rounds?.idle()
    while (lanes.room() < lanesInAll && !closed) {
      await lanes.idle()
      await rounds?.idle()
    }
  }
  async function end(): Promise<void> {
    await rounds?.close()
    await deadline(clock, closeGrace, lanes.idle(), () => cut.abort())
    await lanes.idle()
    if (!rounds) return
    await releaseDeliveries(sql, [nodeId]).catch((error: unknown) =>
      log.error('claimed deliveries could not be released', { error }),
    )
  }

  return {
    wake,
    idle,
    start() {
      if (rounds || closed) return
      rounds = createRounds({ clock, log, look, ...lookingFor(deps.dueWatch, ['deliveries'], pollEvery) })
      rounds.wake()
    },
    close: () => (closed ??= end()),
  }
}

function createSweep({ sql, clock, log }: Deps): () => Promise<void> {
  let last = Number.NEGATIVE_INFINITY
  return async () => {
    const now = clock.now()
    if (now - last < sweepEvery) return
    last = now
    const count = await giveUpStale(sql, { before: now - staleAfter, now })
    // There may be more: the next look goes on.
    if (count === staleAtOnce) last = Number.NEGATIVE_INFINITY
    if (count > 0) log.warn('stale deliveries given up', { count })
  }
}
