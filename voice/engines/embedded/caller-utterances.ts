/**
 * Owns what one caller says: frames in, and out when they began and ended to speak and what was understood. Time is counted in frames. Speech
 * reaches the recogniser while it is spoken, with what came just before it.
 */
import { frameMs } from '../../../model/frame.ts'
import { createCallerSpeech, type CallerSpeech, type Understood } from './caller-speech.ts'
import type { Understanding } from './grammar.ts'
import type { Recognition } from './recognition.ts'
import type { Meaning } from '../../script/phrases.ts'
import { createDcOffset } from '../../../media/pcm/dc-offset.ts'
import type { CallerActivity } from '../../../media/vad/caller-activity.ts'
import { beginningFrames, levelOf, longestAgo } from '../../../media/vad/voice-activity.ts'

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

type Speaking = {
  readonly speech: CallerSpeech
  readonly step: number
  readonly from: number
  /** Any words will do, or nobody waits for their end. */
  readonly isPatient: boolean
}

type Deps = {
  readonly recognition: Recognition
  readonly activity: CallerActivity
  /** `isHeldBack`: the agent waits for the end of it. */
  expected(): { readonly understanding: Understanding<Meaning>; readonly step: number; readonly isHeldBack: boolean }
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
const recentFrames = preRollFrames + longestAgo + 1
const maxFrames = 15_000 / frameMs
/** Words are understood with silence behind them, which a line that was closed behind the last one does not bring. */
const lastFrames = 300 / frameMs
/** So long the agent is held back by what has no word of an answer in it. */
const maxBabbleFrames = 8_000 / frameMs
/** Root mean square of the loudest frame of a beginning, where the recogniser understands best: found by trying. */
const likedLevel = 800
const maxGain = 16
const noSpeech: Understood = { text: '', meaning: null, confidence: 0, isNoise: true }

export function createCallerUtterances(deps: Deps): CallerUtterances {
  const { activity } = deps
  const leave = deps.recognition.join()
  const offset = createDcOffset()
  let recent: Int16Array[] = []
  let speaking: Speaking | null = null
  let frames = 0
  let unsettled = 0
  let closed = false
  let results = Promise.resolve()

  const at = (): number => frames * frameMs
  const begin = (ago: number): void => {
    const { understanding, step, isHeldBack } = deps.expected()
    const from = (frames - 1 - ago) * frameMs
    const onText = (text: string, meaning: Meaning): void => {
      if (!closed && speaking?.speech === speech) deps.onPartial(text, meaning, from, at())
    }
    const gain = gainOf(recent.slice(-1 - ago).slice(0, beginningFrames))
    const speech = createCallerSpeech({ recognition: deps.recognition, understanding, gain, onText })
    for (const frame of recent.slice(-1 - ago - preRollFrames)) speech.add(frame)
    speaking = { speech, step, from, isPatient: understanding.dictated !== null || !isHeldBack }
    unsettled++
    deps.onStarted(from)
  }
  const stop = (ago: number, isNoVoice = false): void => {
    if (speaking === null) return
    const { speech, step, from } = speaking
    const to = (frames - ago) * frameMs
    speaking = null
    deps.onStopped(to)
    if (isNoVoice) speech.drop()
    const end = isNoVoice ? Promise.resolve(noSpeech) : speech.end()
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
      const given = wholeFrameOf(samples)
      const frame = offset.without(given).slice()
      recent = [...recent, frame].slice(-recentFrames)
      const pause = speaking?.speech.pause()
      // As it came: a constant part is taken off there too, and of what is clean already it would take off what it has heard of it before.
      const event = activity.hear(given, pause === 'short', pause === 'long')
      if (event?.type === 'started') return begin(event.ago)
      speaking?.speech.add(frame)
      if (event?.type === 'stopped') return stop(event.ago, event.isNoVoice)
      if (speaking === null) return
      if (isBabble(speaking)) {
        activity.ignore()
        return stop(0, true)
      }
      if (speaking.speech.frames() < maxFrames) return
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
      activity.close()
      leave()
    },
  }
}

/** Nobody answers in this way: it is music, or somebody who does not speak to the agent. */
const isBabble = ({ speech, isPatient }: Speaking): boolean =>
  !isPatient && speech.frames() >= maxBabbleFrames && !speech.hasAnswer()

/** The detector and the recogniser take no other size, and the recogniser is not this caller's alone. */
function wholeFrameOf(samples: Int16Array): Int16Array {
  const frame = new Int16Array(frameSamples)
  frame.set(samples.subarray(0, frameSamples))
  return frame
}

const gainOf = (spoken: readonly Int16Array[]): number =>
  Math.min(maxGain, likedLevel / Math.max(1, ...spoken.map(levelOf)))
