/** Owns the sound of synthetic callers, prepared once: what they say as packets of each codec, and how loud what they hear is. */
import { frameMs } from '../../model/frame.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { createResampler } from '../../media/pcm/resample.ts'

export type PreparedSound = {
  /** Of 20 ms each. */
  readonly phrases: readonly (readonly Uint8Array[])[]
  readonly silence: Uint8Array
}

export type Loudness = {
  /** Root mean square of 16-bit samples. */
  of(payload: Uint8Array): number
  close(): void
}

export type CallerSound = {
  of(codec: 'opus' | 'pcmu'): PreparedSound
  listener(codec: 'opus' | 'pcmu'): Loudness
}

const rateHz = 16_000
const opusSamples = (rateHz * frameMs) / 1000
const lawSamples = (8_000 * frameMs) / 1000

/** Every call sends the same packets: what is loaded is the service, not our encoder. */
export function prepareCallerSound(phrases: readonly Int16Array[]): CallerSound {
  const opus = createOpusLibrary()
  const law = lawOfEncoding('pcmu')
  const prepared = { opus: opusSound(), pcmu: lawSound() }

  function opusSound(): PreparedSound {
    const coded = phrases.map((phrase) => {
      const encoder = opus.createEncoder({ rateHz })
      const packets = framesOf(phrase, opusSamples).map((frame) => new Uint8Array(encoder.encode(frame)))
      encoder.close()
      return packets
    })
    const encoder = opus.createEncoder({ rateHz })
    const silence = new Uint8Array(encoder.encode(new Int16Array(opusSamples)))
    encoder.close()
    return { phrases: coded, silence }
  }
  function lawSound(): PreparedSound {
    const coded = phrases.map((phrase) => {
      const resampler = createResampler(rateHz, 8_000)
      const narrow = resampler ? resampler.convert(phrase) : phrase
      return framesOf(narrow, lawSamples).map((frame) => {
        const bytes = new Uint8Array(lawSamples)
        law.encode(frame, bytes)
        return bytes
      })
    })
    return { phrases: coded, silence: new Uint8Array(lawSamples).fill(law.silence) }
  }
  return {
    of: (codec) => prepared[codec],
    listener(codec) {
      if (codec === 'opus') {
        const decoder = opus.createDecoder({ rateHz })
        return {
          of: (payload) => loudnessOf(decoder.decode(payload) ?? noSamples),
          close: () => decoder.close(),
        }
      }
      let samples = new Int16Array(lawSamples)
      return {
        of(payload) {
          if (samples.length !== payload.length) samples = new Int16Array(payload.length)
          law.decode(payload, samples)
          return loudnessOf(samples)
        },
        close: () => undefined,
      }
    },
  }
}

const noSamples = new Int16Array(0)

/** The last one is filled with silence. */
function framesOf(samples: Int16Array, size: number): Int16Array[] {
  return Array.from({ length: Math.ceil(samples.length / size) }, (_, index) => {
    const frame = new Int16Array(size)
    frame.set(samples.subarray(index * size, (index + 1) * size))
    return frame
  })
}

function loudnessOf(samples: Int16Array): number {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  return Math.sqrt(sum / Math.max(1, samples.length))
}
