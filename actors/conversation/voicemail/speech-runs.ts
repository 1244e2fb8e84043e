/**
 * Owns unbroken talk: frames of the other side become runs of sound, and of each is known how long it is and whether it is built like speech –
 * loud and soft by syllables, voiced and hissing by turns – or like music and tones, which are steady. Pure: time is counted in frames.
 */
import { frameMs } from '../../../model/frame.ts'

export type SpeechRun = {
  /** Ms on the line, from the first sound to the last. */
  readonly from: number
  readonly to: number
}

export type SpeechRuns = {
  /** 20 ms. */
  hear(samples: Int16Array): void
  /** Ms heard so far. */
  at(): number
  /** The run that goes on, or the newest one; null before any sound. Clicks are none. Its `to` moves as long as it goes on. */
  newest(): SpeechRun | null
  /** The newest run is built like speech. */
  isSpeech(): boolean
  /** True while the newest run may go on. */
  goesOn(): boolean
  /** How many there were, the newest included. */
  count(): number
  /** Sound of this much, ms, since the newest `forget`: what was loud in it, all together. */
  loudSince(): number
  forget(): void
}

/** A pause as long as this ends a run; recorded greetings breathe shorter. */
const maxPause = 1_200
/** Less sound than this is a click. */
const leastSound = 160
/** Root mean square: about -46 dB of full scale, and so many times the noise of the line. */
const faintest = 160
const aboveNoise = 3

type Run = { from: number; to: number; frames: number[]; crossings: number[]; loud: number }

export function createSpeechRuns(): SpeechRuns {
  const noise = createNoiseFloor()
  let at = 0
  let run: Run | null = null
  let isCounted = false
  let count = 0
  let newest: Run | null = null
  let loudSince = 0

  const loud = (level: number, crossings: number): void => {
    run ??= { from: at, to: at, frames: [], crossings: [], loud: 0 }
    run.to = at + frameMs
    run.loud += frameMs
    run.crossings.push(crossings)
    run.frames.push(level)
    loudSince += frameMs
    if (isCounted || run.loud < leastSound) return
    isCounted = true
    count++
    newest = run
  }
  const quiet = (level: number): void => {
    run?.frames.push(level)
    if (run === null || at - run.to < maxPause) return
    run = null
    isCounted = false
  }
  return {
    hear(samples) {
      const level = levelOf(samples)
      if (level > Math.max(faintest, aboveNoise * noise.next(level))) loud(level, crossingsOf(samples))
      else quiet(level)
      at += frameMs
    },
    at: () => at,
    newest: () => newest,
    isSpeech: () => newest !== null && isSpeech(newest),
    goesOn: () => run !== null && isCounted,
    count: () => count,
    loudSince: () => loudSince,
    forget() {
      loudSince = 0
    },
  }
}

/** Falls at once, rises slowly. */
function createNoiseFloor() {
  let floor = 50
  return {
    next(level: number): number {
      floor = Math.min(400, level < floor ? Math.max(1, level) : floor * 1.004)
      return floor
    },
  }
}

/**
 * Found by trying, over a telephone line: in speech of four synthetic voices 0.25 to 0.36 of the time is soft and crossings of zero differ by
 * 0.67 to 1.4 of their mean; music and tones stay below 0.27, drums alone are soft for half of the time.
 */
const softShare = [0.14, 0.48] as const
const leastHiss = 0.45

function isSpeech({ from, to, frames, crossings }: Run): boolean {
  const inside = frames.slice(0, Math.max(1, (to - from) / frameMs))
  const mean = meanOf(inside)
  const soft = inside.filter((level) => level < mean * 0.35).length / inside.length
  return soft >= softShare[0] && soft <= softShare[1] && spreadOf(crossings) >= leastHiss
}

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

/** Standard deviation by the mean. */
function spreadOf(values: readonly number[]): number {
  const mean = meanOf(values)
  return Math.sqrt(meanOf(values.map((value) => (value - mean) ** 2))) / Math.max(1, mean)
}

function levelOf(samples: Int16Array): number {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  return Math.sqrt(sum / Math.max(1, samples.length))
}

function crossingsOf(samples: Int16Array): number {
  let crossings = 0
  for (let index = 1; index < samples.length; index++) if (samples[index - 1]! < 0 !== samples[index]! < 0) crossings++
  return crossings
}
