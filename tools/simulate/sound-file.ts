/** Owns sound of callers in files: WAV, 16-bit, one channel, of any rate. */
import { readFile, writeFile } from 'node:fs/promises'
import { createResampler } from '../../media/pcm/resample.ts'
import { wavHeaderBytes, wavHeaderOf, wavSoundOf } from '../../media/recording/wav.ts'

const rateHz = 16_000
/** Five minutes of one channel at 48 kHz. */
const maxBytes = 30_000_000

/** Throws when it is none. */
export async function readSound(file: string): Promise<Int16Array> {
  const bytes = await readFile(file)
  const sound = wavSoundOf(bytes, bytes.length)
  if (!sound || sound.channels !== 1 || bytes.length > maxBytes)
    throw new Error('it must be a WAV file of 16 bits, one channel and at most five minutes')
  const samples = samplesIn(bytes, sound.dataBytes)
  const resampler = createResampler(sound.rateHz, rateHz)
  return resampler ? resampler.convert(samples).slice() : samples
}

/** Of 16 kHz, for this user only. */
export async function writeSound(file: string, samples: Int16Array): Promise<void> {
  const body = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength)
  await writeFile(file, Buffer.concat([wavHeaderOf({ rateHz, channels: 1 }, body.length), body]), { mode: 0o600 })
}

/** Behind the header, of all channels. */
export const samplesIn = (bytes: Buffer, dataBytes: number): Int16Array =>
  new Int16Array(bytes.buffer.slice(bytes.byteOffset + wavHeaderBytes, bytes.byteOffset + wavHeaderBytes + dataBytes))
