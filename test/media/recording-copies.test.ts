/** The copies of a recording, made by their thread: Ogg Opus (RFC 3533, RFC 7845) and the waveform. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { createOggOpusWriter } from '../../media/recording/ogg-opus.ts'
import { createRecordingCopies } from '../../media/recording/recording-copies.ts'
import { wavHeaderOf } from '../../media/recording/wav.ts'
import { bytesOf } from '../../model/frame.ts'
import { peaksOf } from '../../model/recording-peaks.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createFolder } from '../scenes/folder.ts'
import { decodedOf, pagesOf } from '../scenes/ogg-file.ts'

const rateHz = 16_000
const never = new AbortController().signal

/** Something like a voice: a buzz with formants that comes and goes, as loud as `level`. */
const voice = (ms: number, hz: number, level = 8000): Int16Array =>
  Int16Array.from({ length: ms * 16 }, (_, at) => {
    const t = at / rateHz
    const syllable = Math.max(0, Math.sin(2 * Math.PI * 2.5 * t))
    const buzz = [1, 2, 3, 5, 8].reduce(
      (sum, harmonic) => sum + Math.sin(2 * Math.PI * hz * harmonic * t) / harmonic,
      0,
    )
    return Math.round(level * syllable * (buzz / 2.2))
  })

const silence = (ms: number): Int16Array => new Int16Array(ms * 16)

const silentTenths = (count: number): number[] => Array.from({ length: count }, () => 0)

const joined = (...parts: Int16Array[]): Int16Array => {
  const out = new Int16Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    out.set(part, at)
    at += part.length
  }
  return out
}

const sideBySide = (left: Int16Array, right: Int16Array): Int16Array =>
  Int16Array.from({ length: left.length * 2 }, (_, at) => (at % 2 === 0 ? left : right)[at >> 1]!)

const channelOf = (samples: Int16Array, channel: number, channels: number): Int16Array =>
  Int16Array.from({ length: samples.length / channels }, (_, at) => samples[at * channels + channel]!)

const energyOf = (samples: Int16Array): number => samples.reduce((sum, sample) => sum + sample * sample, 0)

/** dB of the sound over what is different. */
function snrOf(sound: Int16Array, heard: Int16Array): number {
  const noise = sound.reduce((sum, sample, at) => sum + (sample - heard[at]!) ** 2, 0)
  return 10 * Math.log10(energyOf(sound) / noise)
}

async function copied(t: Test, channels: 1 | 2, samples: Int16Array) {
  const folder = await createFolder(t)
  const copies = createRecordingCopies(systemClock)
  t.teardown(() => copies.close())
  const [wav, opus, peaks] = ['call.wav', 'call.opus', 'call.peaks'].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ]
  await writeFile(wav, Buffer.concat([wavHeaderOf({ rateHz, channels }, samples.length * 2), bytesOf(samples)]))
  const make = (signal = never) => copies.make({ wav, opus, peaks }, signal)
  return { folder, copies, wav, opus, peaks, make }
}

test('the compressed copy of a mixed recording is Ogg Opus that sounds like it, sample for sample as long, at a tenth of the bytes', async (t) => {
  const sound = joined(silence(500), voice(4_000, 140), silence(333), voice(2_501, 220))
  const { make, opus, wav } = await copied(t, 1, sound)
  await make()
  const file = await readFile(opus)
  const { channels, samples } = decodedOf(file)
  t.equal(channels, 1)
  t.equal(samples.length, sound.length)
  t.ok(snrOf(sound, samples) > 20, `${snrOf(sound, samples).toFixed(1)} dB`)
  const part = file.length / (await readFile(wav)).length
  t.ok(part < 0.12, `${(part * 100).toFixed(1)} % of the WAV`)
})

test('a split recording keeps its channels: the agent left, the caller right, and neither is heard in the other', async (t) => {
  const left = joined(voice(3_000, 140), silence(3_000))
  const right = joined(silence(3_000), voice(3_000, 220))
  const { make, opus, wav } = await copied(t, 2, sideBySide(left, right))
  await make()
  const file = await readFile(opus)
  const { channels, samples } = decodedOf(file)
  t.equal(channels, 2)
  const [agent, caller] = [channelOf(samples, 0, 2), channelOf(samples, 1, 2)]
  t.equal(agent.length, left.length)
  t.ok(snrOf(left, agent) > 20, `left ${snrOf(left, agent).toFixed(1)} dB`)
  t.ok(snrOf(right, caller) > 20, `right ${snrOf(right, caller).toFixed(1)} dB`)
  const half = left.length / 2
  const leak = (from: Int16Array, into: Int16Array) => 10 * Math.log10(energyOf(from) / Math.max(1, energyOf(into)))
  t.ok(leak(agent.subarray(0, half), caller.subarray(0, half)) > 25, 'the agent in the channel of the caller')
  t.ok(leak(caller.subarray(half), agent.subarray(half)) > 20, 'the caller in the channel of the agent')
  const part = file.length / (await readFile(wav)).length
  t.ok(part < 0.12, `${(part * 100).toFixed(1)} % of the WAV`)
})

test('pages begin and end the stream, count up, hold a second each, and carry right checksums and positions', async (t) => {
  for (const ms of [1, 20, 999, 1_000, 1_001, 3_217]) {
    const parts: Uint8Array[] = []
    const writer = createOggOpusWriter(1, 0xfedc_ba98, (page) => parts.push(page))
    // In pieces that fit no frame.
    const sound = voice(ms, 150)
    for (let at = 0; at < sound.length; at += 777) writer.add(sound.subarray(at, at + 777))
    writer.end()
    const file = Buffer.concat(parts)
    const pages = pagesOf(file)
    t.same(
      pages.map(({ sequence }) => sequence),
      [...pages.keys()],
      `${ms} ms`,
    )
    t.ok(pages.every(({ serial }) => serial === 0xfedc_ba98))
    t.same(
      pages.map(({ flags }) => flags),
      pages.map((_, at) => (at === 0 ? 2 : at === pages.length - 1 ? 4 : 0)),
    )
    t.same(
      pages.slice(0, 2).map(({ granule }) => granule),
      [0, 0],
    )
    t.ok(pages.slice(2, -1).every(({ packets }) => packets.length === 50))
    t.equal(pages.at(-1)!.granule, 312 + ms * 48)
    t.equal(decodedOf(file).samples.length, ms * 16)
  }
})

test('the waveform has ten values a second and channel, each the loudest sample of its tenth', async (t) => {
  const left = joined(silence(1_000), new Int16Array(1600).fill(16_384), silence(150))
  const right = joined(silence(1_100), new Int16Array(2_400).fill(-32_768))
  const { make, peaks } = await copied(t, 2, sideBySide(left, right))
  await make()
  const made = peaksOf(await readFile(peaks))
  t.equal(made?.durationMs, 1_250)
  t.same(made?.channels[0], [...silentTenths(10), 0.5, 0, 0])
  t.same(made?.channels[1], [...silentTenths(11), 1, 1])
})

test('what is no recording has no copies, says why, and leaves nothing half; the next one is made', async (t) => {
  const { make, wav, folder } = await copied(t, 1, voice(500, 140))
  const whole = await readFile(wav)
  for (const [bytes, why] of [
    [Buffer.alloc(0), /no sound/],
    [whole.subarray(0, 44), /no sound/],
    [Buffer.alloc(5_000, 7), /no sound/],
  ] as const) {
    await writeFile(wav, bytes)
    await t.rejects(make(), { message: why })
    t.same(await readdir(folder), ['call.wav'])
  }
  await writeFile(wav, whole)
  await make()
  t.same((await readdir(folder)).toSorted(), ['call.opus', 'call.peaks', 'call.wav'])
})

test('a recording whose process was killed is copied as far as its header tells', async (t) => {
  const sound = voice(2_000, 140)
  const { make, wav, opus } = await copied(t, 1, sound)
  await writeFile(wav, Buffer.concat([wavHeaderOf({ rateHz, channels: 1 }, 16_000 * 2), bytesOf(sound)]))
  await make()
  t.equal(decodedOf(await readFile(opus)).samples.length, 16_000)
})

test('who does not want the copies any more has nothing written after that', async (t) => {
  const { make, folder, copies, wav, opus, peaks } = await copied(t, 1, voice(60_000, 140))
  const abort = new AbortController()
  const first = make(abort.signal)
  const second = copies.make({ wav, opus: `${opus}2`, peaks: `${peaks}2` }, never)
  abort.abort()
  await t.rejects(first, /not wanted/)
  t.notOk((await readdir(folder)).includes('call.opus'))
  await second
  t.notOk((await readdir(folder)).includes('call.opus'), 'nor later')
})

test('a thread that does not answer is ended, and its recording is told to have failed', async (t) => {
  const { wav, opus, peaks } = await copied(t, 1, voice(300, 140))
  const clock = createHandClock()
  const silent = 'import { parentPort } from "node:worker_threads"; parentPort.on("message", () => {})'
  const copies = createRecordingCopies(clock, new URL(`data:text/javascript,${encodeURIComponent(silent)}`))
  t.teardown(() => copies.close())
  const made = copies.make({ wav, opus, peaks }, never)
  clock.advance(31 * 60_000)
  await t.rejects(made, /does not answer/)
})
