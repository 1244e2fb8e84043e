/** Owns speech that is longer or shorter, or higher or lower, than it was spoken: pieces of it overlap where they are most alike (WSOLA). */

/** 16 kHz: pieces of 30 ms, looked for within 10 ms. */
const piece = 480
const overlap = piece / 2
const reach = 160

/** `factor` times as long, at the same pitch. */
export function stretched(samples: Int16Array, factor: number): Int16Array {
  if (Math.abs(factor - 1) < 0.01 || samples.length < 2 * piece) return samples
  const out = new Int16Array(Math.round(samples.length * factor))
  let from = 0
  for (let at = 0; at + piece <= out.length; at += overlap) {
    const wanted = Math.round(at / factor)
    const best = at === 0 ? 0 : mostAlike(samples, from + overlap, wanted)
    for (let i = 0; i < piece; i++) {
      const weight = i < overlap ? i / overlap : 1
      const sample = samples[best + i] ?? 0
      // The second half is written over by the next piece, faded into it.
      out[at + i] = at === 0 ? sample : (out[at + i] ?? 0) * (1 - weight) + sample * weight
    }
    from = best
  }
  return out
}

/** Where near `wanted` the sound goes on as it does at `natural`. */
function mostAlike(samples: Int16Array, natural: number, wanted: number): number {
  let best = wanted
  let most = Number.NEGATIVE_INFINITY
  const last = Math.max(0, samples.length - piece)
  for (let at = Math.max(0, wanted - reach); at <= Math.min(last, wanted + reach); at += 2) {
    let alike = 0
    for (let i = 0; i < overlap; i += 4) alike += (samples[at + i] ?? 0) * (samples[natural + i] ?? 0)
    if (alike > most) [best, most] = [at, alike]
  }
  return Math.min(best, last)
}

/** `factor` times as long, the pitch with it. */
export function resized(samples: Int16Array, factor: number): Int16Array {
  if (Math.abs(factor - 1) < 0.01) return samples
  return Int16Array.from({ length: Math.floor(samples.length * factor) }, (_, at) => {
    const place = at / factor
    const left = Math.floor(place)
    const share = place - left
    return (samples[left] ?? 0) * (1 - share) + (samples[left + 1] ?? samples[left] ?? 0) * share
  })
}
