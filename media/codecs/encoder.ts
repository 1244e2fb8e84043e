/** Owns the codecs of sound that is sent behind one shape: 20 ms of samples become the payload of a packet. */
import type { AudioFormat } from '../../model/frame.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import { lawOfEncoding } from './g711.ts'
import { createG722Encoder } from './g722.ts'
import type { OpusLibrary } from './opus.ts'

export type Encoder = {
  /** Of the samples it takes. */
  readonly rateHz: number
  /** The payload is the caller's own. */
  readonly encode: (samples: Int16Array) => Uint8Array
  /** 20 ms of a pause after silence was encoded, where the codec can say that it is one: a receiver then misses nothing. Null: as silence. */
  readonly rest: (() => Uint8Array) | null
  /** Percent of packets that get lost; only Opus can prepare for it. */
  readonly expectLoss: (percent: number) => void
  /** Idempotent. */
  readonly close: () => void
}

/** Opus takes sound at the rate it has. */
export function createEncoder({ codec }: NegotiatedAudio, { rateHz }: AudioFormat, opus: OpusLibrary): Encoder {
  switch (codec) {
    case 'opus':
      return { rateHz, ...opus.createEncoder({ rateHz }) }
    case 'pcmu':
    case 'pcma':
      return { rateHz: 8000, encode: lawEncodingOf(codec), rest: null, expectLoss() {}, close() {} }
    case 'g722':
      return { rateHz: 16_000, encode: createG722Encoder().encode, rest: null, expectLoss() {}, close() {} }
  }
}

function lawEncodingOf(encoding: 'pcmu' | 'pcma'): Encoder['encode'] {
  const law = lawOfEncoding(encoding)
  return (samples) => {
    const bytes = new Uint8Array(samples.length)
    law.encode(samples, bytes)
    return bytes
  }
}
