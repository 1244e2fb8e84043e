/** Owns that a supervisor's voice takes the place of the agent's: whatever the agent says meanwhile is not heard. */
import { createResampler, type Resampler } from '../../pcm/resample.ts'
import { noBytes, noSamples, type Stage } from './stage.ts'
import { tailTicks } from './silence.ts'

type Voice = {
  isOn(): boolean
  /** 20 ms of `rateHz`; null: there are none now. */
  next(): Int16Array | null
}

/** Of ticks, where nothing was ever said. */
const longest = 1_000_000

/** Asked in each tick; `toHz` is what the agent speaks. */
export const standIn =
  (voice: Voice, rateHz: number, toHz: number): Stage =>
  (next) => {
    let resampler: Resampler | null = null
    /** Ticks of a pause since the voice was heard; what it was before is the agent's. */
    let silent = Infinity
    return (sound) => {
      const isOn = voice.isOn()
      const samples = isOn ? voice.next() : null
      if (isOn) {
        resampler ??= createResampler(rateHz, toHz)
        sound.kind = samples === null ? 'pause' : 'sound'
        sound.payload = noBytes
        sound.samples = samples === null ? noSamples : (resampler?.convert(samples) ?? samples)
        if (samples !== null) silent = 0
      } else if (sound.kind !== 'pause') silent = Infinity
      if (sound.kind === 'pause' && (isOn || silent < tailTicks)) sound.silentTicks = Math.min(++silent, longest)
      next(sound)
    }
  }
