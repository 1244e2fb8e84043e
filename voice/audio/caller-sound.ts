/**
 * Owns the decoding of the caller's voice: released packets become sound in the format an engine hears. Opus is decoded at the rate that
 * is asked for; G.711 goes through untouched when the engine hears the same law. Losses are repaired from the packet after them,
 * else guessed for up to 60 ms, else silent.
 */
import { bytesOf, frameMs, type AudioFormat } from '../../model/frame.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import { lawOfEncoding } from './g711.ts'
import type { OpusLibrary } from './opus.ts'
import { createResampler } from './resample.ts'
import { recordingRateHz } from './timeline.ts'

/** Where a copy of the sound goes: 16 kHz, with the RTP timestamp of its first sample and the time it came. Valid during the call only. */
type CallerTap = (samples: Int16Array, timestamp: number, at: number) => void

/** Results are valid until the next call. Null: there is nothing to hear. */
export type CallerSound = {
  readonly hear: (packet: RtpPacket, at: number) => Uint8Array | null
  /** A packet is lost; `next` is the one right after it. `real` says that the sound is what was sent, not a guess. */
  readonly miss: (next: RtpPacket | null, at: number) => { readonly payload: Uint8Array; readonly real: boolean } | null
  /** Idempotent. */
  readonly close: () => void
}

export type CallerSoundDeps = {
  readonly audio: NegotiatedAudio
  readonly hears: AudioFormat
  readonly opus: OpusLibrary
  readonly tap: CallerTap | null
}

/** One codec, as samples at `rateHz`. */
type Decoding = {
  readonly rateHz: number
  readonly decode: (payload: Uint8Array) => Int16Array | null
  readonly conceal: (samples: number) => Int16Array | null
  readonly recover: (next: Uint8Array, samples: number) => Int16Array | null
  readonly close: () => void
}

/** 60 ms: a longer guess sounds worse than silence. */
const maxConcealed = 3

export function createCallerSound({ audio, hears, opus, tap }: CallerSoundDeps): CallerSound {
  const decoding = audio.codec === 'opus' ? opusDecodingOf(opus, hears) : g711DecodingOf(audio.codec)
  const untouched = hears.encoding === audio.codec
  const render = renderingOf(decoding.rateHz, hears)
  const toRecording = tap && createResampler(decoding.rateHz, recordingRateHz)
  const clockPerSample = audio.clockRateHz / decoding.rateHz
  let samplesPerPacket = (decoding.rateHz * frameMs) / 1000
  let nextTimestamp = 0
  let missed = 0

  const copyToTap = (samples: Int16Array, timestamp: number, at: number) => {
    nextTimestamp = timestamp + samples.length * clockPerSample
    tap?.(toRecording?.convert(samples) ?? samples, timestamp >>> 0, at)
  }

  const missing = (next: RtpPacket | null): Int16Array | null => {
    if (next?.payloadType === audio.payloadType) return decoding.recover(next.payload, samplesPerPacket)
    return missed <= maxConcealed ? decoding.conceal(samplesPerPacket) : null
  }

  return {
    hear({ payload, timestamp }, at) {
      const samples = decoding.decode(payload)
      if (samples === null) return null
      missed = 0
      samplesPerPacket = samples.length
      copyToTap(samples, timestamp, at)
      return untouched ? payload : render(samples)
    },
    miss(next, at) {
      missed++
      const samples = missing(next)
      if (samples === null) {
        nextTimestamp += samplesPerPacket * clockPerSample
        return null
      }
      copyToTap(samples, nextTimestamp, at)
      return { payload: render(samples), real: audio.codec === 'opus' && next !== null }
    },
    close: decoding.close,
  }
}

/** Samples at `rateHz` as bytes in the format, in a buffer that is used again. */
function renderingOf(rateHz: number, format: AudioFormat): (samples: Int16Array) => Uint8Array {
  const resampler = createResampler(rateHz, format.rateHz)
  if (format.encoding === 'pcm16') return (samples) => bytesOf(resampler?.convert(samples) ?? samples)
  const law = lawOfEncoding(format.encoding)
  let bytes = new Uint8Array(0)
  return (samples) => {
    const converted = resampler?.convert(samples) ?? samples
    if (bytes.length !== converted.length) bytes = new Uint8Array(converted.length)
    law.encode(converted, bytes)
    return bytes
  }
}

function opusDecodingOf(opus: OpusLibrary, { rateHz }: AudioFormat): Decoding {
  const decoder = opus.createDecoder({ rateHz })
  return {
    rateHz,
    decode: decoder.decode,
    conceal: decoder.conceal,
    recover: decoder.recover,
    close: decoder.close,
  }
}

/** G.711 has no redundancy: a lost frame is the last one again, fading. */
function g711DecodingOf(codec: 'pcmu' | 'pcma'): Decoding {
  const law = lawOfEncoding(codec)
  let last = new Int16Array(160)
  const again = (samples: number) => {
    for (let i = 0; i < last.length; i++) last[i] = last[i]! >> 1
    return last.length === samples ? last : null
  }
  return {
    rateHz: 8000,
    decode(payload) {
      if (payload.length === 0 || payload.length > maxG711Bytes) return null
      if (last.length !== payload.length) last = new Int16Array(payload.length)
      law.decode(payload, last)
      return last
    },
    conceal: again,
    recover: (_, samples) => again(samples),
    close() {},
  }
}

/** 120 ms. */
const maxG711Bytes = 960
