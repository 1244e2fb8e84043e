/** Owns the encoding of the agent's voice: frames in the format an engine speaks become payloads of the negotiated codec. */
import { samplesOf, samplesPerFrame, type AudioFormat } from '../../model/frame.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import { lawOfEncoding } from './g711.ts'
import type { OpusLibrary } from './opus.ts'
import { createResampler } from './resample.ts'
import { recordingRateHz } from './timeline.ts'
import { silenceByteOf } from './up-line.ts'

/** Where a copy of the sound goes: 16 kHz, with the time it is played from. Valid during the call only. */
type AgentTap = (samples: Int16Array, at: number) => void

export type AgentSound = {
  /** One frame in the format `speaks`, played at `at`. The payload is the caller's own. */
  readonly encode: (frame: Uint8Array, at: number) => Uint8Array
  /** 20 ms of silence; codecs have a memory, so each one is made anew. */
  readonly silence: () => Uint8Array
  /** Idempotent. */
  readonly close: () => void
}

export type AgentSoundDeps = {
  readonly audio: NegotiatedAudio
  readonly speaks: AudioFormat
  readonly opus: OpusLibrary
  readonly tap: AgentTap | null
}

export function createAgentSound({ audio, speaks, opus, tap }: AgentSoundDeps): AgentSound {
  const read = readingOf(speaks)
  const toRecording = tap && createResampler(speaks.rateHz, recordingRateHz)
  const codec = audio.codec === 'opus' ? opusEncodingOf(opus, speaks) : g711EncodingOf(audio.codec, speaks)
  return {
    encode(frame, at) {
      const samples = read(frame)
      tap?.(toRecording?.convert(samples) ?? samples, at)
      return audio.codec === speaks.encoding ? frame : codec.encode(samples)
    },
    silence: codec.silence,
    close: codec.close,
  }
}

type Encoding = {
  readonly encode: (samples: Int16Array) => Uint8Array
  readonly silence: () => Uint8Array
  readonly close: () => void
}

function readingOf(format: AudioFormat): (frame: Uint8Array) => Int16Array {
  if (format.encoding === 'pcm16') return samplesOf
  const law = lawOfEncoding(format.encoding)
  const samples = new Int16Array(samplesPerFrame(format))
  return (frame) => {
    law.decode(frame, samples)
    return samples
  }
}

function opusEncodingOf(opus: OpusLibrary, speaks: AudioFormat): Encoding {
  const encoder = opus.createEncoder({ rateHz: speaks.rateHz })
  const nothing = new Int16Array(samplesPerFrame(speaks))
  return { encode: encoder.encode, silence: () => encoder.encode(nothing), close: encoder.close }
}

function g711EncodingOf(codec: 'pcmu' | 'pcma', speaks: AudioFormat): Encoding {
  const law = lawOfEncoding(codec)
  const resampler = createResampler(speaks.rateHz, 8000)
  return {
    encode(samples) {
      const converted = resampler?.convert(samples) ?? samples
      const bytes = new Uint8Array(converted.length)
      law.encode(converted, bytes)
      return bytes
    },
    silence: () => new Uint8Array(160).fill(silenceByteOf({ encoding: codec, rateHz: 8000 })),
    close() {},
  }
}
