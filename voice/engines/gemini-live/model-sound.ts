/**
 * Owns the sound of a Gemini Live model as it comes: bytes that are cut anywhere, at the rate that each piece names, become whole samples at 24 kHz.
 * Facts: https://ai.google.dev/gemini-api/docs/live-guide (audio formats).
 */
import { bytesOf, samplesOf } from '../../../model/frame.ts'
import { createResampler, type Resampler } from '../../../media/pcm/resample.ts'

export type ModelSound = {
  /** Null: no whole sample, or no sound at all. */
  take(data: string, mimeType: string | undefined): Uint8Array | null
  /** What comes next does not go on from what came. */
  restart(): void
}

export const speaksHz = 24_000
const rates = [8_000, 16_000, 22_050, speaksHz, 32_000, 44_100, 48_000]

/** `refuse` is told what cannot be played. */
export function createModelSound(refuse: (details: string) => void): ModelSound {
  let rate = speaksHz
  let resampler: Resampler | null = null
  /** The first half of a sample. */
  let half: Buffer = Buffer.alloc(0)
  const restartAt = (newest: number): void => {
    rate = newest
    resampler = createResampler(rate, speaksHz)
    half = Buffer.alloc(0)
  }
  return {
    take(data, mimeType) {
      const given = rateOf(mimeType)
      if (given === 'foreign')
        refuse(
          `the provider sends sound as "${mimeType?.slice(0, 80)}": only audio/pcm at ${rates.join(', ')} Hz is known`,
        )
      if (given === null || given === 'foreign') return null
      if (given !== rate) restartAt(given)
      const bytes = Buffer.concat([half, Buffer.from(data, 'base64')])
      const length = bytes.length - (bytes.length % 2)
      half = bytes.subarray(length)
      if (length === 0) return null
      const whole = bytes.subarray(0, length)
      if (resampler === null) return whole
      const converted = resampler.convert(samplesOf(whole)).slice()
      return converted.length === 0 ? null : bytesOf(converted)
    },
    restart: () => restartAt(rate),
  }
}

/** The rate of linear PCM; null for what is no sound; 'foreign' for sound of another kind. Without a rate it is as documented. */
function rateOf(mimeType: string | undefined): number | 'foreign' | null {
  const [type = '', ...parameters] = (mimeType ?? 'audio/pcm').toLowerCase().split(';')
  if (!type.trim().startsWith('audio/')) return null
  if (type.trim() !== 'audio/pcm') return 'foreign'
  const rate = parameters.map((text) => /^\s*rate\s*=\s*"?(\d{1,6})"?\s*$/.exec(text)?.[1]).find(Boolean)
  if (rate === undefined) return speaksHz
  return rates.includes(Number(rate)) ? Number(rate) : 'foreign'
}
