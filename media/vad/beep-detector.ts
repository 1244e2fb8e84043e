/**
 * Owns hearing the beep after which a voicemail records: one steady tone of 150 to 1500 ms that stands well above everything else, stops, and
 * is followed by quiet. Voices and music are not steady or not one tone, keys and American ring-back are two tones, and what is left
 * of call progress tones comes in a cadence (ITU-T E.180). Pure.
 */
import { createDcOffset } from '../pcm/dc-offset.ts'
import { frameMs } from '../../model/frame.ts'
import { createToneFinder, highestTone, lowestTone, type Tone } from './tone.ts'
import { levelOf } from './voice-activity.ts'

export type BeepDetector = {
  /** One frame of 20 ms. True once, when a beep has ended: 200 ms after it, 1.5 s where it might be a busy tone. */
  readonly hear: (samples: Int16Array) => boolean
}

type Run = { hertz: number; level: number; frames: number; readonly startedAt: number }
type Candidate = { readonly hertz: number; readonly level: number; readonly endedAt: number; readonly wait: number }

/** All else lies 10 dB below the tone. */
const pure = 0.9
/** In frames that the tone fills; those at its edges it does not. */
const shortest = 6
const longest = 1500 / frameMs
/** A note of a tune, or a signal of three tones: another tone was there so shortly before. */
const tuneGap = 400 / frameMs
const audibleTone = 4
/** Frames in which a tone may fade, and those that must be quiet after it. */
const fading = 2
const quiet = 200 / frameMs
/** Dial, busy and ring-back tones of one frequency: longer ones ring, repeated ones are busy. */
const isOfProgress = (hertz: number) => hertz > 380 && hertz < 500
const longestOfProgress = 700 / frameMs
const cadence = 1500 / frameMs

export function createBeepDetector(rateHz: number): BeepDetector {
  const finder = createToneFinder(rateHz)
  const offset = createDcOffset()
  let frame = 0
  let run: Run | null = null
  let candidate: Candidate | null = null
  let lastTone: { readonly hertz: number; readonly endedAt: number } | null = null

  const isOneOfMany = ({ hertz, startedAt }: Run): boolean =>
    lastTone !== null && startedAt - lastTone.endedAt < tuneGap && !isNear(lastTone.hertz, hertz)

  const isBeep = (ended: Run): boolean => {
    const most = isOfProgress(ended.hertz) ? longestOfProgress : longest
    const inBand = ended.hertz >= lowestTone && ended.hertz <= highestTone
    return inBand && ended.frames >= shortest && ended.frames <= most && !isOneOfMany(ended)
  }

  const end = (ended: Run) => {
    const { hertz, level } = ended
    if (isBeep(ended)) candidate = { hertz, level, endedAt: frame, wait: isOfProgress(hertz) ? cadence : quiet }
    if (ended.frames >= audibleTone) lastTone = { hertz, endedAt: frame }
  }

  const follow = (tone: Tone | null) => {
    if (run && tone && continues(run, tone)) return extend(run, tone)
    if (run) end(run)
    run = tone && { hertz: tone.hertz, level: tone.level, frames: 1, startedAt: frame }
  }

  const isContradicted = ({ hertz, level, endedAt }: Candidate, now: number): boolean => {
    const passed = frame - endedAt
    if (passed <= fading) return false
    if (passed <= quiet) return now > level * 0.55
    return run !== null && run.frames >= audibleTone && isNear(run.hertz, hertz)
  }

  return {
    hear(given) {
      const samples = offset.without(given)
      frame++
      const tone = finder.find(samples)
      follow(tone && tone.purity >= pure ? tone : null)
      if (candidate === null) return false
      if (isContradicted(candidate, levelOf(samples))) candidate = null
      const hasEnded = candidate !== null && frame - candidate.endedAt >= candidate.wait
      if (hasEnded) candidate = null
      return hasEnded
    },
  }
}

/** Within 3 dB and what one frame can tell of a frequency. */
const continues = (run: Run, tone: Tone): boolean =>
  Math.abs(tone.hertz - run.hertz) <= 12 && tone.level < run.level * 1.4 && tone.level > run.level * 0.7

function extend(run: Run, tone: Tone): void {
  run.frames++
  run.hertz += (tone.hertz - run.hertz) / run.frames
  run.level += (tone.level - run.level) / run.frames
}

const isNear = (one: number, other: number): boolean => Math.abs(one - other) <= one * 0.03
