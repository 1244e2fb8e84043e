/** The recording of a leg: where sound lies on the timeline, and the file at any moment of its life. */
import { test } from 'tap'
import type { RecordingMode } from '../../model/leg.ts'
import type { RecordingWriter } from '../../model/recording-store.ts'
import { createRecording, type Recording } from '../../media/recording/recording.ts'
import { parseWav } from '../scenes/parse-wav.ts'
import { createRandom } from '../fake/random.ts'

/** A file as it would lie on the disk if everything so far were written. */
function createMemoryFile() {
  const parts: Uint8Array[] = []
  let closed = false
  const writer: RecordingWriter = {
    append: (bytes) => void parts.push(bytes.slice()),
    overwriteStart: (bytes) => parts[0]!.set(bytes),
    close: async () => void (closed = true),
  }
  return { writer, bytes: () => Buffer.concat(parts), isClosed: () => closed }
}

const frame = (level: number, samples = 320): Int16Array => new Int16Array(samples).fill(level)

function recorded(mode: RecordingMode) {
  const file = createMemoryFile()
  const recording = createRecording({ writer: file.writer, mode, startedAt: 1000, clockRateHz: 48_000 })
  return { file, recording }
}

/** Runs the ticker from 1000 on; `each` gets the milliseconds since the beginning. */
function run(recording: Recording, forMs: number, each: (ms: number, at: number) => void): void {
  for (let ms = 0; ms < forMs; ms += 20) {
    each(ms, 1000 + ms)
    recording.tick(1000 + ms)
  }
}

const timestampAt = (ms: number): number => (0xffff_f000 + ms * 48) >>> 0

/** Stretches of equal level in one channel, as [level, milliseconds]. */
function stretchesOf(samples: Int16Array, channel = 0, channels = 1): [number, number][] {
  const stretches: [number, number][] = []
  for (let i = channel; i < samples.length; i += channels) {
    const last = stretches.at(-1)
    if (last && last[0] === samples[i]) last[1] += 1 / 16
    else stretches.push([samples[i]!, 1 / 16])
  }
  return stretches
}

test('split: the agent is on the left where it was played, the caller on the right, gaps are silent', async (t) => {
  const { file, recording } = recorded('split')
  run(recording, 1000, (ms, at) => {
    if (ms >= 200 && ms < 600) recording.agent(frame(100), at)
    if (ms >= 400 && ms < 800) recording.caller(frame(-7), timestampAt(ms), at)
  })
  t.equal(await recording.finish(2000), 1000)
  const wav = parseWav(file.bytes())
  t.match(wav, { rateHz: 16_000, channels: 2 })
  t.same(stretchesOf(wav.samples, 0, 2), [
    [0, 200],
    [100, 400],
    [0, 400],
  ])
  t.same(stretchesOf(wav.samples, 1, 2), [
    [0, 400],
    [-7, 400],
    [0, 200],
  ])
  t.ok(file.isClosed())
  t.equal(await recording.finish(9000), 1000, 'finishing twice changes nothing')
  recording.agent(frame(1), 9000)
  recording.tick(9000)
  t.equal(parseWav(file.bytes()).samples.length, wav.samples.length)
})

test('mixed: both are heard at once and clip instead of wrapping', async (t) => {
  const { file, recording } = recorded('mixed')
  run(recording, 800, (ms, at) => {
    recording.agent(frame(ms < 400 ? 100 : 30_000), at)
    recording.caller(frame(ms < 400 ? 23 : 30_000), timestampAt(ms), at)
  })
  t.equal(await recording.finish(1800), 800)
  t.same(stretchesOf(parseWav(file.bytes()).samples), [
    [123, 400],
    [32_767, 400],
  ])
})

test('jitter and bursts do not move the caller, who lies by the RTP timestamp', async (t) => {
  const random = createRandom(2)
  const { file, recording } = recorded('split')
  const waiting: { ms: number; due: number }[] = []
  run(recording, 3000, (ms, at) => {
    const due = ms === 0 ? 0 : Math.max(ms + random.below(60), waiting.at(-1)?.due ?? 0)
    // From 1 s to 1.3 s nothing arrives, then all at once.
    waiting.push({ ms, due: due >= 1000 && due < 1300 ? 1300 : due })
    while (waiting.length > 0 && waiting[0]!.due <= ms) {
      const { ms: said } = waiting.shift()!
      recording.caller(frame(said), timestampAt(said), at)
    }
  })
  await recording.finish(4000)
  const samples = parseWav(file.bytes()).samples
  for (let ms = 0; ms < 2900; ms += 20)
    if (samples[(ms + 5) * 32 + 1] !== ms) t.fail(`${samples[(ms + 5) * 32 + 1]} at ${ms}`)
  t.pass('every frame in its place')
})

test("a jump of the caller's clock is anchored anew at the time of arrival", async (t) => {
  for (const jump of [3_600_000, -3_600_000, 250, -900]) {
    const { file, recording } = recorded('split')
    run(recording, 3000, (ms, at) => recording.caller(frame(ms), timestampAt(ms + (ms >= 1000 ? jump : 0)), at))
    await recording.finish(4000)
    const samples = parseWav(file.bytes()).samples
    const late = [980, 1200, 2900].map((ms) => samples[(ms + 5) * 32 + 1]! - ms)
    t.ok(
      late.every((offset) => Math.abs(offset) <= 100),
      `${jump} ms: ${late.join()}`,
    )
  }
})

test('a drifting clock is never more than 140 ms away from its time', async (t) => {
  for (const drift of [0.999, 1.001]) {
    const { file, recording } = recorded('split')
    let said = 0
    run(recording, 400_000, (ms, at) => {
      for (; said * 20 * drift <= ms; said++) recording.caller(frame((ms / 20) % 10_000), timestampAt(said * 20), at)
    })
    await recording.finish(401_000)
    const samples = parseWav(file.bytes()).samples
    let worst = 0
    for (let ms = 1000; ms < 399_000; ms += 100) {
      const heard = samples[(ms + 5) * 32 + 1]!
      const away = Math.abs(heard * 20 - (ms % 200_000))
      // Levels begin anew every 200 s.
      if (heard !== 0) worst = Math.max(worst, Math.min(away, 200_000 - away))
    }
    t.ok(worst <= 140, `${drift}: ${worst} ms`)
  }
})

test('at any moment the file is a valid WAV that lacks less than two seconds, or there is none yet', async (t) => {
  const { file, recording } = recorded('mixed')
  t.equal(file.bytes().length, 0)
  let checked = 0
  run(recording, 6000, (ms, at) => {
    recording.agent(frame(5), at)
    if (ms % 500 !== 0) return
    checked++
    const bytes = file.bytes()
    const samples = bytes.length === 0 ? new Int16Array(0) : parseWav(bytes).samples
    t.ok(samples.length / 16 >= ms - 1600, `${samples.length / 16} ms of ${ms}`)
    t.ok(samples.every((sample) => sample === 5))
  })
  t.equal(checked, 12)
})

/** Of a voice's kind: many waves, none of them above 3 kHz. Any piece of it at any rate. */
function soundOf(seed: number, rateHz: number, from: number, count: number): Int16Array {
  const random = createRandom(seed)
  const waves = Array.from({ length: 12 }, () => [100 + random.below(2900), random.below(628) / 100] as const)
  return Int16Array.from({ length: count }, (_, i) => {
    const seconds = (from + i) / rateHz
    return Math.round(
      waves.reduce((sum, [hertz, phase]) => sum + 600 * Math.sin(2 * Math.PI * hertz * seconds + phase), 0),
    )
  })
}

/** The greatest difference, at any sample between two moments, of what is heard so many samples later. */
function farthest(heard: Int16Array, wanted: Int16Array, fromMs: number, toMs: number, late = 0): number {
  let most = 0
  for (let at = fromMs * 16; at < toMs * 16; at++) most = Math.max(most, Math.abs(heard[at]! - wanted[at - late]!))
  return most
}

test('sound of a telephone lies where it was heard to the sample, at 16 kHz, without a seam', async (t) => {
  const wanted = [1, 2].map((seed) => soundOf(seed, 16_000, 0, 16_000 * 8))
  for (const mode of ['split', 'mixed'] as const) {
    const { file, recording } = recorded(mode)
    run(recording, 8000, (ms, at) => {
      if (ms < 7000) recording.agent(soundOf(1, 8000, ms * 8, 160), at, 8000)
      if (ms >= 500) recording.caller(soundOf(2, 8000, ms * 8, 160), timestampAt(ms), at, 8000)
    })
    t.equal(await recording.finish(9000), 8000)
    const { samples } = parseWav(file.bytes())
    const channel = (at: number) => samples.filter((_, i) => i % 2 === at)
    const [agent, caller] = mode === 'split' ? [channel(0), channel(1)] : [samples, samples]
    const both = wanted[0]!.map((sample, i) => sample + wanted[1]![i]!)
    const whole = mode === 'split' ? wanted[0]! : both
    t.ok(farthest(agent, wanted[0]!, 5, 490) <= 12, `${mode}: the agent alone`)
    t.ok(farthest(agent, whole, 510, 6990) <= 12, `${mode}: while both speak`)
    t.ok(farthest(caller, wanted[1]!, 7010, 7990) <= 12, `${mode}: the caller alone`)
    t.ok(farthest(caller, mode === 'split' ? wanted[1]! : both, 510, 6990) <= 12, `${mode}: the caller`)
    if (mode === 'split') t.ok(farthest(caller, new Int16Array(16_000), 0, 490) === 0, 'and nothing before')
  }
})

test('a line whose rate changes in the middle of the call is recorded on, each part in its place', async (t) => {
  for (const rates of [
    [8000, 16_000],
    [8000, 16_000, 8000, 16_000],
    [16_000, 8000],
  ]) {
    const { file, recording } = recorded('split')
    const rateAt = (ms: number): number => rates[Math.floor(ms / 1500)] ?? 16_000
    run(recording, 6000, (ms, at) => {
      const rateHz = rateAt(ms)
      const samples = soundOf(3, rateHz, (ms * rateHz) / 1000, rateHz / 50)
      recording.agent(samples, at, rateHz)
      recording.caller(samples, timestampAt(ms), at, rateHz)
    })
    t.equal(await recording.finish(7000), 6000)
    const wanted = soundOf(3, 16_000, 0, 16_000 * 6)
    const { samples } = parseWav(file.bytes())
    const agent = samples.filter((_, i) => i % 2 === 0)
    t.same(
      agent,
      samples.filter((_, i) => i % 2 === 1),
      `${rates.join()}: both alike`,
    )
    for (let part = 0; part < 4; part++) {
      const [from, to] = [part * 1500 + 20, part * 1500 + 1480]
      // A filter that runs along with the sound delays it by 2.5 ms.
      const late = [0, 40].map((samples) => farthest(agent, wanted, from, to, samples))
      t.ok(Math.min(...late) <= 12, `${rates.join()}: part ${part}, ${late.join(' or ')} off`)
      if (part === 0) t.ok(late[0]! <= 12)
    }
  }
})

test('a recording of one side at 8 kHz and of the other at 16 kHz has both where they were', async (t) => {
  const { file, recording } = recorded('mixed')
  run(recording, 3000, (ms, at) => {
    recording.agent(soundOf(4, 16_000, ms * 16, 320), at)
    recording.caller(soundOf(5, 8000, ms * 8, 160), timestampAt(ms), at, 8000)
  })
  await recording.finish(4000)
  const other = soundOf(5, 16_000, 0, 48_000)
  const wanted = soundOf(4, 16_000, 0, 48_000).map((sample, at) => sample + other[at]!)
  t.ok(farthest(parseWav(file.bytes()).samples, wanted, 5, 2990) <= 12)
})

test('a thread that stood still for ten seconds leaves ten seconds of silence', async (t) => {
  const { file, recording } = recorded('mixed')
  recording.agent(frame(5), 1000)
  recording.tick(1000)
  recording.tick(11_000)
  recording.agent(frame(6), 11_000)
  t.equal(await recording.finish(11_020), 10_020)
  t.same(stretchesOf(parseWav(file.bytes()).samples), [
    [5, 20],
    [0, 9980],
    [6, 20],
  ])
})
