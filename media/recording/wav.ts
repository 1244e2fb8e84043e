/** Owns WAV files of 16-bit PCM: the 44 bytes of header that a recording begins with, and reading a whole file back. */

export const wavHeaderBytes = 44

export type WavShape = { readonly rateHz: number; readonly channels: 1 | 2 }

/** Of the two size fields the outer one counts 36 bytes of header on top. */
const maxDataBytes = 0xffff_ffff - 36

/** RIFF, fmt and data chunk heads. A file that ends later than `dataBytes` says is still valid up to there. */
export function wavHeaderOf({ rateHz, channels }: WavShape, dataBytes: number): Uint8Array {
  const header = Buffer.alloc(wavHeaderBytes)
  const size = Math.min(dataBytes, maxDataBytes)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(size + 36, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(channels, 22)
  header.writeUInt32LE(rateHz, 24)
  header.writeUInt32LE(rateHz * channels * 2, 28)
  header.writeUInt16LE(channels * 2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(size, 40)
  return header
}

/** Milliseconds of sound in a file of this size with a header as `wavHeaderOf` makes it; null when there is none. */
export function wavLengthOf(header: Uint8Array, fileBytes: number): number | null {
  if (header.length < wavHeaderBytes || fileBytes <= wavHeaderBytes) return null
  const bytesPerSecond = new DataView(header.buffer, header.byteOffset).getUint32(28, true)
  return bytesPerSecond === 0 ? null : Math.floor(((fileBytes - wavHeaderBytes) * 1000) / bytesPerSecond)
}

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
