/** The parts of a call's recording, read as one. */
import { test } from 'tap'
import { joinRecording } from '../../media/recording/joined-recording.ts'
import { wavHeaderOf } from '../../media/recording/wav.ts'
import { bytesOf } from '../../model/frame.ts'
import type { ReadPart, RecordingReader } from '../../model/recording-store.ts'
import { parseWav } from '../scenes/parse-wav.ts'

const wav = (ms: number, value: number, channels: 1 | 2 = 1): Buffer => {
  const samples = new Int16Array(ms * 16 * channels).fill(value)
  return Buffer.concat([wavHeaderOf({ rateHz: 16_000, channels }, samples.length * 2), bytesOf(samples)])
}

const readerOf = (file: Buffer): RecordingReader => ({
  size: file.length,
  stream: (from, to) => new Blob([new Uint8Array(file.subarray(from, to + 1))]).stream(),
})

const part = (from: number, file: Buffer | null, isComing = false): ReadPart => ({
  from,
  reader: file && readerOf(file),
  isComing,
})

const bytesIn = async (reader: RecordingReader, from = 0, to = reader.size - 1): Promise<Buffer> =>
  Buffer.from(await new Response(reader.stream(from, to)).arrayBuffer())

/** Runs of equal samples of the left channel: value and ms. */
async function runsOf(parts: readonly ReadPart[]): Promise<(readonly [value: number, ms: number])[]> {
  const { samples, channels } = parseWav(await bytesIn((await joinRecording(parts))!))
  const runs: [number, number][] = []
  for (let at = 0; at < samples.length; at += channels) {
    const newest = runs.at(-1)
    if (newest && newest[0] === samples[at]) newest[1] += 1 / 16
    else runs.push([samples[at]!, 1 / 16])
  }
  return runs
}

test('parts lie where they began, with silence between them', async (t) => {
  const parts = [part(0, wav(1_000, 7)), part(2_500, wav(500, 8)), part(3_000, wav(200, 9))]
  t.same(await runsOf(parts), [
    [7, 1_000],
    [0, 1_500],
    [8, 500],
    [9, 200],
  ])
  t.equal((await joinRecording(parts))?.lacks, undefined)
  const split = [part(0, wav(1_000, 7, 2)), part(1_100, wav(100, 8, 2))]
  t.same(await runsOf(split), [
    [7, 1_000],
    [0, 100],
    [8, 100],
  ])
})

test('any range of it is what the whole has there', async (t) => {
  const joined = (await joinRecording([part(0, wav(100, 7)), part(150, wav(100, 8)), part(260, wav(20, 9))]))!
  const whole = await bytesIn(joined)
  t.equal(whole.length, joined.size)
  for (const [from, to] of [
    [0, 0],
    [43, 44],
    [3_200, 3_300],
    [44 + 3_199, 44 + 4_801],
    [10, joined.size - 1],
    [joined.size - 1, joined.size - 1],
  ] as const)
    t.ok((await bytesIn(joined, from, to)).equals(whole.subarray(from, to + 1)), `${from} to ${to}`)
  t.throws(() => joined.stream(0, joined.size), RangeError)
})

test('a leg that was left behind and recorded on ends where the next one began; a clock that went wrong loses no sound', async (t) => {
  t.same(await runsOf([part(0, wav(2_000, 7)), part(1_500, wav(500, 8))]), [
    [7, 1_500],
    [8, 500],
  ])
  const behind = [part(0, wav(1_000, 7)), part(0, wav(500, 8))]
  t.same(await runsOf(behind), [
    [7, 1_000],
    [8, 500],
  ])
  t.same(await runsOf([part(0, wav(1_000, 7)), part(9_000_000, wav(500, 8))]), [
    [7, 1_000],
    [0, 60_000],
    [8, 500],
  ])
})

test('what cannot be read is silence, and told; what is too short to have been anything is not', async (t) => {
  const lacking = async (...parts: ReadPart[]) => (await joinRecording(parts))?.lacks
  t.same(await lacking(part(0, null), part(41_000, wav(500, 8))), [{ from: 0, to: 41_000, isComing: false }])
  t.same(await runsOf([part(0, null), part(41_000, wav(500, 8))]), [
    [0, 41_000],
    [8, 500],
  ])
  t.same(await lacking(part(0, wav(1_000, 7)), part(1_500, null, true), part(9_000, wav(500, 8))), [
    { from: 1_500, to: 9_000, isComing: true },
  ])
  t.same(await lacking(part(0, wav(1_000, 7)), part(1_500, null)), [{ from: 1_500, to: null, isComing: false }])
  t.equal(await lacking(part(0, null), part(900, wav(500, 8))), undefined)
  t.equal(await lacking(part(0, wav(1_000, 7)), part(1_500, Buffer.alloc(0)), part(2_000, wav(500, 8))), undefined)
  t.equal(await joinRecording([part(0, null), part(900, wavHead())]), null, 'there is no sound')
})

/** Of a process that was killed at once. */
const wavHead = (): Buffer => Buffer.from(wavHeaderOf({ rateHz: 16_000, channels: 1 }, 0))
