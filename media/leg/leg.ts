/**
 * Owns one leg: the media end of a call on the bus. It answers commands, tells events, carries frames both ways and knows no
 * business rule. It outlives its actor: commands and frames of an actor that was taken over are refused by their epoch.
 */
import { subjectsOf, type Bus, type Subscription } from '../../model/bus.ts'
import { toBytes } from '../../model/bus-json.ts'
import { toCallQuality } from '../../model/call-quality.ts'
import { decodeFrame, encodeFrame } from '../../model/frame.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { ClosedLeg, LegEvent } from '../../model/leg.ts'
import { createRecentQuality, qualitySubjectOf, qualityToldEvery } from '../../model/live-quality.ts'
import type { Log } from '../../model/log.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import type {
  LegHandlers,
  LegSignaling,
  NegotiatedAudio,
  RtpTransport,
  TransportStats,
} from '../../model/rtp-transport.ts'
import { noTelemetry, type Telemetry } from '../../model/telemetry.ts'
import { atOnce, type InTurn } from '../../model/in-turn.ts'
import { createKeyPresses } from './key-presses.ts'
import { createKeptFrames, type KeptFrames } from './kept-frames.ts'
import { createLegCommands } from './leg-commands.ts'
import { createLegEnding, type LegEnding } from './leg-ending.ts'
import { createLegCapture, type LegCapture } from './leg-capture.ts'
import { createLegMedia, partsOf, type LegMedia } from './leg-media.ts'
import { qualityOf, tellQuality, type LegStats } from './leg-quality.ts'
import { createLegTelephone } from './leg-telephone.ts'
import { createLossWatch } from './loss-watch.ts'
import { createLegWire, type LegWire } from './leg-wire.ts'
import type { OpusLibrary } from '../codecs/opus.ts'
import type { Ticker } from '../ticker/ticker.ts'

export type LegDeps = {
  readonly callId: CallId
  /** Of the process that the leg is in; absent: no actor is taken for one of another. */
  readonly nodeId?: NodeId
  readonly bus: Bus
  readonly ticker: Ticker
  readonly opus: OpusLibrary
  readonly recordings: Pick<RecordingStore, 'create'>
  /** The call had another leg before this one. */
  readonly isFurther?: boolean
  readonly log: Log
  readonly telemetry?: Telemetry
  /** The ticker's own time: milliseconds that never jump. */
  readonly now: () => number
  /** Ms since the epoch when `now` was 0: captures tell times by it. */
  readonly timeOrigin?: number
  /** As in leg-media.ts. */
  readonly isSilent?: (node: string) => boolean
  /** Null where there is none: a browser. */
  readonly signaling: LegSignaling | null
  /** Its beginning and its end have their turn; absent: at once. */
  readonly inTurn?: InTurn
  /** Keys are looked for in the sound of a telephone that agreed to no telephone events. */
  readonly inbandKeys?: boolean
  /** Ms from the leg's beginning to its connection; a telephone may ring for long. */
  readonly connectWithin: number
  /** Told once, when nothing of the leg is left. */
  readonly onClosed: () => void
}

export type Leg = {
  /** What the transport under the leg calls. */
  readonly handlers: LegHandlers
  /** Gives the leg its transport; it belongs to the leg from here on. */
  readonly attach: (transport: RtpTransport) => void
  /** A key press that came another way than by RTP. */
  readonly dtmf: (digit: string) => void
  /** Words for the agent that were typed. */
  readonly typed: (text: string) => void
  /** The caller hung up by another way than the media's: resolves when the media end is closed and the recording complete. */
  readonly hangUp: (details: string) => Promise<void>
  readonly stats: () => LegStats
  /** Idempotent; tells no event. `reason` as in RtpTransport. */
  readonly close: (reason?: string) => Promise<void>
}

/** Ms from the connection to an actor that talks. It may still ask its worker request, which takes 30 s at most. */
const startWithin = 60_000
/** Reports come every few seconds. */
const ticksPerLook = 25
const ticksPerTelling = qualityToldEvery / 20

export function createLeg(deps: LegDeps): Leg {
  const { bus, log, now, inTurn = atOnce } = deps
  const subjects = subjectsOf(deps.callId)
  let audio: NegotiatedAudio | null = null

  const tell = (event: LegEvent) => bus.publish(subjects.legEvent, toBytes(event))
  const kept = createKeptFrames({ send: (frame) => bus.publish(subjects.up, encodeFrame(frame), true), tell })
  const tellDtmf = (digit: string) => kept.pressed({ type: 'dtmf', digit })
  const presses = createKeyPresses(now, tellDtmf)
  const failed = (error: unknown) => {
    log.error('leg failed', { error })
    void ending.end({ type: 'disconnected', cause: 'failed', details: 'internal error' })
  }
  /** A bug in one call's sound ends that call and no other. */
  const guarded = (action: () => void) => {
    try {
      if (!ending.isOver()) action()
    } catch (error) {
      failed(error)
    }
  }
  const media = createLegMedia({
    ...deps,
    send: (packet) => wire.send(packet),
    heard: (frame) => kept.heard(frame),
    dtmf: tellDtmf,
    keyHeard: deps.inbandKeys && deps.signaling !== null ? presses.heard : null,
    sounding: (seq) => tell({ type: 'sounding', seq }),
    drained: (lastPlayedSeq) => tell({ type: 'drained', lastPlayedSeq }),
    overheard: (frame) => bus.publish(subjects.heard, encodeFrame(frame), true),
    voiceLost: () => tell({ type: 'voice_lost' }),
  })
  const connected = (providerStatus: string) => {
    tell({ type: 'connected', providerStatus })
    media.live()
  }
  const wire = createLegWire({
    now,
    connectWithin: deps.connectWithin,
    negotiated: (agreed) => guarded(() => media.negotiated((audio = agreed))),
    connected: (providerStatus) => guarded(() => connected(providerStatus)),
    packet: (packet) => guarded(() => media.packet(packet)),
    held: (isHeld, listens) =>
      guarded(() => {
        media.hold(isHeld, listens)
        capture.hold(isHeld)
      }),
    disconnected: (cause, details, end) => void ending.end({ type: 'disconnected', cause, details, ...end }),
  })
  const capture = createLegCapture({ timeOrigin: 0, ...deps, transport: wire.transport })
  const release = () => {
    for (const leave of leaving) leave()
    deps.onClosed()
  }
  const stats = (): LegStats => ({ ...media.stats(), transport: wire.transport()?.stats() ?? null })
  const measured = () => {
    try {
      return audio && wire.isConnected() ? qualityOf(audio, stats()) : null
    } catch (error) {
      log.error('the quality of a call was lost', { error })
      return null
    }
  }
  const finishNow = async (reason: string, at: number): Promise<ClosedLeg> => {
    const quality = measured()
    const recordedMs = await finished(media, wire, { reason, at, log })
    await capture.finish()
    const gaps = media.isRecordingWhole() ? {} : ({ recordingIncomplete: true } as const)
    return told(deps, reason, { recordedMs, ...(quality && { quality }), ...gaps })
  }
  const finish = (reason: string, at: number): Promise<ClosedLeg> => {
    const { promise, resolve } = Promise.withResolvers<ClosedLeg>()
    inTurn(() => resolve(finishNow(reason, at)))
    return promise
  }
  const tellEnd = (event: LegEvent) => {
    try {
      media.end()
    } catch (error) {
      log.error('the end of what a caller said was lost', { error })
    }
    tell(event)
  }
  const ending = createLegEnding({ now, tell: tellEnd, finish, release })
  const telephone = telephoneEvents({ tell, wire, ending, guarded })
  const recentOf = createRecentQuality()
  const tellQualityNow = () => {
    const quality = measured()
    if (quality) bus.publish(qualitySubjectOf(deps.callId), toBytes(recentOf(quality)))
  }
  const leaving = joined(deps, {
    media,
    kept,
    wire,
    capture,
    ending,
    guarded,
    failed,
    ringing: telephone.ringing,
    tellQualityNow,
  })

  return {
    handlers: { ...wire.handlers, ...telephone.handlers },
    attach: wire.attach,
    dtmf: (digit) => guarded(() => presses.signaled(digit)),
    typed: (text) => guarded(() => kept.pressed({ type: 'typed', text })),
    hangUp: (details) => ending.end({ type: 'disconnected', cause: 'hung_up', details }),
    stats,
    close: async (reason = 'closed') => void (await ending.close(reason)),
  }
}

type Parts = {
  readonly media: LegMedia
  readonly kept: KeptFrames
  readonly wire: LegWire
  readonly capture: LegCapture
  readonly ending: LegEnding
  readonly guarded: (action: () => void) => void
  readonly failed: (error: unknown) => void
  readonly ringing: () => string | null
  readonly tellQualityNow: () => void
}

/** What a telephone line tells beyond its media. */
function telephoneEvents({
  tell,
  wire,
  ending,
  guarded,
}: Pick<Parts, 'wire' | 'ending' | 'guarded'> & { readonly tell: (event: LegEvent) => void }) {
  let rings: string | null = null
  const handlers = {
    ringing: (providerStatus) =>
      guarded(() => {
        // 180 and 183 may come several times and in any order.
        if (rings === null && !wire.isConnected()) tell({ type: 'ringing', providerStatus })
        rings ??= providerStatus
      }),
    dialFailed: (outcome, providerStatus, end) =>
      void ending.end({ type: 'dial_failed', outcome, providerStatus, ...end }),
    transferred: (providerStatus) => void ending.end({ type: 'transferred', providerStatus }),
    transferFailed: (providerStatus) => guarded(() => tell({ type: 'transfer_failed', providerStatus })),
  } satisfies Partial<LegHandlers>
  return { handlers, ringing: () => (wire.isConnected() ? null : rings) }
}

/** Puts the parts on the bus and on the beat; the results take them off. */
function joined(deps: LegDeps, parts: Parts): (() => void)[] {
  const { media, kept, wire, capture, ending, guarded, failed, ringing, tellQualityNow } = parts
  const { bus, ticker } = deps
  const subjects = subjectsOf(deps.callId)
  const { isConnected } = wire
  const { isOver } = ending
  const commands = createLegCommands({
    isConnected,
    isOver,
    ringing,
    ended: ending.told,
    start(command, goesOn) {
      capture.record(partsOf(command))
      return media.start(command, goesOn)
    },
    kept,
    node: deps.nodeId ?? null,
    isFurther: deps.isFurther === true,
    flush: media.flush,
    rewind: media.rewind,
    record(parts) {
      media.record(parts)
      capture.record(parts)
    },
    supervise(wanted) {
      hearVoice(wanted.voice)
      media.supervise(wanted)
    },
    telephone: createLegTelephone({ signaling: deps.signaling, isConnected, isOver, press: media.press }),
    failed,
    inTurn: deps.inTurn ?? atOnce,
    close: ending.close,
  })
  const play = (bytes: Uint8Array) => {
    const frame = decodeFrame(bytes)
    if (frame !== null && commands.isCurrent(frame.epoch)) media.push(frame)
  }
  const standIn = (bytes: Uint8Array) => {
    const frame = decodeFrame(bytes)
    if (frame !== null) media.voice(frame)
  }
  const loss = createLossWatch()
  const tellStranger = createStrangerReport(deps)
  let untilLook = ticksPerLook
  const lookAtTheWire = () => {
    untilLook = ticksPerLook
    const stats = wire.transport()?.stats()
    const percent = loss.news(stats?.quality?.peer ?? null)
    if (percent !== null) media.expectLoss(percent)
    if (stats) tellStranger(stats)
  }
  let untilTelling = ticksPerTelling
  const tick = (at: number, lateMs: number) => {
    media.tick(at, lateMs)
    if (--untilLook === 0) lookAtTheWire()
    if (--untilTelling === 0) {
      untilTelling = ticksPerTelling
      tellQualityNow()
    }
    const details = wire.lost()
    if (details !== null) void ending.end({ type: 'disconnected', details, ...wire.end() }, wire.heardAt())
    if (isLeftAlone()) void ending.end({ type: 'disconnected', cause: 'failed', details: 'no actor took the call' })
  }
  const isLeftAlone = () => !commands.isStarted() && deps.now() - (wire.connectedAt() ?? deps.now()) > startWithin
  let voice: Subscription | null = null
  /** Hardly a call ever has one. Who asked for it speaks when it is answered, which comes behind the subscription. */
  const hearVoice = (isOn: boolean) => {
    if (!isOn) voice?.close()
    voice = isOn ? (voice ?? bus.subscribe(subjects.voice, ({ payload }) => guarded(() => standIn(payload)))) : null
  }
  const subscriptions = [
    bus.subscribe(subjects.legCommand, commands.answer),
    bus.subscribe(subjects.legCapture, (message) => guarded(() => capture.answer(message))),
    bus.subscribe(subjects.down, ({ payload }) => guarded(() => play(payload))),
  ]
  const beat = (at: number, lateMs: number) => {
    guarded(() => tick(at, lateMs))
    ending.tick()
  }
  const leave = ticker.join(beat, () => guarded(media.halfway))
  return [leave, () => hearVoice(false), ...subscriptions.map((subscription) => () => subscription.close())]
}

/** An attack on a call is told while it runs, and once: its packets are counted. */
function createStrangerReport({ callId, log }: Pick<LegDeps, 'callId' | 'log'>): (stats: TransportStats) => void {
  let isTold = false
  return ({ dropped }) => {
    if (isTold || !dropped || dropped.strangers <= 0) return
    isTold = true
    log.warn('RTP of a stranger is dropped', { callId, personal: { address: dropped.lastStranger ?? null } })
  }
}

type Finish = { readonly reason: string; readonly at: number; readonly log: Log }

/** A recording that could not be completed is lost, the call is not. */
async function finished(media: LegMedia, wire: LegWire, { reason, at, log }: Finish): Promise<number | null> {
  const [recorded] = await Promise.allSettled([media.finish(at), wire.close(reason)])
  if (recorded.status === 'fulfilled') return recorded.value
  log.error('recording was not completed', { error: recorded.reason })
  return null
}

/** One line of the log, and what those who watch the service want to know. */
function told(
  { callId, signaling, log, telemetry = noTelemetry }: LegDeps,
  reason: string,
  closed: ClosedLeg,
): ClosedLeg {
  const { recordedMs, quality } = closed
  log.info('a leg ended', { callId, reason, recordedMs, quality: quality ? toCallQuality(quality) : null })
  if (quality) tellQuality(telemetry, quality, signaling ? 'phone' : 'web')
  return closed
}
