/** Owns G.711: µ-law and A-law to 16-bit samples and back. ITU-T G.711; RFC 3551 §4.5.14. */

export type Law = {
  /** What one sample of digital silence reads. */
  readonly silence: number
  /** `out` needs as many samples as `bytes` has bytes. */
  readonly decode: (bytes: Uint8Array, out: Int16Array) => void
  /** `out` needs as many bytes as `samples` has samples. */
  readonly encode: (samples: Int16Array, out: Uint8Array) => void
}

/** µ-law works on 14-bit magnitudes shifted by 33, here both times four because samples have 16 bits. */
const muBias = 132
const muClip = 32767 - muBias

const muDecoded = Int16Array.from({ length: 256 }, (_, code) => muSampleOf(code))
const aDecoded = Int16Array.from({ length: 256 }, (_, code) => aSampleOf(code))

const pcmu = lawOf(0xff, muDecoded, muCodeOf)
const pcma = lawOf(0xd5, aDecoded, aCodeOf)

export const lawOfEncoding = (encoding: 'pcmu' | 'pcma'): Law => (encoding === 'pcmu' ? pcmu : pcma)

function lawOf(silence: number, decoded: Int16Array, codeOf: (sample: number) => number): Law {
  return {
    silence,
    decode(bytes, out) {
      for (let i = 0; i < bytes.length; i++) out[i] = decoded[bytes[i]!]!
    },
    encode(samples, out) {
      for (let i = 0; i < samples.length; i++) out[i] = codeOf(samples[i]!)
    },
  }
}

function muSampleOf(code: number): number {
  const bits = ~code & 0xff
  const magnitude = ((((bits & 0x0f) << 3) + muBias) << ((bits >> 4) & 7)) - muBias
  return bits & 0x80 ? -magnitude : magnitude
}

function muCodeOf(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0
  const magnitude = Math.min(Math.abs(sample), muClip) + muBias
  // The biased magnitude has at least 8 bits: the segment is how many more it has.
  const segment = 24 - Math.clz32(magnitude)
  return ~(sign | (segment << 4) | ((magnitude >> (segment + 3)) & 0x0f)) & 0xff
}

function aSampleOf(code: number): number {
  const bits = code ^ 0x55
  const segment = (bits >> 4) & 7
  const step = ((bits & 0x0f) << 4) + 8
  const magnitude = segment === 0 ? step : (step + 0x100) << (segment - 1)
  return bits & 0x80 ? magnitude : -magnitude
}

function aCodeOf(sample: number): number {
  const sign = sample < 0 ? 0 : 0x80
  // A-law has no code of its own for zero: -1 is as near to it as 0.
  const magnitude = (sample < 0 ? ~sample : sample) >> 4
  const segment = Math.max(0, 28 - Math.clz32(magnitude))
  const mantissa = (segment === 0 ? magnitude : magnitude >> (segment - 1)) & 0x0f
  return (sign | (segment << 4) | mantissa) ^ 0x55
}
