/**
 * Owns sound without what was said: noise that is about as loud as each packet was, in steps of 6 dB, so that who listens for a voice still finds when
 * somebody spoke. Keys all become 1.
 */
import { createOpusLibrary } from '../../../media/codecs/opus.ts'
import { lawOfEncoding } from '../../../media/codecs/g711.ts'
import { createRandom } from '../../chaos/random.ts'
import type { SessionHead } from './session-format.ts'

export type AnonymousSound = {
  /** `isSound`: of the payload type of the sound, and no key or comfort noise. */
  of(payload: Uint8Array, isSound: boolean): Uint8Array
  close(): void
}

const steps = 15
const opusRateHz = 16_000
const opusSamples = 320

export function createAnonymousSound({ codec }: Pick<SessionHead, 'codec'>): AnonymousSound {
  const random = createRandom(1)
  const noise = (samples: number, loudness: number): Int16Array => {
    // Uniform noise has its peak at √3 of its root mean square.
    const peak = Math.min(32_000, loudness * Math.sqrt(3))
    return Int16Array.from({ length: samples }, () => Math.round((random.next() * 2 - 1) * peak))
  }
  const coder = coderOf(codec, noise)
  return {
    of(payload, isSound) {
      if (!isSound) return anonymousEvent(payload)
      return coder.of(payload)
    },
    close: coder.close,
  }
}

type Noise = (samples: number, loudness: number) => Int16Array
type Coder = { of(payload: Uint8Array): Uint8Array; close(): void }

function coderOf(codec: SessionHead['codec'], noise: Noise): Coder {
  if (codec === 'pcmu' || codec === 'pcma') {
    const law = lawOfEncoding(codec)
    return {
      of(payload) {
        const samples = new Int16Array(payload.length)
        law.decode(payload, samples)
        const bytes = new Uint8Array(payload.length)
        law.encode(noise(payload.length, stepped(samples)), bytes)
        return bytes
      },
      close: () => undefined,
    }
  }
  // Nothing of G.722 is decoded here: it becomes silence.
  if (codec === 'g722') return { of: (payload) => new Uint8Array(payload.length).fill(0xfa), close: () => undefined }
  return opusCoder(noise)
}

function opusCoder(noise: Noise): Coder {
  const opus = createOpusLibrary()
  const decoder = opus.createDecoder({ rateHz: opusRateHz })
  const encoder = opus.createEncoder({ rateHz: opusRateHz })
  return {
    of(payload) {
      const loudness = stepped(decoder.decode(payload) ?? new Int16Array(0))
      return new Uint8Array(encoder.encode(noise(opusSamples, loudness)))
    },
    close() {
      decoder.close()
      encoder.close()
    },
  }
}

/** Root mean square, rounded to a power of two. */
function stepped(samples: Int16Array): number {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  const loudness = Math.sqrt(sum / Math.max(1, samples.length))
  return loudness < 1 ? 0 : 2 ** Math.min(steps, Math.round(Math.log2(loudness)))
}

/** RFC 4733 §2.3: the event is the first byte. Whatever else it is becomes nothing. */
function anonymousEvent(payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(payload.length)
  if (payload.length === 4) bytes.set(payload)
  if (payload.length > 0) bytes[0] = 1
  return bytes
}
