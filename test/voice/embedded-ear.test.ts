/** What the embedded agent takes for a caller and what not: tones, music, noise, its own echo, coughs and nods, through the real engine. */
import { test } from 'tap'
import { createEmbeddedEngine } from '../../voice/engines/embedded/engine.ts'
import { patientClock } from '../fake/patient-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { otherHoldMusic } from '../scenes/hold-music.ts'
import { bands, constantNoises, holdMusic, music, signals, soundOf } from '../scenes/line-noises.ts'
import { frameSamples, isAudible, openPlayedCall } from '../scenes/played-call.ts'
import { callConfig } from '../scenes/spoken-call.ts'
import { overTelephone } from '../scenes/telephone-sound.ts'

const engine = await createEmbeddedEngine({ log: createQuietLog(), clock: patientClock, threads: 1 })

const days = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const lines = days.map((day) => `On ${day} our tea house is open from nine in the morning until eight in the evening.`)
const talk = [...lines.map((line) => `say ${line}`), 'end Thank you for calling.'].join('\n')
await engine.warm([...lines, 'Thank you for calling.'], 'rms')

/** How many frames of the agent a caller hears while this comes on the line. */
async function voicedFrames(line: Int16Array): Promise<Talk> {
  const call = await openPlayedCall(engine, callConfig({ script: talk }))
  let voiced = 0
  for (let at = 0; at + frameSamples <= line.length; at += frameSamples)
    if (isAudible(await call.frame(line.slice(at, at + frameSamples)))) voiced++
  const starts = call.events.flatMap((event) => (event.type === 'user_speech_started' ? [event.at] : []))
  call.close()
  return { voiced, began: starts.length, starts }
}
/** `starts`: when the caller was taken to begin, ms. */
type Talk = { readonly voiced: number; readonly began: number; readonly starts: readonly number[] }

const callMs = 25_000
const silent = await voicedFrames(new Int16Array(16 * callMs))

const linesOf = (sound: Int16Array) =>
  [
    ['wide', sound],
    ['telephone', overTelephone(sound)],
  ] as const

test('no tone, signal, key, beep or steady noise is a caller: the agent speaks as on a silent line', async (t) => {
  t.ok(silent.voiced > 900, `${silent.voiced} frames on a silent line`)
  for (const [name, wave] of Object.entries({ ...signals, ...constantNoises })) {
    for (const [line, heard] of linesOf(soundOf(callMs, wave()))) {
      const { voiced, began } = await voicedFrames(heard)
      t.equal(began, 0, `${name}, ${line}: nobody speaks`)
      t.ok(voiced >= 0.99 * silent.voiced, `${name}, ${line}: ${voiced} of ${silent.voiced} frames`)
    }
  }
})

test('hold music is no caller: it begins nothing, or the agent goes on within a second or so', async (t) => {
  for (const [name, wave] of Object.entries({ ...holdMusic, ...otherHoldMusic }))
    for (const [line, heard] of linesOf(soundOf(callMs, wave()))) {
      const { voiced, began } = await voicedFrames(heard)
      t.ok(began <= (name in holdMusic ? 0 : 3), `${name}, ${line}: ${began} beginnings`)
      t.ok(voiced >= 0.85 * silent.voiced, `${name}, ${line}: ${voiced} of ${silent.voiced} frames`)
    }
})

test('who speaks over music is heard, on a line that has carried it for long', async (t) => {
  for (const name of ['piano', 'strings'] as const)
    for (const voice of ['rms', 'slt', 'kal16'] as const) {
      const sound = soundOf(12_000, music(bands[name]!, -34))
      const speech = await engine.speak('Can you tell me your opening hours on Sunday?', voice)
      for (let index = 0; index < speech.length; index++) sound[16 * 7_000 + index]! += speech[index]!
      for (const [line, heard] of linesOf(sound)) {
        const { starts } = await voicedFrames(heard)
        const onset = 7_000 + speech.findIndex((sample) => Math.abs(sample) > 300) / 16
        t.ok(
          starts.some((at) => Math.abs(at - onset) < 400),
          `${voice} over ${name}, ${line}: ${starts.join()} for ${onset}`,
        )
      }
    }
})

test('a monotonous voice is a caller, on any line', async (t) => {
  for (const text of ['near the window', 'a large table', 'eleven', 'no']) {
    for (const [line, heard] of linesOf(await engine.speak(text, 'slt'))) {
      const sound = new Int16Array(16 * 6_000)
      sound.set(heard, 16 * 3_000)
      const { began } = await voicedFrames(sound)
      t.equal(began, 1, `${text}, ${line}`)
    }
  }
})

test('a caller is heard on a line with a constant part, as analog gateways have it, and the line itself is nobody', async (t) => {
  const speech = await engine.speak('a large table', 'kal16')
  for (const constant of [400, -3_000]) {
    const sound = new Int16Array(16 * 6_000).map((_, at) => constant + 0.4 * (speech[at - 16 * 3_000] ?? 0))
    const { starts } = await voicedFrames(sound)
    t.ok(starts.length === 1 && Math.abs(starts[0]! - 3_000) < 300, `${constant}: ${starts.join()}`)
  }
  // Who speaks at once, on a line that hums softly besides.
  for (const constant of [1_000, -3_000]) {
    const sound = new Int16Array(16 * 3_000).map(
      (_, at) => constant + (at % 2 ? 8 : -8) + 0.4 * (speech[at - 16 * 400] ?? 0),
    )
    const { starts } = await voicedFrames(sound)
    t.ok(starts.length === 1 && Math.abs(starts[0]! - 400) < 300, `${constant}, at once: ${starts.join()}`)
  }
})

test('a short word is a caller, loud or soft, on a silent line and behind music that has stopped', async (t) => {
  const beforeIt = soundOf(4_000, music(bands['piano']!, -20))
  for (const text of ['Yes.', 'No.'])
    for (const voice of ['rms', 'slt', 'kal16', 'awb'] as const)
      for (const factor of [1, 0.3]) {
        const speech = await engine.speak(text, voice)
        const sound = new Int16Array(16 * 8_000)
        sound.set(voice === 'awb' ? beforeIt : new Int16Array(0))
        sound.set(
          speech.map((sample) => factor * sample),
          16 * 6_000,
        )
        for (const [line, heard] of linesOf(sound)) {
          const { starts } = await voicedFrames(heard)
          t.ok(
            starts.some((at) => at >= 5_900 && at < 6_600),
            `${text} ${voice}, ${factor} times as loud, ${line}: ${starts.join()}`,
          )
        }
      }
})

/** The agent's sound so many ms later and so much softer, with the caller's own above it; frames of the agent, and when the caller was noticed. */
async function withEcho({ delayMs, gain, caller = new Int16Array(0), at = 0 }: EchoLine) {
  const call = await openPlayedCall(engine, callConfig({ script: talk }))
  const sent = new Int16Array(16 * (callMs + 20))
  let voiced = 0
  for (let from = 0; from < 16 * callMs; from += frameSamples) {
    const line = new Int16Array(frameSamples)
    for (let index = 0; index < frameSamples; index++)
      line[index] = gain * (sent[from + index - 16 * delayMs] ?? 0) + (caller[from + index - 16 * at] ?? 0)
    const out = await call.frame(line)
    sent.set(out, from)
    if (isAudible(out)) voiced++
  }
  const began = call.events.flatMap((event) => (event.type === 'user_speech_started' ? [event.at] : []))
  call.close()
  return { voiced, began }
}
type EchoLine = {
  readonly delayMs: number
  readonly gain: number
  readonly caller?: Int16Array
  readonly at?: number
}

test("the agent's own sound coming back is no caller, and who speaks over it is one", async (t) => {
  for (const delayMs of [20, 90, 137, 260, 500])
    for (const gain of [0.1, -0.1, 0.3]) {
      const { voiced, began } = await withEcho({ delayMs, gain })
      t.same(began, [], `${delayMs} ms later, ${gain} times as loud`)
      t.ok(voiced >= 0.99 * silent.voiced, `${voiced} of ${silent.voiced} frames`)
    }
  const speech = await engine.speak('Can you tell me your opening hours on Sunday?', 'slt')
  const onset = 3000 + speech.findIndex((sample) => Math.abs(sample) > 300) / 16
  for (const delayMs of [90, 260]) {
    const { began } = await withEcho({ delayMs, gain: 0.1, caller: speech, at: 3000 })
    t.ok(began[0] !== undefined && Math.abs(began[0] - onset) < 300, `${began[0]} for ${onset}`)
  }
})

test('whoever nods or coughs over a line hears all of it', async (t) => {
  const random = createRandom(9)
  const cough = Int16Array.from(
    { length: 16 * 300 },
    (_, index) => (random.next() - 0.5) * 16_000 * Math.exp(-index / 1500),
  )
  const sounds: [string, Int16Array][] = [['a cough', cough]]
  for (const text of ['Uh huh.', 'I see.', 'Right.', 'Okay.', 'Got it.'])
    for (const voice of ['kal16', 'awb']) sounds.push([`${text} ${voice}`, await engine.speak(text, voice)])
  for (const [name, sound] of sounds) {
    const call = await openPlayedCall(engine, callConfig({ script: talk }))
    const sent = new Int16Array(16 * 12_000)
    sent.set(sound, 16 * 3000)
    for (let at = 0; at < sent.length; at += frameSamples) await call.frame(sent.slice(at, at + frameSamples))
    t.match(call.said().slice(0, 2).join(' '), /Monday.*(Monday|Tuesday)/, name)
    const isCut = call.events.some(({ type }) => type === 'user_speech_started')
    if (isCut) t.equal(call.said()[1], lines[0], `${name}: the line that was cut goes on`)
    call.close()
  }
})

test('the engine is closed', async () => {
  await engine.close()
})
