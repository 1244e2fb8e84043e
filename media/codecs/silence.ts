/** Owns the silence of each format. */
import { samplesPerFrame, type AudioFormat } from '../../model/frame.ts'
import { lawOfEncoding } from './g711.ts'

/** 20 ms of it. */
export function silenceOf(format: AudioFormat): Uint8Array<ArrayBuffer> {
  const samples = samplesPerFrame(format)
  if (format.encoding === 'pcm16') return new Uint8Array(samples * 2)
  return new Uint8Array(samples).fill(lawOfEncoding(format.encoding).silence)
}
