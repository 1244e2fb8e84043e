/**
 * Owns the sound of one leg: the stages of both directions and the recording. They are made when it is known what was negotiated, what the
 * actor hears and speaks, and that the caller is there; and made anew when one of these changes. What is queued, counted, listened to and
 * recorded goes on when only the codec changes.
 */
import { isDeepStrictEqual } from 'node:util'
import type { AudioFormat, Frame, LineFormats } from '../../model/frame.ts'
import type { LegCommand, RecordedParts } from '../../model/leg.ts'
import type { Log } from '../../model/log.ts'
import { partKeyOf, type RecordingStore } from '../../model/recording-store.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import { frameBytesOf } from '../codecs/frame-bytes.ts'
import type { OpusLibrary } from '../codecs/opus.ts'
import { createRecording, type Recording } from '../recording/recording.ts'
import type { JitterBufferStats } from '../rtp/jitter-buffer.ts'
import { createListening } from './listening.ts'
import { createStandIn } from './stand-in.ts'
import { createPacer, type AgentLine, type Pacer } from './pacer.ts'
import { createReceiver, type Receiver } from './receiver.ts'
import { downStages, isMadeAnew, isSupervised, upStages } from './stages.ts'

export type StartCommand = Extract<LegCommand, { readonly type: 'start' }>

export type LegMedia = {
  readonly negotiated: (audio: NegotiatedAudio) => void
  /** The caller is there. Called once. */
  readonly live: () => void
  /** Answers with the formats that were chosen. `goesOn`: what is queued is played before; `isBehind`: it will be. */
  readonly start: (command: StartCommand, goesOn: boolean) => LineFormats & { readonly isBehind: boolean }
  readonly packet: (packet: RtpPacket) => void
  /** A frame of the agent. */
  readonly push: (frame: Frame) => void
  /** Answers as `lastPlayedSeq`. */
  readonly flush: () => number
  /** What the agent says is sent again from the first frame that is missing. Answers as `played` and `taken` of `caught_up`. */
  readonly rewind: Pacer['rewind']
  /** What is recorded from here on, if anything is. */
  readonly record: (parts: RecordedParts) => void
  /** Who listens, and whether one of them speaks in the agent's place. */
  readonly supervise: (wanted: { readonly listens: boolean; readonly voice: boolean }) => void
  /** Of a supervisor. */
  readonly voice: (frame: Frame) => void
  /** Null: no telephone events were negotiated. False: too many keys wait already. */
  readonly press: (digits: string) => boolean | null
  /** `listens`: the peer hears us all the same. */
  readonly hold: (isHeld: boolean, listens?: boolean) => void
  /** Percent of packets to the caller that get lost. */
  readonly expectLoss: (percent: number) => void
  /** As the ticker tells it. */
  readonly tick: (at: number, lateMs: number) => void
  /** Half a tick later. */
  readonly halfway: () => void
  readonly stats: () => MediaStats
  /** The caller is gone: what came of them before is heard now. */
  readonly end: () => void
  /**
   * Frees codecs and completes the recording, which goes up to `at`; resolves with the ms from the beginning of the call's recording to there, null when
   * there is none. Idempotent.
   */
  readonly finish: (at: number) => Promise<number | null>
  /** False: the disk did not take all of it. */
  readonly isRecordingWhole: () => boolean
}

export type MediaStats = {
  /** Null before the negotiation. */
  readonly received: JitterBufferStats | null
  /** Frames of the caller that came too far ahead of time. */
  readonly callerFramesDropped: number
  /** Of the sound that was heard in place of lost packets and is a guess. */
  readonly concealedMs: number
  /** Frames of the agent that had a wrong size, were out of order or too many. */
  readonly agentFramesDropped: number
  /** Frames of the agent that were sent more than 10 ms after they were due. */
  readonly agentFramesLate: number
}

export type LegMediaDeps = {
  readonly opus: OpusLibrary
  readonly recordings: Pick<RecordingStore, 'create'>
  /** The call had another leg before: what is recorded here is a part of its own. */
  readonly isFurther?: boolean
  readonly log: Log
  readonly now: () => number
  readonly send: (packet: RtpPacket) => void
  /** One frame of the caller; the payload is valid during the call only. */
  readonly heard: (frame: Frame) => void
  readonly dtmf: (digit: string) => void
  /** A key was found in the sound; null: none are looked for. */
  readonly keyHeard: ((digit: string) => void) | null
  readonly sounding: (seq: number) => void
  readonly drained: (lastPlayedSeq: number) => void
  /** 20 ms of both sides, for supervisors. Given away. */
  readonly overheard: (frame: Frame) => void
  /** Nothing comes of the supervisor who is to speak. */
  readonly voiceLost: () => void
  /** Of the process that an actor is in: nothing is heard of it any more. Absent: nobody knows. */
  readonly isSilent?: (node: string) => boolean
}

export function createLegMedia(deps: LegMediaDeps): LegMedia {
  const { opus, log } = deps
  const pacer = createPacer(deps)
  const { isWaiting } = pacer
  const receiver = createReceiver(deps)
  const supervisors = {
    listening: createListening(deps.overheard),
    standIn: createStandIn(deps.now, deps.voiceLost),
  }
  const { listening, standIn } = supervisors
  let audio: NegotiatedAudio | null = null
  let session: (LineFormats & Omit<StartCommand, keyof LineFormats>) | null = null
  let recording: PlacedRecording | null = null
  let recorded: RecordedParts = 'both'
  let isLive = false
  let finished = false

  const isAlone = (): boolean => session?.node !== undefined && deps.isSilent?.(session.node) === true
  const agentLine = (negotiated: NegotiatedAudio, speaks: AudioFormat): AgentLine => ({
    audio: negotiated,
    stages: downStages({ audio: negotiated, opus, recording, speaks, isWaiting, isAlone, supervisors }),
  })

  const open = () => {
    if (audio === null || !isLive || finished) return
    // Nobody speaks yet: a peer that wants packets all the time gets them from its connection on.
    if (session === null) return pacer.use(audio.silence === 'sparse' ? null : agentLine(audio, quiet))
    recording ??= recordingOf(deps, audio, session)
    recording?.record(recorded)
    // Keys that come as events have no sound, or one that is not to be told again.
    const keyHeard = isWithKeys(audio) ? null : deps.keyHeard
    receiver.use(upStages({ audio, opus, recording, hears: session.hears, keyHeard, supervisors }), session)
    pacer.use(agentLine(audio, session.speaks))
  }

  const begin = (agreed: NegotiatedAudio) => {
    receiver.begin(agreed)
    recording?.restartCaller(agreed.clockRateHz)
  }

  return {
    negotiated(agreed) {
      if (isDeepStrictEqual(audio, agreed)) return
      audio = agreed
      begin(agreed)
      open()
    },
    live() {
      isLive = true
      open()
    },
    start(command, goesOn) {
      const formats = formatsOf(command, audio)
      const isBehind = goesOn && isDeepStrictEqual(session?.speaks, formats.speaks)
      session = { ...command, ...formats }
      recorded = partsOf(command)
      if (!isBehind) pacer.restart(frameBytesOf(formats.speaks))
      open()
      return { ...formats, isBehind }
    },
    packet: receiver.packet,
    push: (frame) => pushed(pacer, frame, log),
    flush: pacer.flush,
    rewind: pacer.rewind,
    record(parts) {
      recorded = parts
      recording?.record(parts)
    },
    supervise({ listens, voice }) {
      const was = isSupervised(supervisors)
      listening.set(listens)
      standIn.set(voice)
      if (audio && isMadeAnew(audio) && was !== isSupervised(supervisors)) open()
    },
    voice: standIn.push,
    press: (digits) => (isWithKeys(audio) ? pacer.press(digits) : null),
    hold(isHeld, listens = false) {
      pacer.hold(isHeld && !listens)
      // Who comes back from hold goes on where nobody knows.
      if (audio !== null && !isHeld) begin(audio)
    },
    expectLoss: pacer.expectLoss,
    tick(at, lateMs) {
      receiver.tick()
      pacer.tick(at, lateMs)
      if (isSupervised(supervisors)) {
        listening.tick()
        standIn.tick()
      }
      recording?.tick(at)
    },
    halfway: pacer.halfway,
    stats: () => statsOf(receiver, pacer),
    end: receiver.end,
    finish: async (at) => {
      finished = true
      try {
        receiver.close()
        pacer.use(null)
      } catch (error) {
        log.error('the sound of a call could not be closed', { error })
      }
      return recording === null ? null : recording.from + (await recording.finish(at))
    },
    isRecordingWhole: () => recording?.isWhole() ?? true,
  }
}

export const partsOf = ({ recording }: Pick<StartCommand, 'recording'>): RecordedParts =>
  recording === null ? 'none' : (recording.parts ?? 'both')

function pushed(pacer: Pacer, frame: Frame, log: Log): void {
  if (!pacer.push(frame) && pacer.dropped() === 1) log.warn('frames of the agent are dropped', { seq: frame.seq })
}

const statsOf = (receiver: Receiver, pacer: Pacer): MediaStats => ({
  received: receiver.stats(),
  callerFramesDropped: receiver.dropped(),
  concealedMs: receiver.concealedMs(),
  agentFramesDropped: pacer.dropped(),
  agentFramesLate: pacer.late(),
})

const isWithKeys = (audio: NegotiatedAudio | null): boolean => (audio?.telephoneEventPayloadType ?? null) !== null

const formatsOf = ({ hears, speaks }: StartCommand, audio: NegotiatedAudio | null): LineFormats => ({
  hears: chosenOf(hears, audio),
  speaks: chosenOf(speaks, audio),
})

/** G.711 goes through untouched where both sides have the same law. */
function chosenOf([first, ...rest]: readonly AudioFormat[], audio: NegotiatedAudio | null): AudioFormat {
  if (first === undefined) throw new Error('a list of formats is empty')
  return [first, ...rest].find(({ encoding }) => encoding === audio?.codec) ?? first
}

/** For a line on which no actor speaks yet. */
const quiet = { encoding: 'pcm16', rateHz: 8000 } as const

/** `from`: where it begins on the call's line of time, in ms. */
type PlacedRecording = Recording & { readonly from: number }

function recordingOf(
  { recordings, now, isFurther = false }: LegMediaDeps,
  audio: NegotiatedAudio,
  { recording }: Pick<StartCommand, 'recording'>,
): PlacedRecording | null {
  if (recording === null) return null
  const { key, mode, from } = recording
  if (isFurther && from === undefined) return null
  const writer = recordings.create(isFurther && from !== undefined ? partKeyOf(key, from) : key)
  const begun = createRecording({ writer, mode, startedAt: now(), clockRateHz: audio.clockRateHz })
  return { ...begun, from: isFurther && from !== undefined ? from : 0 }
}
