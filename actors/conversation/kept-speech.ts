/**
 * Owns what a caller says and presses while nobody listens to them, because something is said to its end: kept for who listens next. Only speech is kept,
 * with the pauses within it, so that whoever gets it at once hears no long silence. The agent's own sound that comes back is none.
 */
import { frameMs, type AudioFormat } from '../../model/frame.ts'
import { readerOf } from '../../media/codecs/frame-bytes.ts'
import { createResampler } from '../../media/pcm/resample.ts'
import { createOwnEcho } from '../../media/vad/own-echo.ts'
import { createSpeechRuns } from './voicemail/speech-runs.ts'

export type KeptSpeech = {
  /** 20 ms of the caller in the format that was given; copied. */
  hear(payload: Uint8Array): void
  /** What the agent says after all that it is saying. */
  says(payload: Uint8Array): void
  /** In order; nothing is kept any more afterwards. */
  take(): readonly Uint8Array[]
}

/** A run is known for one by then, and its beginning is kept as well. */
const before = 300 / frameMs
const maxFrames = 60_000 / frameMs
/** The line is held against the agent's sound in every so many frames: that costs a millisecond. */
const lookEvery = 5

type Run = { readonly frames: Uint8Array[]; looks: number; echoes: number }

export function createKeptSpeech(hears: AudioFormat, speaks: AudioFormat): KeptSpeech {
  const toSamples = readerOf(hears)
  const saidSamples = readerOf(speaks)
  const resampler = createResampler(hears.rateHz, 16_000)
  const echo = createOwnEcho(speaks.rateHz)
  const runs = createSpeechRuns()
  let kept: Uint8Array[] = []
  let recent: Uint8Array[] = []
  let run: Run | null = null

  const close = (): void => {
    if (run && run.echoes * 2 <= run.looks) kept = [...kept, ...run.frames].slice(-maxFrames)
    run = null
  }
  const follow = (copy: Uint8Array): void => {
    run ??= { frames: recent.splice(0), looks: 0, echoes: 0 }
    run.frames.push(copy)
    if (run.frames.length > maxFrames) run.frames.shift()
    if (run.frames.length % lookEvery !== 0) return
    run.looks++
    if (echo.isEcho()) run.echoes++
  }
  return {
    hear(payload) {
      const copy = payload.slice()
      const samples = toSamples(copy)
      echo.hear(resampler?.convert(samples) ?? samples)
      runs.hear(samples)
      if (runs.goesOn()) return follow(copy)
      close()
      recent = [...recent, copy].slice(-before)
    },
    says: (payload) => echo.says(saidSamples(payload).slice()),
    take() {
      close()
      return kept.splice(0)
    },
  }
}
