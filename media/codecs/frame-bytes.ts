/** Owns the bytes of a frame in the format of an engine: how many they are, and how they become samples and are made of them. */
import { bytesOf, samplesOf, samplesPerFrame, type AudioFormat } from '../../model/frame.ts'
import { lawOfEncoding } from './g711.ts'

export const frameBytesOf = (format: AudioFormat): number =>
  samplesPerFrame(format) * (format.encoding === 'pcm16' ? 2 : 1)

/** Samples are valid until the next call. */
export function readerOf({ encoding }: AudioFormat): (bytes: Uint8Array) => Int16Array {
  if (encoding === 'pcm16') return samplesOf
  const law = lawOfEncoding(encoding)
  let samples = new Int16Array(0)
  return (bytes) => {
    if (samples.length !== bytes.length) samples = new Int16Array(bytes.length)
    law.decode(bytes, samples)
    return samples
  }
}

/** Bytes are valid until the next call, and of 16-bit samples as long as these are. */
export function writerOf({ encoding }: AudioFormat): (samples: Int16Array) => Uint8Array {
  if (encoding === 'pcm16') return bytesOf
  const law = lawOfEncoding(encoding)
  let bytes = new Uint8Array(0)
  return (samples) => {
    if (bytes.length !== samples.length) bytes = new Uint8Array(samples.length)
    law.encode(samples, bytes)
    return bytes
  }
}
