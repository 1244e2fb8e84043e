/** Owns the media of this process, wherever it is carried: what the edges open lines on, and what is known of its load and its legs. */
import { createLegSweep } from '../actors/rounds/leg-sweep.ts'
import type { CallId } from '../model/ids.ts'
import type { MediaPlane, OpenWebMedia } from '../media/plane/media-plane.ts'
import type { Lateness, LatenessTotals } from '../media/ticker/lateness.ts'
import { createTicker } from '../media/ticker/ticker.ts'
import { now } from './clock.ts'
import type { Config } from './config.ts'
import type { Core } from './core.ts'
import { atMediaPorts } from './failing-places.ts'
import { mediaSettingsOf, type LegBegan } from './media-settings.ts'
import { openMediaThreads, type ThreadLoop } from './media-threads.ts'

export type MediaSide = MediaPlane & {
  /** A line of somebody who listens to a call, under an id of its own. Null: this process carries no sound of browsers. */
  readonly openSupervisor: OpenWebMedia | null
  /** Of the beat; of several the sum, and of quantiles the worst. */
  lateness(): Lateness
  /** The same since the start. */
  totals(): LatenessTotals
  /** Of each thread that the sound of a call goes through: those that carry it, and this one with the engines. */
  beats(): readonly LatenessTotals[]
  /** Calls with a leg here; `fresh` are those that got it in the last seconds. */
  count(): { readonly calls: number; readonly fresh: number }
  /** Of the media thread that works most; see MediaThreads. 0 without threads: the process knows how much it works itself. */
  busy(): number
  /** What each media thread has worked and waited since it began. */
  loops(): readonly ThreadLoop[]
}

/** Ms. */
const freshFor = 5_000

export async function openMediaSide(core: Core, config: Config, closing: AsyncDisposableStack): Promise<MediaSide> {
  const legs = openLegs(core, closing)
  if (config.mediaThreads > 0) {
    const own = createOwnBeat(core, closing)
    const legBegan: LegBegan = (callId, close) => both(legs.began(callId, close), own.join())
    const threads = await atMediaPorts(config.media, () => openMediaThreads({ core, config, legBegan }, closing))
    return {
      ...threads,
      openSupervisor: legs.ofNoCall(threads.openWeb),
      beats: () => [...threads.beats(), own.totals()],
      count: legs.count,
    }
  }
  // A process with media threads needs nothing of it, which is 8 MB.
  const { openLocalMedia } = await import('./local-media.ts')
  const media = openLocalMedia({ ...core, legBegan: legs.began }, mediaSettingsOf(config), closing)
  await atMediaPorts(config.media, media.warmUp)
  const { openPhone, openWeb, ticker } = media
  const { lateness, totals } = ticker
  return {
    openPhone,
    openWeb,
    openSupervisor: legs.ofNoCall(openWeb),
    lateness,
    totals,
    beats: () => [totals()],
    count: legs.count,
    busy: () => 0,
    loops: () => [],
  }
}

/** Of a process that leaves sound to others. Engines may hear and speak on its thread all the same: `running` calls have their actors here. */
export function openNoMedia(core: Core, running: () => number, closing: AsyncDisposableStack): MediaSide {
  const beat = createOwnBeat(core, closing)
  let leave: (() => void) | null = null
  const { lateness, totals } = beat
  const leftToOthers = (): never => {
    throw new Error('this process carries no sound')
  }
  return {
    openWeb: leftToOthers,
    openSupervisor: null,
    openPhone: async () => leftToOthers(),
    lateness,
    totals,
    beats: () => [totals()],
    count() {
      const calls = running()
      if (calls > 0) leave ??= beat.join()
      if (calls === 0) {
        leave?.()
        leave = null
      }
      return { calls, fresh: 0 }
    },
    busy: () => 0,
    loops: () => [],
  }
}

const both = (one: () => void, other: () => void) => (): void => {
  one()
  other()
}

/** How late this thread is, beside those that carry sound: engines hear and speak on it. It beats while there are legs. */
function createOwnBeat({ clock }: Core, closing: AsyncDisposableStack) {
  const ticker = createTicker({ now, after: (ms, action) => clock.after(ms, action) })
  closing.defer(() => ticker.close())
  const { lateness, totals } = ticker
  return { lateness, totals, join: () => ticker.join(() => undefined) }
}

function openLegs(core: Core, closing: AsyncDisposableStack) {
  /** In the order in which they were made. */
  const legs = new Map<CallId, { readonly close: (reason: string) => Promise<void>; readonly since: number }>()
  /** Of supervisors: whoever opened them closes them. */
  const ofNoCall = new Set<CallId>()
  const legSweep = createLegSweep(core, {
    all: () => [...legs.keys()].filter((id) => !ofNoCall.has(id)),
    close: (callId, reason) => void legs.get(callId)?.close(reason),
  })
  closing.defer(() => legSweep.close())
  const began: LegBegan = (callId, close) => {
    const leg = { close, since: now() }
    legs.set(callId, leg)
    return () => {
      if (legs.get(callId) === leg) legs.delete(callId)
    }
  }
  return {
    began,
    ofNoCall:
      (openWeb: OpenWebMedia): OpenWebMedia =>
      (id, events) => {
        ofNoCall.add(id)
        const gone = (): void => {
          ofNoCall.delete(id)
          events.gone()
        }
        return openWeb(id, { ...events, gone })
      },
    count() {
      const freshSince = now() - freshFor
      let fresh = 0
      for (const { since } of legs.values()) if (since > freshSince) fresh++
      return { calls: legs.size - fresh, fresh }
    },
  }
}
