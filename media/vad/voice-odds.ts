/**
 * Owns how likely a sound is a voice rather than music, frame by frame: traits of the last 200 ms and the last second go through a small network.
 * Pure; some 15 µs for a frame that is heard, nothing for silence.
 */
import { createSoundTraits, traits } from './sound-traits.ts'
import { createTraitWindows, summaries } from './trait-windows.ts'
import { hidden, inputMeans, inputSpreads, inputWeights, outputBias, outputWeights } from './voice-odds-weights.ts'

export type VoiceOdds = {
  /** One frame of 20 ms at 16 kHz, its root mean square in dB beside it. `isHeard`: it stands out from the noise of the line. */
  hear(samples: Int16Array, level: number, isHeard: boolean): void
  /** Natural logarithm of the odds: above 0 rather a voice. Of silence that of the last sound. */
  odds(): number
  /** Frames that were heard since half a second of silence. */
  heard(): number
}

/** Frames without sound after which what was heard says nothing of what comes. */
const forgetAfter = 25
/** Spreads from the mean: what is farther off was never learned. */
const farthest = 4
/** Of the level, for pauses: what is quieter is as quiet. dB. */
const quietest = 30

export function createVoiceOdds(): VoiceOdds {
  const sound = createSoundTraits()
  const windows = createTraitWindows()
  const values = new Float64Array(traits)
  const summary = new Float64Array(summaries)
  let silent = 0
  let newest = 0

  const clear = (): void => {
    windows.clear()
    sound.clear()
    newest = 0
  }
  return {
    hear(samples, level, isHeard) {
      sound.push(samples)
      silent = isHeard ? 0 : silent + 1
      if (silent > forgetAfter) return clear()
      if (isHeard) {
        sound.measure(level, values)
      } else {
        values.fill(0)
        values[0] = Math.max(quietest, level)
      }
      if (isHeard || windows.heard() > 0) windows.add(values, isHeard)
      if (!isHeard) return
      windows.summarise(summary)
      newest = oddsOf(summary)
    },
    odds: () => newest,
    heard: () => windows.heard(),
  }
}

function oddsOf(summary: Float64Array): number {
  for (let input = 0; input < summaries; input++) {
    const off = (summary[input]! - inputMeans[input]!) / inputSpreads[input]!
    summary[input] = Math.max(-farthest, Math.min(farthest, off))
  }
  let odds = outputBias
  for (let unit = 0; unit < hidden; unit++) {
    const weights = inputWeights[unit]!
    let sum = weights[summaries]!
    for (let input = 0; input < summaries; input++) sum += weights[input]! * summary[input]!
    odds += outputWeights[unit]! * Math.tanh(sum)
  }
  return odds
}
