/**
 * Owns the Opus codec of a media thread. Encoding runs in the native addon of @evan/opus where it loads and in WebAssembly where it
 * does not (half as fast); decoding always in WebAssembly, because only our binding can conceal and repair losses.
 * Any coding rate decodes at any rate; the RTP clock is 48 kHz whatever they are (RFC 7587 §4.1).
 */
import { createRequire } from 'node:module'
import { bytesOf } from '../../model/frame.ts'
import { createOpusWasm, maxOpusSamples, opusRequest, opusSignalVoice, type OpusWasm } from './opus-wasm.ts'

export type OpusRate = 8000 | 16000 | 24000 | 48000

type OpusEncoder = {
  /** 20 ms of sound at the encoder's rate; the packet is the caller's own. */
  readonly encode: (samples: Int16Array) => Uint8Array
  /** 20 ms in which nothing is said, behind silence that was encoded: a frame without content, as DTX sends it (RFC 6716 §3.1). */
  readonly rest: () => Uint8Array
  /** Packet loss to prepare for with redundancy, 0–100: none at 0. */
  readonly expectLoss: (percent: number) => void
  /** Idempotent. */
  readonly close: () => void
}

/** Every result is valid until the next call on any decoder of the library. Null: the packet is none. */
export type OpusDecoder = {
  readonly decode: (packet: Uint8Array) => Int16Array | null
  /** Sound for a packet that never came, guessed from what was decoded before. */
  readonly conceal: (samples: number) => Int16Array | null
  /** The lost packet before `next`, from what `next` repeats of it; guessed where it repeats nothing. */
  readonly recover: (next: Uint8Array, samples: number) => Int16Array | null
  /** Idempotent. */
  readonly close: () => void
}

export type OpusLibrary = {
  /** Who encodes. */
  readonly encoding: 'native' | 'wasm'
  readonly createEncoder: (options: EncoderOptions) => OpusEncoder
  readonly createDecoder: (options: { readonly rateHz: OpusRate }) => OpusDecoder
  /** Of the WebAssembly memory that all codecs share. */
  readonly memoryBytes: () => number
}

type EncoderOptions = {
  readonly rateHz: OpusRate
  readonly bitsPerSecond?: number
  /** 0–10: what the encoder spends. */
  readonly complexity?: number
  /** Packet loss to prepare for with redundancy, 0–100. */
  readonly expectedLossPercent?: number
}

/** The part of the addon that is used. */
type NativeEncoder = {
  readonly encode: (bytes: Uint8Array) => Uint8Array
  readonly ctl: (request: number, value: number) => number
}
export type NativeEncoderClass = new (options: {
  channels: 1
  sample_rate: OpusRate
  application: 'voip'
}) => NativeEncoder

/** What an encoder spends unless told: `npm run bench opus` says what that buys: docs/design/media.md "Codecs". */
export const usualComplexity = 1

/** `loadNative` gives the addon's encoder, null where there is none for this machine. `complexity` is that of encoders that are not told another. */
export function createOpusLibrary(
  loadNative: () => NativeEncoderClass | null = loadNativeEncoder,
  complexity = usualComplexity,
): OpusLibrary {
  const wasm = createOpusWasm()
  const Native = loadNative()
  return {
    encoding: Native === null ? 'wasm' : 'native',
    createEncoder(given) {
      const options = { complexity, ...given }
      return withRest(Native === null ? wasmEncoderOf(wasm, options) : nativeEncoderOf(Native, options), given.rateHz)
    },
    createDecoder: ({ rateHz }) => decoderOf(wasm, rateHz),
    memoryBytes: wasm.memoryBytes,
  }
}

export function loadNativeEncoder(): NativeEncoderClass | null {
  try {
    const addon = createRequire(import.meta.url)('@evan/opus/node/index.js') as { Encoder: NativeEncoderClass }
    return addon.Encoder
  } catch {
    // No prebuilt binary for this machine (other processor, musl, old glibc): WebAssembly encodes.
    return null
  }
}

type Control = (request: number, value: number) => void

/** Percent of loss beyond which the line is taken for full: then less is sent, not more. */
const overload = 20
/** FEC takes about a third more, so that the sound itself keeps its bits. */
const shareFor = (percent: number): number => {
  if (percent === 0) return 1
  return percent > overload ? 0.9 : 1.33
}

function prepare(
  control: Control,
  { bitsPerSecond = 24_000, complexity = usualComplexity, expectedLossPercent = 5 }: EncoderOptions,
) {
  control(opusRequest.setComplexity, complexity)
  control(opusRequest.setSignal, opusSignalVoice)
  const expectLoss = (percent: number) => {
    control(opusRequest.setBitrate, Math.round(bitsPerSecond * shareFor(percent)))
    control(opusRequest.setInbandFec, percent > 0 ? 1 : 0)
    control(opusRequest.setExpectedLoss, Math.min(100, percent))
  }
  expectLoss(expectedLossPercent)
  return expectLoss
}

type SoundEncoder = Omit<OpusEncoder, 'rest'>

/** A rest is of the same configuration as what was encoded last: there is nothing to change between them. */
function withRest(encoder: SoundEncoder, rateHz: OpusRate): OpusEncoder {
  let configuration: number | null = null
  const encode = (samples: Int16Array) => {
    const packet = encoder.encode(samples)
    configuration = (packet[0] ?? 0) & ~frameCountBits
    return packet
  }
  return {
    ...encoder,
    encode,
    rest: () => (configuration === null ? encode(new Int16Array(rateHz / 50)) : Uint8Array.of(configuration)),
  }
}

/** Of the first byte of a packet: 0 says one frame. RFC 6716 §3.1. */
const frameCountBits = 3

function nativeEncoderOf(Native: NativeEncoderClass, options: EncoderOptions): SoundEncoder {
  // The addon frees an encoder when it is collected: letting go of it is all there is to close.
  let native: NativeEncoder | null = new Native({ channels: 1, sample_rate: options.rateHz, application: 'voip' })
  const expectLoss = prepare((request, value) => void native?.ctl(request, value), options)
  return {
    expectLoss,
    encode(samples) {
      if (native === null) throw new Error('the Opus encoder is closed')
      return native.encode(bytesOf(samples))
    },
    close: () => void (native = null),
  }
}

function wasmEncoderOf(wasm: OpusWasm, options: EncoderOptions): SoundEncoder {
  let handle = wasm.openEncoder(options.rateHz)
  const expectLoss = prepare((request, value) => void (handle !== 0 && wasm.control(handle, request, value)), options)
  return {
    expectLoss,
    encode(samples) {
      if (handle === 0) throw new Error('the Opus encoder is closed')
      return wasm.encode(handle, samples)
    },
    close() {
      if (handle !== 0) wasm.free(handle)
      handle = 0
    },
  }
}

function decoderOf(wasm: OpusWasm, rateHz: OpusRate): OpusDecoder {
  let handle = wasm.openDecoder(rateHz)
  const longest = (maxOpusSamples * rateHz) / 48_000
  const decode = (packet: Uint8Array | null, samples: number, fec: 0 | 1) => {
    if (handle === 0) throw new Error('the Opus decoder is closed')
    return wasm.decode(handle, packet, samples, fec)
  }
  return {
    decode: (packet) => (packet.length === 0 ? null : decode(packet, longest, 0)),
    conceal: (samples) => decode(null, samples, 0),
    recover: (next, samples) => decode(next, samples, 1),
    close() {
      if (handle !== 0) wasm.free(handle)
      handle = 0
    },
  }
}
