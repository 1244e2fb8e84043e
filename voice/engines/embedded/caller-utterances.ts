/**
 * Owns what one caller says: frames in, and out when they began and ended to speak and what was understood. Time is counted in frames. Speech
 * reaches the recogniser while it is spoken, with what came just before it.
 */
import { frameMs } from '../../../model/frame.ts'
import { createCallerSpeech, type CallerSpeech, type Understood } from './caller-speech.ts'
import type { Understanding } from './grammar.ts'
import type { Recognition } from './recognition.ts'
import type { Meaning } from '../../script/phrases.ts'
import { createVoiceActivity, levelOf } from '../../../media/vad/voice-activity.ts'
import type { VoiceDetector } from '../../../media/vad/voice-detector.ts'

/** Times are ms on the caller's line. */
export type Heard = Understood & {
  readonly from: number
  readonly to: number
  /** The step of the script when it began. */
  readonly step: number
}

export type CallerUtterances = {
  /** 20 ms at 16 kHz: what is shorter is filled up with silence, what is longer cut off. */
  hear(samples: Int16Array): void
  /** Somebody speaks, or what was said is not understood yet. */
  busy(): boolean
  /** Ms heard so far. */
  at(): number
  /** The line is closed: who speaks has spoken. Resolves when what was said has been told; never rejects. */
  hearOut(): Promise<void>
  /** Idempotent. */
  close(): void
}

type Deps = {
  readonly recognition: Recognition
  readonly detector: VoiceDetector
  expected(): { readonly understanding: Understanding<Meaning>; readonly step: number }
  onStarted(at: number): void
  onPartial(text: string, meaning: Meaning, from: number, to: number): void
  onStopped(at: number): void
  /** Once per utterance, in their order. */
  onHeard(heard: Heard): void
}

/** 20 ms at 16 kHz. */
const frameSamples = 320
const preRollFrames = 300 / frameMs
/** The pre-roll and the frames that it takes to be sure of speech. */
const recentFrames = preRollFrames + 10
const maxFrames = 15_000 / frameMs
/** Words are understood with silence behind them, which a line that was closed behind the last one does not bring. */
const lastFrames = 300 / frameMs
/** Root mean square of the loudest frame of a beginning, where the recogniser understands best: found by trying. */
const likedLevel = 800
const maxGain = 16

export function createCallerUtterances(deps: Deps): CallerUtterances {
  const activity = createVoiceActivity()
  let recent: Int16Array[] = []
  let speaking: { readonly speech: CallerSpeech; readonly step: number; readonly from: number } | null = null
  let frames = 0
  let unsettled = 0
  let closed = false
  let results = Promise.resolve()

  const at = (): number => frames * frameMs
  const begin = (ago: number): void => {
    const { understanding, step } = deps.expected()
    const from = (frames - 1 - ago) * frameMs
    const onText = (text: string, meaning: Meaning): void => {
      if (!closed && speaking?.speech === speech) deps.onPartial(text, meaning, from, at())
    }
    const gain = gainOf(recent.slice(-1 - ago))
    const speech = createCallerSpeech({ recognition: deps.recognition, understanding, gain, onText })
    for (const frame of recent.slice(-1 - ago - preRollFrames)) speech.add(frame)
    speaking = { speech, step, from }
    unsettled++
    deps.onStarted(from)
  }
  const stop = (ago: number): void => {
    if (speaking === null) return
    const { speech, step, from } = speaking
    const to = (frames - ago) * frameMs
    speaking = null
    deps.onStopped(to)
    const end = speech.end()
    results = results.then(async () => {
      const understood = await end
      unsettled--
      if (!closed) deps.onHeard({ ...understood, step, from, to })
    })
  }

  return {
    hear(samples) {
      if (closed) return
      frames++
      const frame = wholeFrameOf(samples)
      recent = [...recent, frame].slice(-recentFrames)
      const pause = speaking?.speech.pause()
      const event = activity.next(deps.detector.isVoice(frame), levelOf(frame), pause === 'short', pause === 'long')
      if (event?.type === 'started') return begin(event.ago)
      speaking?.speech.add(frame)
      if (event?.type === 'stopped') return stop(event.ago)
      if ((speaking?.speech.frames() ?? 0) < maxFrames) return
      activity.reset()
      stop(0)
    },
    busy: () => unsettled > 0,
    at,
    async hearOut() {
      for (let left = closed ? 0 : lastFrames; left > 0 && speaking !== null; left--) {
        frames++
        speaking.speech.add(new Int16Array(frameSamples))
      }
      stop(lastFrames)
      await results
    },
    close() {
      if (closed) return
      closed = true
      speaking?.speech.drop()
      deps.detector.close()
    },
  }
}

/** The detector and the recogniser take no other size, and the recogniser is not this caller's alone. */
function wholeFrameOf(samples: Int16Array): Int16Array {
  const frame = new Int16Array(frameSamples)
  frame.set(samples.subarray(0, frameSamples))
  return frame
}

const gainOf = (spoken: readonly Int16Array[]): number =>
  Math.min(maxGain, likedLevel / Math.max(1, ...spoken.map(levelOf)))
