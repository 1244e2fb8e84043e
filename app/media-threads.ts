/**
 * Owns the media threads of this process: each has a share of the ports and carries the lines that are opened on it, a new one where there are
 * fewest. A thread that dies, or stands still and is ended for it, loses its own calls, whose actors hear of it, and is started again: each time
 * after twice the wait, at most `maxRestarts` times in `restartsWithin`.
 * docs/design/media.md "Media threads"
 */
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { serveThreadBus } from '../actors/bus/serve-thread-bus.ts'
import { createThreadBusEnds } from '../actors/bus/thread-entries.ts'
import { copyOpusAddon } from '../media/codecs/opus-addon.ts'
import { createLink } from '../media/plane/link.ts'
import type { MediaPlane } from '../media/plane/media-plane.ts'
import type { PlaneMethods } from '../media/plane/far-lines.ts'
import { createRemotePlane, type RemotePlane } from '../media/plane/remote-plane.ts'
import { NoPortsLeft } from '../media/rtp/media-ports.ts'
import type { Lateness, LatenessTotals } from '../media/ticker/lateness.ts'
import { subjectsOf } from '../model/bus.ts'
import { toBytes } from '../model/bus-json.ts'
import type { Cancel } from '../model/clock.ts'
import { deadline, goOn } from '../model/deadline.ts'
import type { CallId } from '../model/ids.ts'
import type { LegEvent } from '../model/leg.ts'
import { Problem } from '../model/problem.ts'
import { makeFolder } from '../store/make-folder.ts'
import type { Config } from './config.ts'
import type { Core } from './core.ts'
import { watchBeat } from './beat-watch.ts'
import { createGauges, joinedLateness, readGauges } from './media-gauges.ts'
import { mediaSettingsOf, type LegBegan, type MediaSettings } from './media-settings.ts'
import type { ThreadOwner, ThreadSettings } from './media-thread.ts'
import { busyMeterOf, loopOf, type Loop } from './thread-loop.ts'

export type MediaThreads = MediaPlane & {
  lateness(): Lateness
  totals(): LatenessTotals
  /** The same, of each. */
  beats(): readonly LatenessTotals[]
  /** Of the thread that works most, the part of the time since it was last asked, 0–1. */
  busy(): number
  loops(): readonly ThreadLoop[]
}

export type ThreadLoop = Loop & { readonly thread: string }

type Deps = {
  readonly core: Pick<Core, 'bus' | 'clock' | 'log' | 'nodeId' | 'telemetry'> & {
    readonly recordings: Pick<Core['recordings'], 'beginWriting'>
  }
  readonly config: Config
  readonly legBegan: LegBegan
}

const entry = new URL('./media-thread.ts', import.meta.url)
/** Ms for a thread to end its sound in order. */
const closeWithin = 5_000
/** The first time; see restartWaitOf. */
const restartAfter = 1_000
const maxRestarts = 5
const restartsWithin = 600_000

/** Ms for a thread to load its code and bind its sockets. */
const beginWithin = 30_000

/** Ms after the last death of so many in `restartsWithin`. */
export const restartWaitOf = (deaths: number): number =>
  deaths > maxRestarts ? restartsWithin : restartAfter * 2 ** (deaths - 1)

/** Rejects when one of them cannot begin. */
export async function openMediaThreads(deps: Deps, closing: AsyncDisposableStack): Promise<MediaThreads> {
  const { config } = deps
  const slots = await Promise.all(
    Array.from({ length: config.mediaThreads }, (_, index) => openSlot(deps, index, closing)),
  )
  const planes = (): RemotePlane[] =>
    slots.flatMap((slot) => slot.plane() ?? []).toSorted((one, other) => one.lines() - other.lines())
  const beats = (): LatenessTotals[] => slots.map((slot) => slot.gauges().totals)
  return {
    async openPhone() {
      for (const plane of planes()) {
        const line = await plane.openPhone().catch((error: unknown) => {
          if (!(error instanceof NoPortsLeft)) deps.core.log.warn('a media thread opened no line', { error })
          return null
        })
        if (line) return line
      }
      throw new NoPortsLeft('all RTP ports are in use, or their media threads are gone')
    },
    openWeb(callId, events, isFurther) {
      const [plane] = planes()
      if (!plane) throw new Problem('SERVICE_UNAVAILABLE', 'No sound can be carried at the moment.')
      return plane.openWeb(callId, events, isFurther)
    },
    lateness: () => joinedLateness(slots.map((slot) => slot.gauges().lateness)),
    totals: () => beats().reduce(sumOf),
    beats,
    busy: () => Math.max(...slots.map((slot) => slot.busy())),
    loops: () => slots.map((slot, number) => ({ thread: `media ${number}`, ...slot.loop() })),
  }
}

const sumOf = (one: LatenessTotals, other: LatenessTotals): LatenessTotals => ({
  ticks: one.ticks + other.ticks,
  late: one.late + other.late,
  skipped: one.skipped + other.skipped,
})

const none: LatenessTotals = { ticks: 0, late: 0, skipped: 0 }

/** One thread after another, each in the place of the one before. */
async function openSlot(deps: Deps, index: number, closing: AsyncDisposableStack) {
  const { clock, log } = deps.core
  const { settings, opusAddon } = await readySlot(deps, index)
  let before = none
  let isClosed = false
  let cancelRestart: Cancel = () => undefined
  const deaths: number[] = []
  const start = (): Thread =>
    startThread(deps, { settings, opusAddon }, (cause) => {
      if (isClosed) return
      log.error('a media thread ended, and its calls with it', { thread: index, error: cause })
      restart()
    })
  const restart = (): void => {
    const now = clock.now()
    while (deaths[0] !== undefined && now - deaths[0] > restartsWithin) deaths.shift()
    deaths.push(now)
    if (deaths.length > maxRestarts)
      log.error('a media thread ends too often and is left alone for a while', { thread: index })
    cancelRestart = clock.after(restartWaitOf(deaths.length), () => {
      startAgain().catch((error: unknown) => {
        log.error('a media thread could not be started', { thread: index, error })
        if (!isClosed) restart()
      })
    })
  }
  const startAgain = async (): Promise<void> => {
    // Its ports are free when it is gone. One that stands still in native code may never be.
    await deadline(clock, closeWithin, thread.exited, goOn)
    if (isClosed) return
    const { gauges } = thread
    thread = start()
    before = sumOf(before, readGauges(gauges).totals)
    // A thread that cannot begin ends, and is told and started again as such.
    thread.ready.then(() => log.info('a media thread was started again', { thread: index }), goOn)
  }
  let thread = start()
  closing.defer(async () => {
    isClosed = true
    cancelRestart()
    await thread.close()
  })
  await thread.ready
  return {
    plane: (): RemotePlane | null => (thread.takesLines() ? thread.plane : null),
    busy: () => thread.busy(),
    loop: () => thread.loop(),
    gauges() {
      const { totals, lateness } = readGauges(thread.gauges)
      return { totals: sumOf(before, totals), lateness }
    },
  }
}

type Given = Pick<ThreadSettings, 'settings' | 'opusAddon'>

async function readySlot({ core, config }: Deps, index: number): Promise<Given> {
  const folder = path.join(config.dataDir, 'media')
  const opusAddon = path.join(folder, `opus-${index}.node`)
  const settings = shareOf(mediaSettingsOf(config), index, config.mediaThreads)
  try {
    await makeFolder(folder)
    copyOpusAddon(opusAddon)
    return { settings, opusAddon }
  } catch (error) {
    core.log.warn('a media thread encodes Opus without native code, which takes twice the time', { error })
    return { settings, opusAddon: null }
  }
}

/** Telephones take ports of the thread's own part of the range. Browsers take one in all, the first that is free. */
export function shareOf(settings: MediaSettings, index: number, count: number): MediaSettings {
  const { phone } = settings
  if (!phone) return settings
  const [first, last] = phone.mediaPorts
  const pairs = Math.floor((last + 1 - (first + (first % 2))) / 2)
  const at = (part: number): number => first + (first % 2) + 2 * Math.floor((pairs * part) / count)
  return { ...settings, phone: { ...phone, mediaPorts: [at(index), at(index + 1) - 1] } }
}

type Thread = ReturnType<typeof startThread>

/** `died`: it ended without being told to. */
function startThread({ core, config, legBegan }: Deps, given: Given, died: (cause: Error) => void) {
  const { bus, clock, log, telemetry } = core
  const ends = createThreadBusEnds()
  const gauges = createGauges()
  const recordings = { folder: config.recordingsDir, reserve: config.recordingReserve }
  const data: ThreadSettings = {
    ...given,
    nodeId: core.nodeId,
    bus: ends.thread,
    gauges,
    recordings,
    isTelemetryOn: telemetry.isOn,
  }
  const worker = new Worker(entry, {
    workerData: data,
    transferList: [ends.thread.port],
    execArgv: [],
    name: 'media',
  })
  const host = serveThreadBus({ bus, end: ends.host, log, clock, telemetry })
  const link = createLink(worker, (error) => log.error('what a media thread told could not be done', { error }))
  const ready = Promise.withResolvers<void>()
  const exited = Promise.withResolvers<void>()
  const open = createOpenThings(core, legBegan, (callId, reason) =>
    // Of a thread that ends meanwhile nothing is left to be closed.
    far.ask('closeLeg', callId, reason).catch(() => undefined),
  )
  const far = link.to<PlaneMethods>(0)
  let [isReady, isOver] = [false, false]
  const end = (cause: Error): void => {
    if (isOver) return
    isOver = true
    isReady = false
    cancelBegin()
    watch.close()
    host.close()
    link.end(cause)
    open.end()
    ready.reject(cause)
    died(cause)
  }
  const endIt = (cause: Error): void => {
    end(cause)
    void worker.terminate()
  }
  const cancelBegin = clock.after(beginWithin, () => endIt(new Error('the thread did not begin in time')))
  const watch = watchBeat(clock, { count: () => readGauges(gauges).writes, ask: () => far.tell('beat') }, () =>
    endIt(new Error('the thread stood still')),
  )
  link.serve(0, {
    ready() {
      isReady = true
      cancelBegin()
      watch.begin()
      ready.resolve()
    },
    log: (level, message, fields) => log[level](message, fields),
    count: (...told) => telemetry.count(...told),
    observe: (...told) => telemetry.observe(...told),
    legBegan: open.legBegan,
    legEnded: open.legEnded,
    recordingBegan: open.recordingBegan,
    recordingEnded: open.recordingEnded,
  } satisfies ThreadOwner)
  worker.on('error', (error) => end(error instanceof Error ? error : new Error(String(error))))
  worker.on('exit', (code) => {
    end(new Error(`the thread ended with code ${code}`))
    exited.resolve()
  })
  const legLost = (callId: CallId, cause: Error): void =>
    bus.publish(subjectsOf(callId).legEvent, toBytes(lostBy(cause)))
  const bindAddress = given.settings.phone?.address ?? given.settings.media.address
  const loop = loopOf(worker, gauges)
  const reached = { bindAddress, externalAddress: given.settings.phone?.publicAddress ?? null }
  return {
    ready: ready.promise,
    exited: exited.promise,
    takesLines: () => isReady && !watch.isSilent(),
    gauges,
    plane: createRemotePlane({ link, clock, reached, legLost }),
    busy: busyMeterOf(loop),
    loop,
    async close() {
      if (!isOver)
        await deadline(
          clock,
          closeWithin,
          far.ask('close').then(() => exited.promise, goOn),
          goOn,
        )
      cancelBegin()
      watch.close()
      await deadline(clock, closeWithin, worker.terminate(), goOn)
    },
  }
}

const lostBy = (cause: Error): LegEvent => ({
  type: 'disconnected',
  cause: 'failed',
  details: `the thread that carried the sound is gone: ${cause.message}`,
  endedBy: 'service',
})

/** Of one thread: what ends with it. */
function createOpenThings(
  { recordings }: Deps['core'],
  legBegan: LegBegan,
  closeLeg: (callId: CallId, reason: string) => Promise<void>,
) {
  const legs = new Map<CallId, () => void>()
  const writing = new Map<string, () => void>()
  const ended = <Key>(things: Map<Key, () => void>, key: Key): void => {
    things.get(key)?.()
    things.delete(key)
  }
  return {
    legBegan: (callId: CallId) =>
      void legs.set(
        callId,
        legBegan(callId, (reason) => closeLeg(callId, reason)),
      ),
    legEnded: (callId: CallId) => ended(legs, callId),
    recordingBegan: (key: string) => void writing.set(key, recordings.beginWriting(key)),
    recordingEnded: (key: string) => ended(writing, key),
    end() {
      for (const callId of legs.keys()) ended(legs, callId)
      // Their files are as good as those of a process that was killed.
      for (const key of writing.keys()) ended(writing, key)
    },
  }
}
