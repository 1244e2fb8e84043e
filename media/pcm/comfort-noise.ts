/**
 * Owns soft noise: what a line sounds like on which nobody speaks. RFC 3389 tells its level; what we send of our own is hardly heard, but no
 * digital silence, which an exchange may take for a lost call.
 */

export type Noise = {
  /** White noise; the result is valid until the next call. */
  readonly make: (count: number, level: number) => Int16Array
}

/** Root mean square of 0 dBm0 in 16-bit samples: a sine at the overload point is 3.17 dBm0 in µ-law (ITU-T G.711). */
const zeroLevel = 32_124 / Math.SQRT2 / 10 ** (3.17 / 20)

export const levelOfDbm0 = (decibels: number): number => zeroLevel * 10 ** (decibels / 20)

/** What a pause of the agent sounds like. */
export const comfortLevel = levelOfDbm0(-65)

/** RFC 3389 §3.1: the first byte is the level, 0 to 127 dB below overload, which is a square wave at 6.18 dBm0. No level: none is heard. */
export const levelOfComfortNoise = (payload: Uint8Array): number =>
  payload.length === 0 ? 0 : levelOfDbm0(6.18 - (payload[0]! & 0x7f))

/** The same seed gives the same noise. */
export function createNoise(seed = 0x2545_f491): Noise {
  let state = seed | 1
  let samples = new Int16Array(0)
  return {
    make(count, level) {
      if (samples.length !== count) samples = new Int16Array(count)
      // Evenly spread between two bounds, whose distance from zero is √3 of the root mean square.
      const scale = (Math.min(level, 18_000) * Math.sqrt(3)) / 0x8000_0000
      for (let i = 0; i < count; i++) {
        // xorshift32
        state ^= state << 13
        state ^= state >>> 17
        state ^= state << 5
        samples[i] = Math.round(state * scale)
      }
      return samples
    },
  }
}
