/**
 * Owns whether gateways answer: OPTIONS now and then (RFC 3261 §11), each gateway once however many trunks share it. Every final answer but
 * 408 and 503 is one: many carriers refuse OPTIONS and work.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import { toIso } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import type { TrunkState } from '../../model/trunk.ts'
import { gatewayUri, type Gateway } from '../call/caller-id.ts'
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

export type GatewayHealth = {
  /** Until the result is called. `changed`: it answers now, or no longer. */
  watch(gateway: Gateway, changed: () => void): () => void
  state(gateway: Gateway): GatewayState
  /** What is not watched is taken to answer. */
  isReachable(gateway: Gateway): boolean
  /** It has been seen to answer, and no look has failed since. */
  hasAnswered(gateway: Gateway): boolean
  /** Idempotent. */
  close(): void
}

type Watch = {
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
  const isWatched = (uri: string, watch: Watch) => !isClosed && watches.get(uri) === watch
  const look = async (uri: string, watch: Watch) => {
    const options = { method: 'OPTIONS', headers: { Accept: 'application/sdp' } }
    const answered = await gate(() =>
      isWatched(uri, watch) ? stack.request(uri, options, answerWithin) : Promise.resolve(null),
    )
    if (!answered || !isWatched(uri, watch)) return
    judge(watch, uri, answered)
    lookIn(interval.least + interval.spread * random(), uri, watch)
  }
  const lookIn = (ms: number, uri: string, watch: Watch) => {
    watch.cancel = clock.after(ms, () => {
      look(uri, watch).catch((error: unknown) => log.error('a gateway could not be looked at', { gateway: uri, error }))
    })
  }
  const begin = (uri: string): Watch => {
    const watch = freshWatch()
    watches.set(uri, watch)
    lookIn(firstWithin * random(), uri, watch)
    return watch
  }
  const forget = (uri: string, watch: Watch) => {
    watch.cancel()
    watches.delete(uri)
  }

  return {
    watch(gateway, changed) {
      const uri = gatewayUri(gateway)
      const watch = watches.get(uri) ?? begin(uri)
      // Two trunks may listen with one function; each has its own place.
      const own = () => changed()
      watch.listeners.add(own)
      return () => {
        watch.listeners.delete(own)
        if (watch.listeners.size === 0 && watches.get(uri) === watch) forget(uri, watch)
      }
    },
    state: (gateway) => stateOf(gateway, watches.get(gatewayUri(gateway))),
    isReachable: (gateway) => watches.get(gatewayUri(gateway))?.reachable !== false,
    hasAnswered: (gateway) => watches.get(gatewayUri(gateway))?.reachable === true,
    close() {
      isClosed = true
      for (const [uri, watch] of watches) forget(uri, watch)
    },
  }
}

const freshWatch = (): Watch => ({
  listeners: new Set(),
  reachable: null,
  details: null,
  checkedAt: null,
  cancel: () => undefined,
})

function stateOf({ host, port }: Gateway, watch: Watch = freshWatch()): GatewayState {
  const { reachable, details, checkedAt } = watch
  return { host, port: port ?? null, reachable, details, checkedAt: checkedAt === null ? null : toIso(checkedAt) }
}

function verdictOf(answered: Answered): { readonly reachable: boolean; readonly details: string } {
  if (answered.kind === 'silence') return { reachable: false, details: answered.details }
  const { status, reason } = answered.response
  return { reachable: status !== 408 && status !== 503, details: `${status} ${reason}` }
}
