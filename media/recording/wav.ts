/** Owns WAV files of 16-bit PCM: the 44 bytes of header that a recording begins with, and what they say of the file. */
import type { RecordingReader } from '../../model/recording-store.ts'

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

/** Of a recording that is longer. */
export async function readWavHeader(recording: Pick<RecordingReader, 'stream'>): Promise<Uint8Array> {
  const header = new Uint8Array(wavHeaderBytes)
  let filled = 0
  for await (const piece of recording.stream(0, wavHeaderBytes - 1)) {
    header.set(piece, filled)
    filled += piece.length
  }
  return header
}

/** The sound that a player finds in a file with a header as `wavHeaderOf` makes it; null when there is none. */
export function wavSoundOf(
  header: Uint8Array,
  fileBytes: number,
): (WavShape & { readonly dataBytes: number; readonly ms: number }) | null {
  if (header.length < wavHeaderBytes || fileBytes <= wavHeaderBytes) return null
  const view = new DataView(header.buffer, header.byteOffset)
  const [rateHz, channels, told] = [view.getUint32(24, true), view.getUint16(22, true), view.getUint32(40, true)]
  if (view.getUint32(0) !== riff || rateHz === 0 || (channels !== 1 && channels !== 2)) return null
  const dataBytes = Math.min(told, fileBytes - wavHeaderBytes)
  const whole = dataBytes - (dataBytes % (channels * 2))
  const ms = Math.round((whole * 1000) / (rateHz * channels * 2))
  return ms === 0 ? null : { rateHz, channels, dataBytes: whole, ms }
}

const riff = 0x52_49_46_46
