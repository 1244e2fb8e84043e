/** Owns the codecs of the caller's voice behind one shape: payloads become samples, and what was lost is repaired or guessed. */
import type { AudioFormat } from '../../model/frame.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import { createConcealment } from '../pcm/concealment.ts'
import { lawOfEncoding } from './g711.ts'
import { createG722Decoder } from './g722.ts'
import type { OpusLibrary } from './opus.ts'

/** Results are samples at `rateHz`, valid until the next call. Null: there are none. */
export type CallerCodec = {
  readonly rateHz: number
  readonly decode: (payload: Uint8Array) => Int16Array | null
  /** Sound for `samples` that never came. */
  readonly conceal: (samples: number) => Int16Array | null
  /** The lost sound before `next`, from what `next` repeats of it; guessed where it repeats nothing. */
  readonly recover: (next: Uint8Array, samples: number) => Int16Array | null
  /** Idempotent. */
  readonly close: () => void
}

/** 120 ms of G.711 or G.722: longer packets are none. */
export const maxPayloadBytes = 960

/** Opus is decoded at the rate that is asked for. */
export function createCallerCodec({ codec }: NegotiatedAudio, { rateHz }: AudioFormat, opus: OpusLibrary): CallerCodec {
  switch (codec) {
    case 'opus':
      return { rateHz, ...opus.createDecoder({ rateHz }) }
    case 'pcmu':
    case 'pcma':
      return plainCodecOf(8000, 1, lawOfEncoding(codec).decode)
    case 'g722':
      return plainCodecOf(16_000, 2, createG722Decoder().decode)
  }
}

type Decode = (payload: Uint8Array, out: Int16Array) => void

/** A codec without redundancy: what is lost can only be guessed. */
function plainCodecOf(rateHz: number, samplesPerByte: number, decode: Decode): CallerCodec {
  const concealment = createConcealment(rateHz)
  let samples = new Int16Array(0)
  return {
    rateHz,
    decode(payload) {
      if (payload.length === 0 || payload.length > maxPayloadBytes) return null
      if (samples.length !== payload.length * samplesPerByte) samples = new Int16Array(payload.length * samplesPerByte)
      decode(payload, samples)
      concealment.heard(samples)
      return samples
    },
    conceal: concealment.guess,
    recover: (_, count) => concealment.guess(count),
    close() {},
  }
}
