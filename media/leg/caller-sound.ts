/**
 * Owns the decoding of the caller's voice: released packets become sound in the format an engine hears. G.711 goes through untouched when the
 * engine hears the same law. Losses are repaired from the packet after them, else guessed for up to 60 ms, else silent.
 */
import { bytesOf, frameMs, samplesPerFrame, type AudioFormat } from '../../model/frame.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import { createCallerCodec, maxPayloadBytes } from '../codecs/caller-codecs.ts'
import { createNoise } from '../pcm/comfort-noise.ts'
import { createConcealment, rememberedMs } from '../pcm/concealment.ts'
import { lawOfEncoding } from '../codecs/g711.ts'
import type { OpusLibrary } from '../codecs/opus.ts'
import { createResampler } from '../pcm/resample.ts'
import { recordingRateHz } from '../recording/timeline.ts'

/** Where a copy of the sound goes: 16 kHz, with the RTP timestamp of its first sample and the time it came. Valid during the call only. */
type CallerTap = (samples: Int16Array, timestamp: number, at: number) => void

/** Results are valid until the next call. Null: there is nothing to hear. */
export type CallerSound = {
  readonly hear: (packet: RtpPacket, at: number) => Uint8Array | null
  /** A packet is lost; `next` is the one right after it. `real` says that the sound is what was sent, not a guess. */
  readonly miss: (next: RtpPacket | null, at: number) => { readonly payload: Uint8Array; readonly real: boolean } | null
  /** 20 ms of what the caller's line sounds like while nobody speaks; `level` as in comfort-noise.ts. */
  readonly noise: (level: number) => Uint8Array
  /** Idempotent. */
  readonly close: () => void
}

export type CallerSoundDeps = {
  readonly audio: NegotiatedAudio
  readonly hears: AudioFormat
  readonly opus: OpusLibrary
  readonly tap: CallerTap | null
}

/** A longer guess sounds worse than silence. */
const maxConcealedMs = 60

export function createCallerSound(deps: CallerSoundDeps): CallerSound {
  const { audio, hears, tap } = deps
  const isUntouched = hears.encoding === audio.codec
  if (isUntouched && tap === null) return createPassedSound(hears.encoding, hears)
  return createDecodedSound(deps, isUntouched)
}

function createDecodedSound({ audio, hears, opus, tap }: CallerSoundDeps, isUntouched: boolean): CallerSound {
  const codec = createCallerCodec(audio, hears, opus)
  const render = renderingOf(codec.rateHz, hears)
  const toRecording = tap && createResampler(codec.rateHz, recordingRateHz)
  const clockPerSample = audio.clockRateHz / codec.rateHz
  let samplesPerPacket = (codec.rateHz * frameMs) / 1000
  let nextTimestamp = 0
  let missed = 0

  const copyToTap = (samples: Int16Array, timestamp: number, at: number) => {
    nextTimestamp = timestamp + samples.length * clockPerSample
    tap?.(toRecording?.convert(samples) ?? samples, timestamp >>> 0, at)
  }

  const missing = (next: RtpPacket | null): Int16Array | null => {
    if (next?.payloadType === audio.payloadType) return codec.recover(next.payload, samplesPerPacket)
    return ((missed - 1) * samplesPerPacket * 1000) / codec.rateHz <= maxConcealedMs
      ? codec.conceal(samplesPerPacket)
      : null
  }

  return {
    hear({ payload, timestamp }, at) {
      const samples = codec.decode(payload)
      if (samples === null) return null
      missed = 0
      samplesPerPacket = samples.length
      copyToTap(samples, timestamp, at)
      return isUntouched ? payload : render(samples)
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
    noise: noiseOf(hears),
    close: codec.close,
  }
}

/** G.711 for an engine of the same law, and nobody records: nothing is decoded unless something is lost. */
function createPassedSound(encoding: 'pcmu' | 'pcma', hears: AudioFormat): CallerSound {
  const law = lawOfEncoding(encoding)
  const perMs = hears.rateHz / 1000
  const recent = new Uint8Array(rememberedMs * perMs).fill(law.silence)
  const render = renderingOf(hears.rateHz, hears)
  let guesses: ((count: number) => Int16Array | null) | null = null
  let bytesPerPacket = frameMs * perMs

  const guessing = () => {
    const concealment = createConcealment(hears.rateHz)
    const samples = new Int16Array(recent.length)
    law.decode(recent, samples)
    concealment.heard(samples)
    return concealment.guess
  }

  return {
    hear({ payload }) {
      if (payload.length === 0 || payload.length > maxPayloadBytes) return null
      guesses = null
      bytesPerPacket = payload.length
      const kept = payload.subarray(Math.max(0, payload.length - recent.length))
      recent.copyWithin(0, kept.length)
      recent.set(kept, recent.length - kept.length)
      return payload
    },
    miss() {
      guesses ??= guessing()
      const samples = guesses(bytesPerPacket)
      return samples && { payload: render(samples), real: false }
    },
    noise: noiseOf(hears),
    close() {},
  }
}

function noiseOf(hears: AudioFormat): (level: number) => Uint8Array {
  const noise = createNoise()
  const render = renderingOf(hears.rateHz, hears)
  return (level) => render(noise.make(samplesPerFrame(hears), level))
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
