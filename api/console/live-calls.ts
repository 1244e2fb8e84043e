/**
 * Owns who watches the running calls of an account: one look a second for all of them together, as long as there is one, and each is told what
 * has changed since the look before.
 */
import type { Bus } from '../../model/bus.ts'
import type { Cancel, Clock } from '../../model/clock.ts'
import { toIso } from '../../model/clock.ts'
import type { AccountId, CallId } from '../../model/ids.ts'
import type { LiveQuality } from '../../model/live-quality.ts'
import type { Log } from '../../model/log.ts'
import { toPhoneCall } from '../../model/phone-call.ts'
import { listRunningCalls, type RunningCall } from '../../store/running-calls.ts'
import type { Sql } from '../../store/sql.ts'
import { createLiveQualities } from './live-qualities.ts'

/** Ms. */
const lookEvery = 1_000
const afterFailure = 5_000
/** More are told of as a number only by the list of calls. */
export const mostRunning = 500

/** JSON of each call by its id. */
export type Running = ReadonlyMap<CallId, string>
export type Change = { readonly changed: readonly string[]; readonly gone: readonly CallId[] }
/** `change`: since what it was told before. */
export type Watcher = (running: Running, change: Change) => void

export type LiveCalls = {
  /** Told at once when there is somebody already, else with the first look. `late`: the look failed; the next that does not is told, whatever it finds. */
  watch(accountId: AccountId, watcher: Watcher, late?: () => void): () => void
}

type Deps = { readonly sql: Sql; readonly bus: Bus; readonly clock: Clock; readonly log: Log }
type Watch = {
  readonly watchers: Map<Watcher, () => void>
  running: Running | null
  isLate: boolean
  cancel: Cancel
  readonly deafen: () => void
}

export function createLiveCalls({ sql, bus, clock, log }: Deps): LiveCalls {
  const qualities = createLiveQualities({ bus, clock })
  const watches = new Map<AccountId, Watch>()

  async function look(accountId: AccountId, watch: Watch): Promise<void> {
    let pause = lookEvery
    try {
      const calls = await listRunningCalls(sql, accountId, mostRunning)
      tell(watch, new Map(calls.map((call) => [call.id, JSON.stringify(liveCallOf(call, qualities.of(call.id)))])))
    } catch (error) {
      log.warn('running calls could not be read for who watches them', { accountId, error })
      pause = afterFailure
      watch.isLate = true
      for (const late of watch.watchers.values()) late()
    }
    if (watch.watchers.size > 0) watch.cancel = clock.after(pause, () => void look(accountId, watch))
  }

  return {
    watch(accountId, watcher, late = () => undefined) {
      let watch = watches.get(accountId)
      if (!watch) {
        watch = {
          watchers: new Map(),
          running: null,
          isLate: false,
          cancel: () => undefined,
          deafen: qualities.listen(),
        }
        watches.set(accountId, watch)
        void look(accountId, watch)
      }
      const joined = watch
      joined.watchers.set(watcher, late)
      if (joined.running) watcher(joined.running, changeOf(new Map(), joined.running))
      return () => {
        joined.watchers.delete(watcher)
        if (joined.watchers.size > 0 || watches.get(accountId) !== joined) return
        joined.cancel()
        joined.deafen()
        watches.delete(accountId)
      }
    },
  }
}

function tell(watch: Watch, running: Running): void {
  const change = changeOf(watch.running ?? new Map(), running)
  const isAwaited = watch.running === null || watch.isLate
  watch.running = running
  watch.isLate = false
  if (!isAwaited && change.changed.length + change.gone.length === 0) return
  for (const watcher of watch.watchers.keys()) watcher(running, change)
}

function changeOf(before: Running, now: Running): Change {
  const changed: string[] = []
  for (const [id, call] of now) if (before.get(id) !== call) changed.push(call)
  return { changed, gone: [...before.keys()].filter((id) => !now.has(id)) }
}

const liveCallOf = (call: RunningCall, sound: LiveQuality | null) => ({
  ...toPhoneCall(call),
  createdAt: toIso(call.createdAt),
  turns: call.turns,
  lastTurn: call.lastTurn,
  latency: call.latency,
  sound,
})
