/**
 * Owns the binding to libopus compiled to WebAssembly (the file that comes with @evan/opus): encoders and decoders by handle,
 * with the two things the package's own binding leaves out, concealment (no packet) and forward error correction (the next packet).
 * One instance serves every call of a thread: input and output areas are shared, so a result is valid until the next call.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

/** libopus, opus_defines.h. */
export const opusRequest = {
  setApplication: 4000,
  setBitrate: 4002,
  setComplexity: 4010,
  setInbandFec: 4012,
  setExpectedLoss: 4014,
  setSignal: 4024,
} as const
const opusVoip = 2048
export const opusSignalVoice = 3001

/** 120 ms at 48 kHz: the longest packet there is (RFC 6716 §3.2.5). */
const maxSamples = 5760
/** More than any packet of one stream of 20 ms can have; longer ones are taken for garbage. */
const maxPacketBytes = 4096

/** The part of the global that is used: TypeScript knows it from browsers' types only. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown }
}

type Exports = {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly _initialize: () => void
  readonly malloc: (bytes: number) => number
  readonly free: (pointer: number) => void
  readonly opus_decoder_get_size: (channels: number) => number
  readonly opus_decoder_init: (decoder: number, rateHz: number, channels: number) => number
  readonly opus_decode: (
    decoder: number,
    packet: number,
    bytes: number,
    out: number,
    samples: number,
    fec: 0 | 1,
  ) => number
  readonly opus_encoder_get_size: (channels: number) => number
  readonly opus_encoder_init: (encoder: number, rateHz: number, channels: number, application: number) => number
  readonly opus_encode: (encoder: number, samples: number, count: number, out: number, maxBytes: number) => number
  readonly opus_encoder_ctl_set: (encoder: number, request: number, value: number) => number
}

export type OpusWasm = {
  readonly openDecoder: (rateHz: number, channels?: 1 | 2) => number
  readonly openEncoder: (rateHz: number, channels?: 1 | 2) => number
  /**
   * Null for a packet that is none. `fec` decodes what the packet repeats of the one before it; no packet means concealment. `samples` are those of
   * one channel; two channels lie side by side.
   */
  readonly decode: (
    decoder: number,
    packet: Uint8Array | null,
    samples: number,
    fec: 0 | 1,
    channels?: 1 | 2,
  ) => Int16Array | null
  readonly encode: (encoder: number, samples: Int16Array, channels?: 1 | 2) => Uint8Array
  readonly control: (encoder: number, request: number, value: number) => void
  /** Of the memory that all handles share; it grows and never shrinks. */
  readonly memoryBytes: () => number
  readonly free: (handle: number) => void
}

export { maxSamples as maxOpusSamples }

export function createOpusWasm(): OpusWasm {
  const { wasm, refreshed } = instantiate()
  const input = allocated(wasm, maxPacketBytes)
  const output = allocated(wasm, maxSamples * 2)
  let packets = new Uint8Array(0)
  let samplesArea = new Int16Array(0)
  // Growing the memory detaches every view of it.
  const refresh = () => {
    packets = new Uint8Array(wasm.memory.buffer, input, maxPacketBytes)
    samplesArea = new Int16Array(wasm.memory.buffer, output, maxSamples)
  }
  refreshed(refresh)
  refresh()

  return {
    openDecoder: (rateHz, channels = 1) =>
      opened(wasm, wasm.opus_decoder_get_size(channels), (handle) => wasm.opus_decoder_init(handle, rateHz, channels)),
    openEncoder: (rateHz, channels = 1) =>
      opened(wasm, wasm.opus_encoder_get_size(channels), (handle) =>
        wasm.opus_encoder_init(handle, rateHz, channels, opusVoip),
      ),
    decode(decoder, packet, samples, fec, channels = 1) {
      if (packet !== null && packet.length > maxPacketBytes) return null
      if (packet !== null) packets.set(packet)
      const most = Math.min(samples, maxSamples / channels)
      const count = wasm.opus_decode(decoder, packet === null ? 0 : input, packet?.length ?? 0, output, most, fec)
      return count > 0 ? samplesArea.subarray(0, count * channels) : null
    },
    encode(encoder, samples, channels = 1) {
      samplesArea.set(samples)
      const count = samples.length / channels
      return packets.slice(0, checked(wasm.opus_encode(encoder, output, count, input, maxPacketBytes)))
    },
    control: (encoder, request, value) => void checked(wasm.opus_encoder_ctl_set(encoder, request, value)),
    memoryBytes: () => wasm.memory.buffer.byteLength,
    free: (handle) => wasm.free(handle),
  }
}

function instantiate(): { readonly wasm: Exports; readonly refreshed: (action: () => void) => void } {
  const require = createRequire(import.meta.url)
  const bytes = readFileSync(require.resolve('@evan/opus/wasm/opus.wasm'))
  let onGrowth = () => {}
  // The codec itself touches no file: these are what is left of a C library's printf and exit.
  const nothing = () => 0
  const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), {
    wasi_snapshot_preview1: { fd_seek: nothing, fd_write: nothing, fd_close: nothing, proc_exit: nothing },
    env: { emscripten_notify_memory_growth: () => onGrowth() },
  })
  const wasm = instance.exports as Exports
  wasm._initialize()
  return { wasm, refreshed: (action) => (onGrowth = action) }
}

function opened(wasm: Exports, bytes: number, init: (handle: number) => number): number {
  const handle = allocated(wasm, bytes)
  const code = init(handle)
  if (code >= 0) return handle
  wasm.free(handle)
  return checked(code)
}

function allocated(wasm: Exports, bytes: number): number {
  const pointer = wasm.malloc(bytes)
  if (pointer === 0) throw new Error('out of memory for Opus')
  return pointer
}

function checked(code: number): number {
  if (code < 0) throw new Error(`libopus refused with code ${code}`)
  return code
}
