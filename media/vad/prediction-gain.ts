/**
 * Owns how well a few samples foretell the next one (linear prediction, Burg's method): some tones at once are foretold all but wholly, a voice is
 * not, for its breath and its changes. Pure.
 */

const order = 6

/** What is foretold over what is not, dB. The function keeps its buffers: one for each line. */
export function createPredictionGain(frameSamples: number): (samples: Int16Array) => number {
  const forward = new Float64Array(frameSamples)
  const backward = new Float64Array(frameSamples)
  return (samples) => {
    const length = Math.min(samples.length, frameSamples)
    let energy = 0
    for (let index = 0; index < length; index++) {
      const sample = samples[index]!
      forward[index] = sample
      backward[index] = sample
      energy += sample * sample
    }
    if (energy === 0) return 0
    let left = 1
    for (let stage = 1; stage <= order; stage++) {
      const reflection = reflectionOf(forward, backward, stage, length)
      left *= 1 - reflection * reflection
      for (let index = length - 1; index >= stage; index--) {
        const ahead = forward[index]!
        const behind = backward[index - 1]!
        forward[index] = ahead - reflection * behind
        backward[index] = behind - reflection * ahead
      }
    }
    return -10 * Math.log10(Math.max(left, 1e-9))
  }
}

/** By which the error in both directions becomes least. */
function reflectionOf(forward: Float64Array, backward: Float64Array, stage: number, length: number): number {
  let [product, squares] = [0, 0]
  for (let index = stage; index < length; index++) {
    const ahead = forward[index]!
    const behind = backward[index - 1]!
    product += ahead * behind
    squares += ahead * ahead + behind * behind
  }
  return squares === 0 ? 0 : (2 * product) / squares
}
