/** Owns one band of G.722: its step size and its predictor (two poles, six zeros), which adapt alike in encoder and decoder. ITU-T G.722 §3.5, §3.6. */
import { saturated } from '../pcm/saturated.ts'
import { stepMantissas } from './g722-tables.ts'

export type G722Band = {
  /** What the next sample is expected to be. */
  readonly predicted: () => number
  /** The unit of the quantizer. */
  readonly step: () => number
  /** Takes in the quantized difference and what it adds to the logarithm of the step. */
  readonly adapt: (difference: number, logGrowth: number) => void
}

const zeros = 6

/** `firstStep` before anything was heard; `maxLog` and `scale` bound and place the step. */
export function createG722Band(firstStep: number, maxLog: number, scale: number): G722Band {
  let step = firstStep
  let log = 0
  let predicted = 0
  let fromZeros = 0
  /** Quantized differences, the newest first, and the weights of those before it. */
  const differences = new Int32Array(zeros + 1)
  const weights = new Int32Array(zeros + 1)
  /** Partially reconstructed signs and reconstructed samples, the newest first. */
  const partial = new Int32Array(3)
  const heard = new Int32Array(2)
  let pole1 = 0
  let pole2 = 0

  /** LOGSCL, LOGSCH, SCALEL, SCALEH. */
  const adaptStep = (growth: number) => {
    log = Math.max(0, Math.min(maxLog, ((log * 127) >> 7) + growth))
    const shift = scale - (log >> 11)
    const mantissa = stepMantissas[(log >> 6) & 31]!
    step = (shift < 0 ? mantissa << -shift : mantissa >> shift) << 2
  }

  /** UPPOL2, UPPOL1. */
  const adaptPoles = () => {
    const [now, before, earlier] = [partial[0]! < 0, partial[1]! < 0, partial[2]! < 0]
    const four = saturated(pole1 << 2)
    const toward = Math.min(32_767, now === before ? -four : four)
    const second = (now === earlier ? 128 : -128) + (toward >> 7) + ((pole2 * 32_512) >> 15)
    pole2 = Math.max(-12_288, Math.min(12_288, second))
    const bound = saturated(15_360 - pole2)
    const first = saturated((now === before ? 192 : -192) + ((pole1 * 32_640) >> 15))
    pole1 = Math.max(-bound, Math.min(bound, first))
  }

  /** UPZERO, and the line moves on (DELAYA). */
  const adaptZeros = () => {
    const newest = differences[0]!
    const growth = newest === 0 ? 0 : 128
    for (let i = zeros; i > 0; i--) {
      const same = differences[i]! < 0 === newest < 0
      weights[i] = saturated((same ? growth : -growth) + ((weights[i]! * 32_640) >> 15))
      differences[i] = differences[i - 1]!
    }
  }

  /** FILTEZ. */
  const zeroPart = (): number => {
    let sum = 0
    for (let i = zeros; i > 0; i--) sum += (weights[i]! * saturated(differences[i]! * 2)) >> 15
    return saturated(sum)
  }

  /** FILTEP. */
  const polePart = (): number =>
    saturated(((pole1 * saturated(heard[0]! * 2)) >> 15) + ((pole2 * saturated(heard[1]! * 2)) >> 15))

  return {
    predicted: () => predicted,
    step: () => step,
    adapt(difference, logGrowth) {
      adaptStep(logGrowth)
      differences[0] = difference
      partial.copyWithin(1, 0)
      partial[0] = saturated(fromZeros + difference)
      heard[1] = heard[0]!
      heard[0] = saturated(predicted + difference)
      adaptPoles()
      adaptZeros()
      fromZeros = zeroPart()
      predicted = saturated(polePart() + fromZeros)
    },
  }
}
