/**
 * Owns the trunks that this node looks after: asks whose turn it is, keeps them registered and looked at, and reports how they do. When
 * the database does not answer they are kept on: a trunk that is registered twice still works, one that is not registered does not.
 */
import { randomUUID } from 'node:crypto'
import type { Cancel, Clock } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import type { TrunkId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { Telephony, TrunkAccess } from '../../model/telephony.ts'
import type { TrunkState } from '../../model/trunk.ts'
import type { RealmPins } from '../realm-pins.ts'
import type { SipStack } from '../stack.ts'
import { createGate, type Gate } from './gate.ts'
import { createGatewayHealth, type GatewayHealth, type GatewayOf } from './gateway-health.ts'
import type { RegistrationDeps } from './registration.ts'
import type { Resolver } from '../server/transport/dns-resolver.ts'
import { createSourceNames } from './source-names.ts'
import { createRegistrations, type Registrations } from './registrations.ts'

export type TrunkKeeperDeps = {
  readonly telephony: Pick<Telephony, 'keep' | 'report' | 'found'>
  readonly resolver: Resolver
  readonly stack: Pick<SipStack, 'request'>
  readonly pins?: RealmPins
  readonly clock: Clock
  readonly log: Log
  /** 0 ≤ x < 1. */
  readonly random: () => number
}

export type TrunkKeeper = {
  start(): void
  /** Trunks have changed: asks within a second whose turn it is, however often this is called. */
  askSoon(): void
  readonly health: Pick<GatewayHealth, 'isReachable' | 'hasAnswered'>
  kept(): number
  /** Takes registrations back; bounded. Idempotent. */
  close(): Promise<void>
}

type Kept = {
  /** What it was made of: another password or gateway makes it anew. */
  readonly fingerprint: string
  /** Tells how it does, at once and from then on. */
  start(): void
  close(): Promise<void>
}

/** Requests to trunks at once. */
const width = 50
/** Names that are looked up at once: a DNS that does not answer holds up no registration. */
const lookupWidth = 20
/** Ms between two reports of a trunk that does as it did. */
const reportEvery = 240_000
/** Ms that the end of the service waits for registrars, all together. */
const farewellWithin = 5_000
/** Ms between two questions whose turn it is. */
const [askAtLeast, askAtMost] = [5_000, 60_000]
const soon = 1_000

export function createTrunkKeeper(deps: TrunkKeeperDeps): TrunkKeeper {
  const { telephony, clock, log } = deps
  const gate = createGate(width)
  const lookupGate = createGate(lookupWidth)
  const health = createGatewayHealth({ ...deps, gate })
  const trunks = new Map<TrunkId, Kept>()
  let isClosed = false
  let isAsking = false
  /** The next question is a second away at most. */
  let isSoon = false
  let cancel: Cancel = () => undefined
  let closing: Promise<void> | null = null
  let asking: Promise<void> = Promise.resolve()

  const drop = (id: TrunkId, kept: Kept): Promise<void> => {
    trunks.delete(id)
    return kept
      .close()
      .catch((error: unknown) => log.warn('a trunk was not let go of in order', { trunkId: id, error }))
  }
  const take = (wanted: readonly TrunkAccess[]) => {
    const ids = new Set(wanted.map(({ id }) => id))
    for (const [id, kept] of trunks) if (!ids.has(id)) void drop(id, kept)
    for (const trunk of wanted) {
      deps.pins?.adopt(trunk)
      // What is learned at a success is no reason to begin anew.
      const fingerprint = JSON.stringify({ ...trunk, realms: null })
      const kept = trunks.get(trunk.id)
      if (kept?.fingerprint === fingerprint) continue
      const after = kept ? drop(trunk.id, kept) : Promise.resolve()
      const fresh = keepTrunk({ ...deps, gate, lookupGate, health, after }, trunk, fingerprint)
      trunks.set(trunk.id, fresh)
      fresh.start()
    }
  }
  const ask = async () => {
    isAsking = true
    isSoon = false
    let pause = askAtLeast
    try {
      const { trunks: wanted, until } = await telephony.keep()
      if (isClosed) return
      take(wanted)
      pause = Math.min(askAtMost, Math.max(askAtLeast, (until - clock.now()) / 2))
    } catch (error) {
      log.warn('whose turn it is to keep trunks is not known', { error })
    }
    isAsking = false
    // What changed meanwhile may have been read or not.
    if (!isClosed) cancel = clock.after(isSoon ? soon : pause, start)
  }
  const start = () => void (asking = ask())
  const askSoon = () => {
    if (isClosed || isSoon) return
    isSoon = true
    if (isAsking) return
    cancel()
    cancel = clock.after(soon, start)
  }
  const end = async () => {
    isClosed = true
    cancel()
    await asking
    health.close()
    const closed = Promise.allSettled([...trunks.values()].map((kept) => kept.close()))
    await deadline(clock, farewellWithin, closed, goOn)
    trunks.clear()
  }

  return {
    start,
    askSoon,
    health,
    kept: () => trunks.size,
    close: () => (closing ??= end()),
  }
}

type KeepDeps = TrunkKeeperDeps &
  Pick<RegistrationDeps, 'gate' | 'after'> & {
    readonly health: GatewayHealth
    readonly lookupGate: Gate
  }

function keepTrunk(deps: KeepDeps, trunk: TrunkAccess, fingerprint: string): Kept {
  const { health, clock } = deps
  const { settings } = trunk
  const ways = (settings.gateways ?? []).map((gateway) => ({ gateway, trunk }))
  const report = createReport(deps, trunk.id, () => stateOf(registrations, health, ways))
  const registrations = createRegistrations({ ...deps, newId: () => randomUUID(), changed: report }, trunk)
  const watched = settings.qualify === false ? [] : ways.map((way) => health.watch(way, report))
  const names = createSourceNames({ ...deps, gate: deps.lookupGate }, trunk)
  let cancel: Cancel = () => undefined
  const start = () => {
    report()
    cancel = clock.after(reportEvery, start)
  }
  return {
    fingerprint,
    start,
    async close() {
      cancel()
      names.close()
      for (const leave of watched) leave()
      await registrations.close()
    },
  }
}

const stateOf = (
  registrations: Registrations,
  health: GatewayHealth,
  ways: readonly GatewayOf[],
): Omit<TrunkState, 'updatedAt'> => ({ ...registrations.state(), gateways: ways.map((way) => health.state(way)) })

/** One at a time; what changes meanwhile is told by the next. */
function createReport(
  { telephony, log }: Pick<TrunkKeeperDeps, 'telephony' | 'log'>,
  trunkId: TrunkId,
  state: () => Omit<TrunkState, 'updatedAt'>,
): () => void {
  let isReporting = false
  let isOld = false
  const send = async () => {
    do {
      isOld = false
      await telephony.report(trunkId, state())
    } while (isOld)
  }
  return () => {
    isOld = true
    if (isReporting) return
    isReporting = true
    send()
      .catch((error: unknown) => log.warn('how a trunk does could not be reported', { trunkId, error }))
      .finally(() => void (isReporting = false))
      .catch(() => undefined)
  }
}
