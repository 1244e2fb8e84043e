/** Owns the codecs of received sound behind one shape: payloads become samples, and what was lost is repaired or guessed. */
import type { AudioFormat } from '../../model/frame.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import { createConcealment } from '../pcm/concealment.ts'
import { lawOfEncoding } from './g711.ts'
import { createG722Decoder } from './g722.ts'
import type { OpusLibrary } from './opus.ts'

/** Results are samples at `rateHz`, valid until the next call. Null: there are none. */
export type Decoder = {
  readonly rateHz: number
  readonly decode: (payload: Uint8Array) => Int16Array | null
  /** Sound for `samples` that never came. */
  readonly conceal: (samples: number) => Int16Array | null
  /** The lost sound before `next`, from what `next` repeats of it; null where no packet repeats anything. */
  readonly recover: ((next: Uint8Array, samples: number) => Int16Array | null) | null
  /** Idempotent. */
  readonly close: () => void
}

/** 120 ms of G.711 or G.722: longer packets are none. */
const maxPayloadBytes = 960

export const isPayload = ({ length }: Uint8Array): boolean => length > 0 && length <= maxPayloadBytes

/** Opus is decoded at the rate that is asked for. */
export function createDecoder({ codec }: NegotiatedAudio, { rateHz }: AudioFormat, opus: OpusLibrary): Decoder {
  switch (codec) {
    case 'opus':
      return { rateHz, ...opus.createDecoder({ rateHz }) }
    case 'pcmu':
    case 'pcma':
      return plainDecoderOf(8000, 1, lawOfEncoding(codec).decode)
    case 'g722':
      return plainDecoderOf(16_000, 2, createG722Decoder().decode)
  }
}

type Decode = (payload: Uint8Array, out: Int16Array) => void

/** A codec without redundancy: what is lost can only be guessed. */
function plainDecoderOf(rateHz: number, samplesPerByte: number, decode: Decode): Decoder {
  const concealment = createConcealment(rateHz)
  let samples = new Int16Array(0)
  return {
    rateHz,
    decode(payload) {
      if (!isPayload(payload)) return null
      if (samples.length !== payload.length * samplesPerByte) samples = new Int16Array(payload.length * samplesPerByte)
      decode(payload, samples)
      concealment.heard(samples)
      return samples
    },
    conceal: concealment.guess,
    recover: null,
    close() {},
  }
}
