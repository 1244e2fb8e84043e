/**
 * Owns G.722 at 64 kbit/s: 16 kHz sound in two bands, each coded as adaptive differences, one byte per two samples. In RTP its clock counts
 * 8000 although it samples at 16 kHz (RFC 3551 §4.5.2). Names in capitals are the blocks of ITU-T G.722; tables are in g722-tables.ts.
 */
import { saturated } from '../pcm/saturated.ts'
import { createG722Band, type G722Band } from './g722-band.ts'
import {
  decoded6,
  filterTaps,
  higherDecision,
  higherInverse,
  higherLog,
  higherRank,
  lowerDecisions,
  lowerInverse,
  lowerLog,
  lowerNegative,
  lowerPositive,
  lowerRank,
} from './g722-tables.ts'

export type G722Encoder = {
  /** An even number of samples; the result has half as many bytes and is the caller's own. */
  readonly encode: (samples: Int16Array) => Uint8Array
}

export type G722Decoder = {
  /** `out` needs twice as many samples as `bytes` has bytes. Any bytes are sound. */
  readonly decode: (bytes: Uint8Array, out: Int16Array) => void
}

export function createG722Encoder(): G722Encoder {
  const [lower, higher] = createBands()
  const line = createFilterLine()
  return {
    encode(samples) {
      const bytes = new Uint8Array(samples.length >> 1)
      const sound = line.open(samples.length)
      sound.set(samples.subarray(0, bytes.length * 2), memory)
      for (let i = 0; i < bytes.length; i++) {
        const [odd, even] = [oddPart(sound, 2 * i), evenPart(sound, 2 * i)]
        const low = lowerCodeOf(lower, (even + odd) >> 14)
        bytes[i] = (higherCodeOf(higher, (even - odd) >> 14) << 6) | low
      }
      line.close(bytes.length * 2)
      return bytes
    },
  }
}

export function createG722Decoder(): G722Decoder {
  const [lower, higher] = createBands()
  const line = createFilterLine()
  return {
    decode(bytes, out) {
      const sound = line.open(bytes.length * 2)
      for (let i = 0; i < bytes.length; i++) {
        const low = lowerSoundOf(lower, bytes[i]! & 0x3f)
        const high = higherSoundOf(higher, bytes[i]! >> 6)
        sound[memory + 2 * i] = low + high
        sound[memory + 2 * i + 1] = low - high
        out[2 * i] = saturated(evenPart(sound, 2 * i) >> 11)
        out[2 * i + 1] = saturated(oddPart(sound, 2 * i) >> 11)
      }
      line.close(bytes.length * 2)
    },
  }
}

/** Both bands as a reset leaves them. */
const createBands = (): [G722Band, G722Band] => [createG722Band(32, 18_432, 8), createG722Band(8, 22_528, 10)]

/** Samples before the present ones that the filter still needs. */
const memory = 22

/** Sound with the end of what came before it in front. */
function createFilterLine() {
  let line = new Int32Array(memory)
  return {
    open(samples: number): Int32Array {
      if (line.length < memory + samples) line = grown(line, memory + samples)
      return line
    },
    close: (samples: number) => void line.copyWithin(0, samples, samples + memory),
  }
}

function grown(line: Int32Array, length: number): Int32Array<ArrayBuffer> {
  const longer = new Int32Array(length)
  longer.set(line)
  return longer
}

/** QMF: one half of the taps runs over every other sample, the mirrored half over those between. */
function oddPart(sound: Int32Array, from: number): number {
  let sum = 0
  for (let i = 0; i < 12; i++) sum += sound[from + 2 * i]! * filterTaps[i]!
  return sum
}

function evenPart(sound: Int32Array, from: number): number {
  let sum = 0
  for (let i = 0; i < 12; i++) sum += sound[from + 2 * i + 1]! * filterTaps[11 - i]!
  return sum
}

/** QUANTL: 60 levels. What is thrown away of them is the two last bits, so that both ends adapt by four bits only. */
function lowerCodeOf(band: G722Band, sample: number): number {
  const difference = saturated(sample - band.predicted())
  const magnitude = difference >= 0 ? difference : -(difference + 1)
  let rank = 1
  while (rank < 30 && magnitude >= (lowerDecisions[rank]! * band.step()) >> 12) rank++
  const code = difference < 0 ? lowerNegative[rank]! : lowerPositive[rank]!
  adaptLower(band, code)
  return code
}

function adaptLower(band: G722Band, code: number): void {
  const coarse = code >> 2
  band.adapt((band.step() * lowerInverse[coarse]!) >> 15, lowerLog[lowerRank[coarse]!]!)
}

/** QUANTH: four levels. */
function higherCodeOf(band: G722Band, sample: number): number {
  const difference = saturated(sample - band.predicted())
  const magnitude = difference >= 0 ? difference : -(difference + 1)
  const isFar = magnitude >= (higherDecision * band.step()) >> 12
  const code = (isFar ? 0 : 1) + (difference < 0 ? 0 : 2)
  adaptHigher(band, code)
  return code
}

function adaptHigher(band: G722Band, code: number): number {
  const difference = (band.step() * higherInverse[code]!) >> 15
  band.adapt(difference, higherLog[higherRank[code]!]!)
  return difference
}

/** INVQBL with all six bits, LIMIT. */
function lowerSoundOf(band: G722Band, code: number): number {
  const sound = limited(band.predicted() + ((band.step() * decoded6[code]!) >> 15))
  adaptLower(band, code)
  return sound
}

function higherSoundOf(band: G722Band, code: number): number {
  const predicted = band.predicted()
  return limited(predicted + adaptHigher(band, code))
}

const limited = (sample: number): number => Math.max(-16_384, Math.min(16_383, sample))
