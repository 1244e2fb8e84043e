/**
 * Owns the native Opus encoder in threads. The addon of @evan/opus encodes into one buffer for all that use it, so two threads would write over each
 * other's packets: each media thread loads a copy of its own. The process loads it too, and keeps it: unloaded at the end of a thread, it crashes.
 */
import { copyFileSync, renameSync } from 'node:fs'
import { createRequire } from 'node:module'
import process from 'node:process'
import type { NativeEncoderClass } from './opus.ts'

type Options = ConstructorParameters<NativeEncoderClass>[0]

/** It answers with the length of the packet. */
type AddonEncoder = { encode(bytes: Uint8Array): number; ctl(request: number, value: number): number }

type Addon = {
  readonly Encoder: new (options: Options) => AddonEncoder
  readonly buffers: { readonly encoder: () => Uint8Array }
}

/** Makes the copy for a thread. Throws where there is no addon for this machine, or no file may be run from there. */
export function copyOpusAddon(file: string): void {
  const name = `@evan/opus/node/${process.arch}-${process.platform}.node`
  const part = `${file}.part`
  copyFileSync(createRequire(import.meta.url).resolve(name), part)
  // What a process still runs must not be written over.
  renameSync(part, file)
  load(file)
}

/** In the thread that it was made for. */
export function loadOpusAddon(file: string): NativeEncoderClass {
  const { Encoder, buffers } = load(file)
  const packet = buffers.encoder()
  return class {
    readonly #encoder: AddonEncoder
    constructor(options: Options) {
      this.#encoder = new Encoder(options)
    }
    encode(bytes: Uint8Array): Uint8Array {
      return packet.slice(0, this.#encoder.encode(bytes))
    }
    ctl(request: number, value: number): number {
      return this.#encoder.ctl(request, value)
    }
  }
}

function load(file: string): Addon {
  const loaded: { exports: unknown } = { exports: {} }
  process.dlopen(loaded, file)
  return loaded.exports as Addon
}
