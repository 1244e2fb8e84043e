/**
 * Owns what one caller says: frames in, and out when they began and ended to speak and what was understood. Time is counted in frames, so the
 * same sound gives the same answers. Speech reaches the recogniser while it is spoken, with what came just before it.
 */
import { frameMs } from '../../../model/frame.ts'
import { isPhone, type Understanding } from './grammar.ts'
import type { Hearing } from './hearing.ts'
import type { Meaning } from './phrases.ts'
import type { HeardWords, Utterance } from './utterance.ts'
import { createVoiceActivity, levelOf } from './voice-activity.ts'
import type { VoiceDetector } from './voice-detector.ts'

/** What one utterance came to. Times are ms on the caller's line. */
export type Heard = {
  readonly from: number
  readonly to: number
  /** Empty when it was no speech, or none that fits. */
  readonly text: string
  readonly meaning: Meaning | null
  /** 0 to 1. */
  readonly confidence: number
  /** A cough, a bang or nothing at all. */
  readonly isNoise: boolean
  /** What was expected when it began. */
  readonly step: number
}

export type CallerEar = {
  /** 20 ms at 16 kHz. */
  hear(samples: Int16Array): void
  /** Somebody speaks, or what was said is not understood yet. */
  busy(): boolean
  /** Ms heard so far. */
  at(): number
  close(): void
}

type Deps = {
  readonly hearing: Hearing
  readonly detector: VoiceDetector
  expected(): { readonly understanding: Understanding<Meaning>; readonly step: number }
  onStarted(at: number): void
  onPartial(text: string, from: number, to: number): void
  onStopped(at: number): void
  /** Once per utterance, in their order. */
  onHeard(heard: Heard): void
}

type Speech = {
  readonly utterance: Utterance
  readonly understanding: Understanding<Meaning>
  readonly step: number
  readonly from: number
  text: string
  isComplete: boolean
  chunk: Int16Array<ArrayBuffer>[]
  frames: number
}

const preRollFrames = 300 / frameMs
const recentFrames = preRollFrames + 10
/** The recogniser gets 60 ms at a time. */
const chunkFrames = 3
const maxFrames = 15_000 / frameMs
/** Root mean square of the loudest frames, where the recogniser's model understands best: found by trying. */
const likedLevel = 800
const maxGain = 16
/** Acoustic score per 10 ms: what scores lower is something else. Clear speech has about -12. Found by trying with four voices. */
const worstScore = -38
const bestScore = -12
/** Fewer phones than this are a noise that looked like speech. */
const speechPhones = 3

export function createCallerEar(deps: Deps): CallerEar {
  const activity = createVoiceActivity()
  let recent: Int16Array<ArrayBuffer>[] = []
  let speech: Speech | null = null
  let frames = 0
  let unsettled = 0
  let closed = false
  let results = Promise.resolve()

  const begin = (ago: number): void => {
    const spoken = recent.slice(-1 - ago)
    const loudest = Math.max(1, ...spoken.map(levelOf))
    const { understanding, step } = deps.expected()
    const from = (frames - 1 - ago) * frameMs
    const onPartial = (words: readonly string[]): void => partial(started, words)
    const utterance = deps.hearing.listen(understanding.grammar, Math.min(maxGain, likedLevel / loudest), onPartial)
    const chunk = recent.slice(-1 - ago - preRollFrames)
    const started: Speech = { utterance, understanding, step, from, text: '', isComplete: false, chunk, frames: 0 }
    speech = started
    unsettled++
    deps.onStarted(from)
  }
  const partial = (of: Speech, words: readonly string[]): void => {
    of.isComplete = of.understanding.understand(words) !== null
    const text = words.join(' ')
    if (closed || of !== speech || text === of.text || text === '' || words.some(isPhone)) return
    of.text = text
    deps.onPartial(text, of.from, frames * frameMs)
  }
  const feed = (to: Speech): void => {
    if (to.chunk.length > 0) to.utterance.feed(concatenated(to.chunk))
    to.chunk = []
  }
  const stop = (ended: Speech, ago: number): void => {
    const to = (frames - ago) * frameMs
    feed(ended)
    speech = null
    deps.onStopped(to)
    const result = ended.utterance.end()
    results = results.then(async () => {
      const words = await result
      unsettled--
      if (!closed) deps.onHeard(heardOf(ended, words, to))
    })
  }

  return {
    hear(samples) {
      if (closed) return
      frames++
      const frame = samples.slice()
      recent = [...recent, frame].slice(-recentFrames)
      const event = activity.next(deps.detector.isVoice(frame), levelOf(frame), speech?.isComplete ?? false)
      if (event?.type === 'started') return begin(event.ago)
      if (speech === null) return
      speech.chunk.push(frame)
      speech.frames++
      if (speech.chunk.length >= chunkFrames) feed(speech)
      if (event?.type === 'stopped') return stop(speech, event.ago)
      if (speech.frames >= maxFrames) {
        activity.reset()
        stop(speech, 0)
      }
    },
    busy: () => speech !== null || unsettled > 0,
    at: () => frames * frameMs,
    close() {
      if (closed) return
      closed = true
      speech?.utterance.drop()
      speech = null
      deps.detector.close()
    },
  }
}

function heardOf({ from, understanding, step }: Speech, heard: HeardWords | null, to: number): Heard {
  const words = heard?.words ?? []
  const confidence = confidenceOf(heard?.score ?? worstScore)
  const certain = heard !== null && heard.score >= worstScore
  const meaning = certain ? understanding.understand(words) : null
  const isNoise = meaning === null && (words.length === 0 || (words.every(isPhone) && words.length < speechPhones))
  return meaning === null
    ? { from, to, text: '', meaning, confidence: 0, isNoise, step }
    : { from, to, text: words.join(' '), meaning, confidence, isNoise, step }
}

/** Straight from 0.3 at the worst score that is accepted to 1 at the best. */
function confidenceOf(score: number): number {
  const share = (score - worstScore) / (bestScore - worstScore)
  return Math.round(100 * Math.max(0, Math.min(1, 0.3 + 0.7 * share))) / 100
}

function concatenated(frames: readonly Int16Array[]): Int16Array<ArrayBuffer> {
  const whole = new Int16Array(frames.reduce((sum, frame) => sum + frame.length, 0))
  let at = 0
  for (const frame of frames) {
    whole.set(frame, at)
    at += frame.length
  }
  return whole
}
