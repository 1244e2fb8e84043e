/** Owns recursive filters for 16 kHz sound, block by block: bands as wide as asked for, and a steep high-pass. */

/** Changes the block; the next one goes on where it ended. */
export type Filter = (block: Float64Array) => void

const rateHz = 16_000
/** Quality of each stage of a Butterworth filter of the eighth order: 48 dB per octave. */
const steepStages = [0.5098, 0.6013, 0.9, 2.5629]

/** Two equal stages: 12 dB per octave on either side. */
export function createBandPass(fromHz: number, toHz: number): Filter {
  const middle = Math.sqrt(fromHz * toHz)
  const { angle, slope } = shapeOf(middle, middle / (toHz - fromHz))
  const stage = (): Filter => createStage([slope, 0, -slope], [1 + slope, -2 * Math.cos(angle), 1 - slope])
  return chained([stage(), stage()])
}

export function createHighPass(fromHz: number): Filter {
  return chained(
    steepStages.map((quality) => {
      const { angle, slope } = shapeOf(fromHz, quality)
      const open = 1 + Math.cos(angle)
      return createStage([open / 2, -open, open / 2], [1 + slope, -2 * Math.cos(angle), 1 - slope])
    }),
  )
}

function shapeOf(hertz: number, quality: number): { readonly angle: number; readonly slope: number } {
  const angle = (2 * Math.PI * hertz) / rateHz
  return { angle, slope: Math.sin(angle) / (2 * quality) }
}

type Three = readonly [number, number, number]

/** A second-order section, in the direct form that keeps two numbers. */
function createStage([b0, b1, b2]: Three, [a0, a1, a2]: Three): Filter {
  const [in0, in1, in2, back1, back2] = [b0 / a0, b1 / a0, b2 / a0, a1 / a0, a2 / a0]
  let near = 0
  let far = 0
  return (block) => {
    for (let index = 0; index < block.length; index++) {
      const sample = block[index] ?? 0
      const out = in0 * sample + near
      near = in1 * sample - back1 * out + far
      far = in2 * sample - back2 * out
      block[index] = out
    }
  }
}

const chained =
  (stages: readonly Filter[]): Filter =>
  (block) => {
    for (const stage of stages) stage(block)
  }
