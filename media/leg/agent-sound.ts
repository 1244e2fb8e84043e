/** Owns the encoding of the agent's voice: frames in the format an engine speaks become payloads of the negotiated codec. */
import { samplesOf, samplesPerFrame, type AudioFormat } from '../../model/frame.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import { comfortLevel, createNoise } from '../pcm/comfort-noise.ts'
import { lawOfEncoding } from '../codecs/g711.ts'
import { createG722Encoder } from '../codecs/g722.ts'
import type { OpusLibrary } from '../codecs/opus.ts'
import { createResampler } from '../pcm/resample.ts'
import { recordingRateHz } from '../recording/timeline.ts'

/** Where a copy of the sound goes: 16 kHz, with the time it is played from. Valid during the call only. */
type AgentTap = (samples: Int16Array, at: number) => void

export type AgentSound = {
  /** One frame in the format `speaks`, played at `at`. The payload is the caller's own. */
  readonly encode: (frame: Uint8Array, at: number) => Uint8Array
  /** 20 ms in which nothing is said: silence, or soft noise for a peer that wants packets all the time. Codecs have a memory: made anew. */
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
  const codec = createAgentCodec(audio, speaks, opus)
  const isUntouched = audio.codec === speaks.encoding
  const noise = createNoise()
  // Of noise over a wider band than the codec carries, a part is lost.
  const comfort = comfortLevel * Math.sqrt(Math.max(1, speaks.rateHz / codec.rateHz))
  const level = audio.silence === 'continuous' ? comfort : 0
  return {
    encode(frame, at) {
      if (isUntouched && tap === null) return frame
      const samples = read(frame)
      tap?.(toRecording?.convert(samples) ?? samples, at)
      return isUntouched ? frame : codec.encode(samples)
    },
    silence: () => codec.encode(noise.make(samplesPerFrame(speaks), level)),
    close: codec.close,
  }
}

type AgentCodec = {
  /** Of the sound it carries. */
  readonly rateHz: number
  /** The payload is the caller's own. */
  readonly encode: (samples: Int16Array) => Uint8Array
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

function createAgentCodec({ codec }: NegotiatedAudio, { rateHz }: AudioFormat, opus: OpusLibrary): AgentCodec {
  switch (codec) {
    case 'opus':
      return { rateHz, ...opus.createEncoder({ rateHz }) }
    case 'pcmu':
    case 'pcma':
      return plainCodecOf(rateHz, 8000, lawEncodingOf(codec))
    case 'g722':
      return plainCodecOf(rateHz, 16_000, createG722Encoder().encode)
  }
}

function plainCodecOf(fromHz: number, toHz: number, encode: AgentCodec['encode']): AgentCodec {
  const resampler = createResampler(fromHz, toHz)
  return { rateHz: toHz, encode: (samples) => encode(resampler?.convert(samples) ?? samples), close() {} }
}

function lawEncodingOf(encoding: 'pcmu' | 'pcma'): AgentCodec['encode'] {
  const law = lawOfEncoding(encoding)
  return (samples) => {
    const bytes = new Uint8Array(samples.length)
    law.encode(samples, bytes)
    return bytes
  }
}
