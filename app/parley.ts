/** Owns one running service: its parts opened in order, closed in reverse, and the orderly end of its calls before that. */
import type { Engines } from '../actors/call/engine-choice.ts'
import { noPeers, type NodePeers } from '../actors/node/node-beats.ts'
import { pause } from '../model/clock.ts'
import { deadline, goOn } from '../model/deadline.ts'
import { isWildcard } from '../net/addresses.ts'
import type { RotatingSecretBox } from '../store/secret-box.ts'
import type { Sql } from '../store/sql.ts'
import type { Lateness, LatenessTotals } from '../media/ticker/lateness.ts'
import { openCallSide, type CallSide } from './call-side.ts'
import { collectAtRest } from './collect-at-rest.ts'
import type { Config } from './config.ts'
import { openCore, type Core, type Telling } from './core.ts'
import { openFrontDoor, type Demo, type FrontDoor } from './front-door.ts'
import { openGuard } from './guard.ts'
import { requireDriver } from './http-driver.ts'
import { busyMeter, openLoad } from './load.ts'
import { openMediaSide, openNoMedia, type MediaSide } from './media-side.ts'
import { createReadiness } from './readiness.ts'
import { openReadingOfNumbers } from './read-numbers.ts'
import { openReadingOfWords } from './read-words.ts'
import { openResealing } from './reseal.ts'
import { openNodeBeats } from './node-beats.ts'
import { openPhoneSide, type PhoneSide } from './phone-side.ts'
import { openWatching } from './watching.ts'

export type Parley = {
  /** Where page and API are, as this machine reaches them. */
  readonly url: string
  readonly sql: Sql
  readonly box: RotatingSecretBox
  /** Where the embedded SIP server listens; null without one. */
  readonly sip: { readonly address: string; readonly port: number } | null
  /** On which the metrics are told; null where they have none of their own. */
  readonly metricsPort: number | null
  /** What that server keeps at this moment. */
  sipSizes(): ReturnType<PhoneSide['sizes']>
  /** Of the beat that all media of this process shares. */
  lateness(): Lateness
  /** The same since the start. */
  beat(): LatenessTotals
  /** Legs of calls in this process. */
  legs(): number
  readonly newCalls: CallSide['newCalls']
  /** Calls that have an actor in this process. */
  running(): number
  /**
   * No new calls. Running ones go to other nodes, and their legs have DRAIN_TIMEOUT_SECONDS to end with them; those that no other node takes have
   * SHUTDOWN_GRACE_SECONDS to end by themselves. Their ends are processed and delivered. Idempotent.
   */
  close(): Promise<void>
}

/**
 * `engines` belong to the caller, who closes them after the service; they may still be opening while the database starts. `seed` runs before
 * anything listens.
 */
export async function startParley(
  deps: Telling & {
    readonly config: Config
    readonly engines: Engines | Promise<Engines>
    readonly seed: (core: Core) => Promise<Demo | null>
  },
): Promise<Parley> {
  const { config } = deps
  const engines = Promise.resolve(deps.engines)
  // Whoever fails first is told of; the other is not forgotten meanwhile.
  engines.catch(() => {})
  await requireDriver(config.httpDriver)
  await using opening = new AsyncDisposableStack()
  const watching = await openWatching(config, deps.log, opening)
  const core = await openCore(config, { telemetry: watching.telemetry, ...deps }, opening)
  const { roles } = config
  // Work on all that is stored is for those that work by themselves.
  if (roles.has('actors')) openResealing(core, opening)
  if (roles.has('actors')) openReadingOfNumbers(core, opening)
  if (roles.has('actors')) openReadingOfWords(core, opening)
  const demo = await deps.seed(core)
  const load = openLoad(core, config, opening)
  const beats = openNodeBeats(core, config, opening)
  const peers = beats ?? noPeers
  const calls = openCallSide(core, config, await engines, opening, load, peers)
  const carriesSound = roles.has('gateway') || roles.has('sip')
  const media = carriesSound ? await openMediaSide(core, config, opening) : openNoMedia(core, calls.running, opening)
  load.watch(media)
  watching.watch({ core, calls, media })
  const guard = openGuard(core, config, opening)
  const beside = await watching.open(guard, opening)
  const readiness = createReadiness({ roles, peers, calls })
  const door = await openFrontDoor({ core, config, calls, media, demo, guard, readiness, beside }, opening)
  const { sip } = config
  const phones = sip && (await openPhoneSide({ core, config: { ...config, sip }, calls, media, guard }, opening))
  beats?.tell(() => ({ roles: [...roles], ...calls.state() }))
  await calls.start()
  readiness.started()
  opening.defer(collectAtRest({ ...core, isAtRest: restOf(calls, media) }))

  const parts = opening.move()
  const end = async (): Promise<void> => {
    try {
      readiness.ending()
      phones?.stop()
      if (beats) await handOn({ core, config, calls, media, door })
      // Their actors are elsewhere, and their telephones may come after them.
      if (beats && phones && calls.running() === 0) await deadline(core.clock, phonesLeaveWithin, phones.handOn(), goOn)
      if (hasOtherGateway(peers) && calls.running() === 0)
        await deadline(core.clock, browsersLeaveWithin, door.handOn(), goOn)
      const began = core.clock.now()
      await calls.end(config.shutdownGrace)
      // Those that other nodes run have what is left of it.
      await phones?.drained(config.shutdownGrace - (core.clock.now() - began))
    } finally {
      await parts.disposeAsync()
    }
  }
  let ended: Promise<void> | null = null
  return {
    url: urlOf(config, door),
    sql: core.sql,
    box: core.box,
    sip: phones?.listening ?? null,
    metricsPort: beside.port,
    sipSizes: () => phones?.sizes() ?? null,
    lateness: () => media.lateness(),
    beat: () => media.totals(),
    legs: () => (carriesSound ? media.count().calls + media.count().fresh : 0),
    newCalls: () => calls.newCalls(),
    running: () => calls.running(),
    close: () => (ended ??= end()),
  }
}

/** Calls go to other nodes, where there are some; their sound stays here as long as they last. */
async function handOn({ core: { clock }, config, calls, media, door }: Draining): Promise<void> {
  const began = clock.now()
  const left = (): number => config.drainTimeout - (clock.now() - began)
  await calls.handOver(left())
  // A browser hears of the end of its call some time after the end of its leg.
  const lines = (): number => Math.max(media.count().calls + media.count().fresh, door.sessions())
  while (lines() > calls.running() && left() > 0) await pause(clock, Math.min(lookAtLegsEvery, left()))
}

type Draining = {
  readonly core: Core
  readonly config: Config
  readonly calls: CallSide
  readonly media: MediaSide
  readonly door: Pick<FrontDoor, 'sessions'>
}
/** Ms. */
const lookAtLegsEvery = 100
const phonesLeaveWithin = 3_000
/** A client tries after 250, 750 and 1,750 ms, and finds its way to the sound in a second. */
const browsersLeaveWithin = 4_000

const hasOtherGateway = (peers: NodePeers): boolean =>
  peers.heard().some(({ roles, draining }) => roles.includes('gateway') && !draining)

/** Of the thread's time, when nothing is asked of the service. */
const littleWork = 0.1

function restOf(calls: CallSide, media: MediaSide): () => boolean {
  const busy = busyMeter()
  return () => {
    const { calls: old, fresh } = media.count()
    return busy() < littleWork && calls.running() + old + fresh === 0
  }
}

function urlOf(config: Config, { port }: Pick<FrontDoor, 'port'>): string {
  const host = isWildcard(config.host) ? '127.0.0.1' : config.host
  return `${config.tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}
