/**
 * Owns the outline of a recording's waveform, for who shows it: ten times a second and for each channel the loudest sample. How it is kept: 12 bytes
 * (`PKS1`, channels, three zeros, milliseconds), then the values, 16 bit without a sign, all channels of a tenth side by side. Little endian.
 */

export const peaksPerSecond = 10

export type RecordingPeaks = {
  readonly durationMs: number
  /** Per channel: 0 (silence) to 1 (as loud as can be). */
  readonly channels: number[][]
}

const magic = 0x31_53_4b_50
const headBytes = 12
/** What full scale is. */
const loudest = 32_768

/** `values`: 0 to 32768, all channels of a tenth side by side. */
export function peaksBytesOf(channels: 1 | 2, durationMs: number, values: readonly number[]): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(headBytes + values.length * 2))
  bytes.setUint32(0, magic, true)
  bytes.setUint8(4, channels)
  bytes.setUint32(8, durationMs, true)
  for (const [index, value] of values.entries()) bytes.setUint16(headBytes + index * 2, value, true)
  return new Uint8Array(bytes.buffer)
}

/** Null for what is none. */
export function peaksOf(bytes: Uint8Array): RecordingPeaks | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (view.byteLength < headBytes || view.getUint32(0, true) !== magic) return null
  const count = view.getUint8(4)
  if (count !== 1 && count !== 2) return null
  const channels = Array.from({ length: count }, (): number[] => [])
  const tenths = Math.floor((view.byteLength - headBytes) / (2 * count))
  for (let at = 0; at < tenths * count; at++)
    channels[at % count]!.push(Math.round((view.getUint16(headBytes + at * 2, true) / loudest) * 10_000) / 10_000)
  return { durationMs: view.getUint32(8, true), channels }
}
