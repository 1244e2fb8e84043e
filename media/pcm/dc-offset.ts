/**
 * Owns the constant part of a caller's line, which analog gateways and cheap sound cards add: it is heard by nobody, and to what measures loudness it
 * is sound that never pauses and drowns whoever speaks. What has next to none passes as it is. Pure; 1 µs a frame.
 */

export type DcOffset = {
  /** The same frame where there is nothing to take off, else one that is good until the next. */
  without(samples: Int16Array): Int16Array
}

/** In units of a sample: less is nobody's trouble, and what a voice has in a few frames by chance. */
const least = 64
/** Frames of 20 ms that count: the mean of one that is spoken in says little, of 100 ms something. */
const [fewest, most] = [5, 50]

export function createDcOffset(): DcOffset {
  let clean = new Int16Array(0)
  let offset = 0
  let frames = 0

  /** False: digital silence, which stands for sound that did not come. */
  function follow(samples: Int16Array): boolean {
    let [sum, isSound] = [0, false]
    for (let index = 0; index < samples.length; index++) {
      const sample = samples[index]!
      sum += sample
      isSound ||= sample !== 0
    }
    if (!isSound) return false
    frames = Math.min(most, frames + 1)
    offset += (sum / samples.length - offset) / frames
    return true
  }
  return {
    without(samples) {
      if (!follow(samples) || frames < fewest || Math.abs(offset) < least) return samples
      const constant = Math.round(offset)
      if (clean.length !== samples.length) clean = new Int16Array(samples.length)
      for (let index = 0; index < samples.length; index++)
        clean[index] = Math.max(-32_768, Math.min(32_767, samples[index]! - constant))
      return clean
    },
  }
}
