/** Owns how tests read a whole WAV file. */
import type { WavShape } from '../../media/recording/wav.ts'

type Wav = WavShape & {
  /** Channels interleaved. */
  readonly samples: Int16Array
}

/** Skips chunks it does not know and takes what is there of a data chunk that was cut. Throws Error for anything but 16-bit PCM. */
export function parseWav(bytes: Uint8Array): Wav {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (file.toString('latin1', 0, 4) !== 'RIFF' || file.toString('latin1', 8, 12) !== 'WAVE')
    throw new Error('not a WAV file')
  let shape: WavShape | null = null
  for (let at = 12; at + 8 <= file.length;) {
    const size = file.readUInt32LE(at + 4)
    const body = file.subarray(at + 8, at + 8 + size)
    const name = file.toString('latin1', at, at + 4)
    if (name === 'fmt ') shape = shapeOf(body)
    if (name === 'data' && shape !== null) return { ...shape, samples: alignedSamplesOf(body) }
    // Chunks lie on even addresses.
    at += 8 + size + (size % 2)
  }
  throw new Error('a WAV file without sound')
}

function shapeOf(format: Buffer): WavShape {
  if (format.length < 16) throw new Error('a WAV file with a short format chunk')
  const channels = format.readUInt16LE(2)
  if (format.readUInt16LE(0) !== 1 || format.readUInt16LE(14) !== 16 || (channels !== 1 && channels !== 2))
    throw new Error('a WAV file that is not 16-bit PCM of one or two channels')
  return { rateHz: format.readUInt32LE(4), channels }
}

function alignedSamplesOf(body: Buffer): Int16Array {
  const copy = new Uint8Array(body)
  return new Int16Array(copy.buffer, 0, copy.length >> 1)
}
