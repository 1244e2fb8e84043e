/**
 * Owns whether gateways answer: OPTIONS now and then (RFC 3261 §11), each gateway once however many trunks share it and the way to it. Every final answer but
 * 408 and 503 is one: many carriers refuse OPTIONS and work.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import { toIso } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import type { TrunkAccess } from '../../model/telephony.ts'
import type { Gateway, TrunkState } from '../../model/trunk.ts'
import { optionsTo } from '../call/caller-id.ts'
import type { Answered, SipStack } from '../stack.ts'
import type { Gate } from './gate.ts'

export type GatewayState = TrunkState['gateways'][number]

export type GatewayHealthDeps = {
  readonly stack: Pick<SipStack, 'request'>
  readonly clock: Clock
  readonly log: Log
  readonly random: () => number
  readonly gate: Gate
}

/** A gateway, and the trunk that says how it is asked. */
export type GatewayOf = { readonly gateway: Gateway; readonly trunk: Pick<TrunkAccess, 'settings' | 'tls'> }

export type GatewayHealth = {
  /** Until the result is called. `changed`: it answers now, or no longer. */
  watch(way: GatewayOf, changed: () => void): () => void
  state(way: GatewayOf): GatewayState
  /** What is not watched is taken to answer. */
  isReachable(way: GatewayOf): boolean
  /** It has been seen to answer, and no look has failed since. */
  hasAnswered(way: GatewayOf): boolean
  /** Idempotent. */
  close(): void
}

type Asking = ReturnType<typeof optionsTo>

type Watch = Asking & {
  readonly listeners: Set<() => void>
  reachable: boolean | null
  details: string | null
  checkedAt: number | null
  cancel: Cancel
}

/** Ms between two looks, with jitter: 30 to 60 s. */
const interval = { least: 30_000, spread: 30_000 }
/** The first look comes soon, but a thousand gateways are not asked in one moment. */
const firstWithin = 5_000
/** Below 32 s of Timer F, so that one that is gone is not asked forever. */
const answerWithin = 10_000

export function createGatewayHealth({ stack, clock, log, random, gate }: GatewayHealthDeps): GatewayHealth {
  const watches = new Map<string, Watch>()
  let isClosed = false

  const judge = (watch: Watch, uri: string, answered: Answered) => {
    const { reachable, details } = verdictOf(answered)
    const hasChanged = watch.reachable !== reachable
    Object.assign(watch, { reachable, details, checkedAt: clock.now() })
    if (!hasChanged) return
    if (!reachable) log.warn('a gateway does not answer', { gateway: uri, details })
    for (const changed of watch.listeners) changed()
  }
  const isWatched = (key: string, watch: Watch) => !isClosed && watches.get(key) === watch
  const look = async (key: string, watch: Watch) => {
    const { uri, options } = watch
    const answered = await gate(() =>
      isWatched(key, watch) ? stack.request(uri, options, answerWithin) : Promise.resolve(null),
    )
    if (!answered || !isWatched(key, watch)) return
    judge(watch, uri, answered)
    lookIn(interval.least + interval.spread * random(), key, watch)
  }
  const lookIn = (ms: number, key: string, watch: Watch) => {
    watch.cancel = clock.after(ms, () => {
      look(key, watch).catch((error: unknown) =>
        log.error('a gateway could not be looked at', { gateway: watch.uri, error }),
      )
    })
  }
  const begin = (key: string, asking: Asking): Watch => {
    const watch = freshWatch(asking)
    watches.set(key, watch)
    lookIn(firstWithin * random(), key, watch)
    return watch
  }
  const forget = (key: string, watch: Watch) => {
    watch.cancel()
    watches.delete(key)
  }
  const found = (way: GatewayOf) => watches.get(keyOf(askingOf(way)))

  return {
    watch(way, changed) {
      const asking = askingOf(way)
      const key = keyOf(asking)
      const watch = watches.get(key) ?? begin(key, asking)
      // Two trunks may listen with one function; each has its own place.
      const own = () => changed()
      watch.listeners.add(own)
      return () => {
        watch.listeners.delete(own)
        if (watch.listeners.size === 0 && watches.get(key) === watch) forget(key, watch)
      }
    },
    state: (way) => stateOf(way.gateway, found(way)),
    isReachable: (way) => found(way)?.reachable !== false,
    hasAnswered: (way) => found(way)?.reachable === true,
    close() {
      isClosed = true
      for (const [key, watch] of watches) forget(key, watch)
    },
  }
}

const askingOf = ({ gateway, trunk }: GatewayOf): Asking => optionsTo(trunk, gateway)
const keyOf = (asking: Asking): string => JSON.stringify(asking)

const freshWatch = (asking: Asking): Watch => ({
  ...asking,
  listeners: new Set(),
  reachable: null,
  details: null,
  checkedAt: null,
  cancel: () => undefined,
})

function stateOf({ host, port }: Gateway, watch: Watch | undefined): GatewayState {
  const { reachable = null, details = null, checkedAt = null } = watch ?? {}
  return { host, port: port ?? null, reachable, details, checkedAt: checkedAt === null ? null : toIso(checkedAt) }
}

function verdictOf(answered: Answered): { readonly reachable: boolean; readonly details: string } {
  if (answered.kind === 'silence') return { reachable: false, details: answered.details }
  const { status, reason } = answered.response
  return { reachable: status !== 408 && status !== 503, details: `${status} ${reason}` }
}
