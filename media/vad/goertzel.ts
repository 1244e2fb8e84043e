/** Owns how strong one frequency is in a window of sound: the Goertzel algorithm. Pure. */

/** Of a frequency, for `powerAt`: to be kept where the same one is asked for again and again. */
export const factorOf = (hertz: number, rateHz: number): number => 2 * Math.cos((2 * Math.PI * hertz) / rateHz)

/** Squared magnitude: of a sine of amplitude A in n samples, (A * n / 2)^2. */
export function powerAt(samples: Int16Array | Float64Array, factor: number): number {
  let [before, earlier] = [0, 0]
  for (let i = 0; i < samples.length; i++) {
    const now = samples[i]! + factor * before - earlier
    earlier = before
    before = now
  }
  return before * before + earlier * earlier - factor * before * earlier
}
