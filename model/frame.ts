/**
 * Owns the audio frame as it crosses the bus: 12 bytes of header (epoch, seq, timestamp ms; big endian) and 20 ms of sound.
 * docs/design/architecture.md "One audio frame".
 */
import { pooledBytes } from './pooled-bytes.ts'

export const frameMs = 20
export const headerBytes = 12

/** `pcm16` is signed 16-bit little endian mono; `pcmu` and `pcma` are G.711 at 8 kHz. */
export type AudioFormat = {
  readonly encoding: 'pcm16' | 'pcmu' | 'pcma'
  readonly rateHz: 8000 | 16000 | 24000 | 48000
}

/** What an actor hears of a line and says on it. */
export type LineFormats = { readonly hears: AudioFormat; readonly speaks: AudioFormat }

export type Frame = {
  /** Of the actor the frame belongs to: who sends `down`, who asked for `up`. Older epochs are refused (fencing). */
  readonly epoch: number
  /** Counts frames of one direction, one by one, from 0. */
  readonly seq: number
  /** Milliseconds on the sender's own line of sound: 20 per frame, gaps in sound included. */
  readonly timestamp: number
  readonly payload: Uint8Array
}

export const samplesPerFrame = (format: AudioFormat): number => (format.rateHz * frameMs) / 1000

/** Bytes of their own. */
export function encodeFrame({ epoch, seq, timestamp, payload }: Frame): Uint8Array {
  const bytes = pooledBytes(headerBytes + payload.length)
  writeUint32(bytes, 0, epoch)
  writeUint32(bytes, 4, seq)
  writeUint32(bytes, 8, timestamp)
  bytes.set(payload, headerBytes)
  return bytes
}

/** Null for anything too short to carry a header. The payload is a view into `bytes`, not a copy. */
export function decodeFrame(bytes: Uint8Array): Frame | null {
  if (bytes.length < headerBytes) return null
  return {
    epoch: readUint32(bytes, 0),
    seq: readUint32(bytes, 4),
    timestamp: readUint32(bytes, 8),
    payload: bytes.subarray(headerBytes),
  }
}

/** By hand: a DataView for each frame would cost more than all else that is done to it here. */
function writeUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24
  bytes[at + 1] = value >>> 16
  bytes[at + 2] = value >>> 8
  bytes[at + 3] = value
}

const readUint32 = (bytes: Uint8Array, at: number): number =>
  ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0

/** Int16 samples of a pcm16 payload; copies only when the bytes lie on an odd address. */
export function samplesOf(payload: Uint8Array): Int16Array {
  const even = payload.byteOffset % 2 === 0 ? payload : new Uint8Array(payload)
  return new Int16Array(even.buffer, even.byteOffset, even.length >> 1)
}

export const bytesOf = (samples: Int16Array): Uint8Array =>
  new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength)
