/** Owns what a supervisor hears of the two halves of a frame: both sides, or the caller alone while the agent's half is their own voice. */
import { saturated } from '../../media/pcm/saturated.ts'
import { samplesOf } from '../../model/frame.ts'

/** Valid until the next call. */
export function createMix(samplesPerSide: number): (halves: Uint8Array, isOwnVoice: boolean) => Int16Array | null {
  const mixed = new Int16Array(samplesPerSide)
  return (halves, isOwnVoice) => {
    const both = samplesOf(halves)
    if (both.length !== 2 * samplesPerSide) return null
    for (let at = 0; at < samplesPerSide; at++) {
      const sum = both[at]! + (isOwnVoice ? 0 : both[samplesPerSide + at]!)
      mixed[at] = saturated(sum)
    }
    return mixed
  }
}
