/** Owns the silence of each format. */
import type { AudioFormat } from '../../model/frame.ts'
import { frameBytesOf } from './frame-bytes.ts'
import { lawOfEncoding } from './g711.ts'

/** 20 ms of it. */
export function silenceOf(format: AudioFormat): Uint8Array<ArrayBuffer> {
  const silent = format.encoding === 'pcm16' ? 0 : lawOfEncoding(format.encoding).silence
  return new Uint8Array(frameBytesOf(format)).fill(silent)
}
