/**
 * Owns how the parts of a call's recording become one: each lies where it began on the call's line of time, and what nobody recorded between two of them
 * is silence. A part that begins before the one in front of it has ended ends that one: what a leg that was left behind recorded is of no talk any more.
 * Nothing is copied: the parts are read where they are, while somebody reads the whole.
 */
import type { ReadPart, RecordingLack, RecordingReader } from '../../model/recording-store.ts'
import { readWavHeader, wavHeaderBytes, wavHeaderOf, wavSoundOf, type WavShape } from './wav.ts'

/** Ms. No call waits longer for its other leg: more is the doing of a clock that went wrong. */
const longestGap = 60_000
/** The same where it is not known how far the part before went: a call. */
const longestLack = 4 * 3_600_000
/** Ms; a process that is killed leaves as little out of what it wrote, or has not written anything yet. */
const leastLack = 2_000

type Sound = WavShape & { readonly from: number; readonly reader: RecordingReader; readonly dataBytes: number }
type Lost = { readonly from: number; readonly isComing: boolean }

/** Bytes `from` and up of a reader, or of silence. */
type Segment = { readonly reader: RecordingReader | Uint8Array | null; readonly from: number; bytes: number }

export async function joinRecording(parts: readonly ReadPart[]): Promise<RecordingReader | null> {
  const read = await Promise.all(parts.map(soundIn))
  const last = read.findLast(isSound)
  if (!last) return null
  const { rateHz, channels } = last
  const bytesPerMs = (rateHz / 1000) * channels * 2
  const segments: Segment[] = []
  const lacks: RecordingLack[] = []
  let length = 0
  let lost: Lost | null = null
  let soundFrom = 0

  const add = (segment: Segment): void => {
    segments.push(segment)
    length += segment.bytes
  }
  const placed = (from: number): void => {
    const wanted = Math.round(from * bytesPerMs)
    const newest = segments.at(-1)
    // A beginning that does not lie behind that of the part before is that of a wrong clock.
    if (newest && wanted < length && wanted > soundFrom) {
      newest.bytes -= length - wanted
      length = wanted
    }
    const most = (lost || !newest ? longestLack : longestGap) * bytesPerMs
    const gap = Math.min(wanted - length, most)
    if (gap > 0) add({ reader: null, from: 0, bytes: gap })
  }
  for (const part of read) {
    if (part === null) continue
    if (isSound(part) && part.rateHz === rateHz && part.channels === channels) {
      placed(part.from)
      if (lost) noteLack(lacks, lost, length / bytesPerMs)
      lost = null
      soundFrom = length
      add({ reader: part.reader, from: wavHeaderBytes, bytes: part.dataBytes })
    } else lost ??= { from: Math.max(part.from, length / bytesPerMs), isComing: !isSound(part) && part.isComing }
  }
  if (lost) lacks.push({ from: Math.round(lost.from), to: null, isComing: lost.isComing })
  const head = { reader: wavHeaderOf({ rateHz, channels }, length), from: 0, bytes: wavHeaderBytes }
  return readerOf([head, ...segments], lacks)
}

function noteLack(lacks: RecordingLack[], { from, isComing }: Lost, to: number): void {
  if (to - from >= leastLack) lacks.push({ from: Math.round(from), to: Math.round(to), isComing })
}

const isSound = (part: Sound | Lost | null): part is Sound => part !== null && 'reader' in part

/** Null: nothing was recorded of it, as by a process that was killed over its beginning. */
async function soundIn({ from, reader, isComing }: ReadPart): Promise<Sound | Lost | null> {
  if (reader === null) return { from, isComing }
  if (reader.size <= wavHeaderBytes) return null
  const sound = wavSoundOf(await readWavHeader(reader), reader.size)
  return sound && { ...sound, from, reader }
}

function readerOf(segments: readonly Segment[], lacks: readonly RecordingLack[]): RecordingReader {
  const size = segments.reduce((sum, { bytes }) => sum + bytes, 0)
  return {
    size,
    ...(lacks.length > 0 && { lacks }),
    stream(from, to) {
      if (from < 0 || to >= size || from > to + 1) throw new RangeError(`bytes ${from} to ${to} of ${size}`)
      return ReadableStream.from(bytesOf(segments, from, to)) as ReadableStream<Uint8Array>
    },
  }
}

async function* bytesOf(segments: readonly Segment[], from: number, to: number): AsyncGenerator<Uint8Array> {
  let at = 0
  for (const segment of segments) {
    const [first, last] = [Math.max(from - at, 0), Math.min(to - at, segment.bytes - 1)]
    at += segment.bytes
    if (first <= last) yield* partOf(segment, first, last)
  }
}

const silenceBytes = 64 << 10

async function* partOf({ reader, from }: Segment, first: number, last: number): AsyncGenerator<Uint8Array> {
  if (reader instanceof Uint8Array) return yield reader.subarray(from + first, from + last + 1)
  if (reader !== null) return yield* reader.stream(from + first, from + last)
  for (let left = last + 1 - first; left > 0; left -= silenceBytes) yield new Uint8Array(Math.min(left, silenceBytes))
}
