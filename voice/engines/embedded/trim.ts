/** Owns the edges of a spoken sentence: flite begins with up to a quarter of a second of silence, which a caller would have to wait for. */

const frameSamples = 320
/** Well below the softest sound of speech at full scale, well above the synthesiser's own silence. */
const audible = 120
const leadSamples = 480
const trailSamples = 2400

/** Leaves 30 ms of silence before and 150 ms after, and fills up to whole frames of 20 ms. */
export function trimmed(samples: Int16Array): Int16Array<ArrayBuffer> {
  const first = samples.findIndex(isAudible)
  const last = samples.findLastIndex(isAudible)
  const from = Math.max(0, first - leadSamples)
  const to = first < 0 ? 0 : Math.min(samples.length, last + 1 + trailSamples)
  const frames = Math.max(1, Math.ceil((to - from) / frameSamples))
  const whole = new Int16Array(frames * frameSamples)
  whole.set(samples.subarray(from, Math.max(from, to)))
  return whole
}

const isAudible = (sample: number): boolean => Math.abs(sample) > audible
