/** Owns the moment at which an answering machine records: after its tone, or when it has long been silent. Pure: time is counted in frames. */
import { frameMs, type AudioFormat } from '../../../model/frame.ts'
import { createBeepDetector } from '../../../media/vad/beep-detector.ts'
import type { VoicemailSign } from './judge.ts'
import { createSpeechRuns } from './speech-runs.ts'
import { readerOf } from '../../../media/codecs/frame-bytes.ts'

export type MessageCue = {
  /** 20 ms in the format. True when the message is to be said now. */
  hear(payload: Uint8Array): boolean
}

/** Answering machines begin to record a moment after their tone. */
const afterTone = 400
/** Some have no tone. */
const silentFor = 3_000
/** A greeting that is longer is spoken into. */
const longest = 40_000

/** `signs` are those by which the answering machine was known. */
export function createMessageCue(format: AudioFormat, signs: readonly VoicemailSign[]): MessageCue {
  const toSamples = readerOf(format)
  const beeps = createBeepDetector(format.rateHz)
  const runs = createSpeechRuns()
  let silent = 0
  let loud = 0
  let toneAt = signs.includes('beep') ? 0 : null
  return {
    hear(payload) {
      const samples = toSamples(payload)
      runs.hear(samples)
      if (beeps.hear(samples)) toneAt = runs.at()
      silent = runs.loudSince() === loud ? silent + frameMs : 0
      loud = runs.loudSince()
      return (toneAt !== null && runs.at() - toneAt >= afterTone) || silent >= silentFor || runs.at() >= longest
    },
  }
}
