/** Owns the shape of the low-pass filters by which sample rates are changed: sin x / x under a Kaiser window. Pure. */

/** A value of the filter, `at` samples from its middle. `cutoff`: as a part of half the rate; the filter is zero from `half` on. */
export const lowPassAt = (at: number, cutoff: number, half: number, beta: number): number =>
  sinc(cutoff * at) * kaiser(at / half, beta)

/** All of it at one strength: a steady sound keeps its level. */
export function evened(filter: Float64Array): Float64Array<ArrayBuffer> {
  const gain = filter.reduce((sum, tap) => sum + tap, 0)
  return Float64Array.from(filter, (tap) => tap / gain)
}

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x))

const kaiser = (x: number, beta: number): number => bessel(beta * Math.sqrt(Math.max(0, 1 - x * x))) / bessel(beta)

/** Modified Bessel function of the first kind, order 0, by its power series. */
function bessel(x: number): number {
  let sum = 1
  for (let k = 1, term = 1; k < 40; k++) {
    term *= (x / (2 * k)) ** 2
    sum += term
  }
  return sum
}
