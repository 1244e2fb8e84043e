/** docs/supervision.md at the leg, on every codec: who listens hears both sides, who takes over is heard in place of the agent, and nobody else notices. */
import { test, type Test } from 'tap'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { createG722Decoder } from '../../media/codecs/g722.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { lostAfter } from '../../media/leg/stand-in.ts'
import { bytesOf, decodeFrame, encodeFrame, samplesOf, type AudioFormat, type Frame } from '../../model/frame.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import { negotiatedG722, negotiatedOpus, negotiatedPcmu, negotiatedPhone } from '../fake/scripted-transport.ts'
import { levelOf, openLegScene, pitchOf, subjects, type LegScene } from '../scenes/leg-scene.ts'
import { parseWav } from '../scenes/parse-wav.ts'

const opus = createOpusLibrary()
const pcm16: AudioFormat = { encoding: 'pcm16', rateHz: 16_000 }
const pcma: AudioFormat = { encoding: 'pcma', rateHz: 8000 }
const codecs = [negotiatedPcmu, negotiatedPhone, negotiatedG722, negotiatedOpus]
/** Hz, which do not hide in each other. */
const [agents, callers, supervisors] = [400, 900, 1_400] as const

const toneOf = (hz: number, rateHz: number): Int16Array =>
  Int16Array.from({ length: rateHz / 50 }, (_, at) => 8000 * Math.sin((2 * Math.PI * hz * at) / rateHz))

function agentFrame({ encoding, rateHz }: AudioFormat): Uint8Array {
  if (encoding === 'pcm16') return bytesOf(toneOf(agents, rateHz))
  const frame = new Uint8Array(160)
  lawOfEncoding(encoding).encode(toneOf(agents, 8000), frame)
  return frame
}

/** What the caller heard from a packet on: decoded from the first one, since codecs remember. */
function heardOf({ codec, payloadType }: NegotiatedAudio, sent: LegScene['wire']['sent'], from: number) {
  const isSound = (packet: LegScene['wire']['sent'][number]): boolean => packet.payloadType === payloadType
  const payloads = sent.filter(isSound).map(({ payload }) => payload)
  const rateHz = codec === 'opus' || codec === 'g722' ? 16_000 : 8000
  const samples = joined(decoded(codec, payloads).slice(sent.slice(0, from).filter(isSound).length))
  return { samples, rateHz, hz: pitchOf(samples, rateHz) }
}

function decoded(codec: NegotiatedAudio['codec'], payloads: readonly Uint8Array[]): Int16Array[] {
  if (codec === 'opus') {
    const decoder = opus.createDecoder({ rateHz: 16_000 })
    const pieces = payloads.map((payload) => decoder.decode(payload)?.slice() ?? new Int16Array(320))
    decoder.close()
    return pieces
  }
  const { decode, ratio } =
    codec === 'g722'
      ? { decode: createG722Decoder().decode, ratio: 2 }
      : { decode: lawOfEncoding(codec).decode, ratio: 1 }
  return payloads.map((payload) => {
    const samples = new Int16Array(payload.length * ratio)
    decode(payload, samples)
    return samples
  })
}
const joined = (pieces: readonly Int16Array[]): Int16Array => Int16Array.from(pieces.flatMap((piece) => [...piece]))

/** A leg whose agent and caller speak all the time. */
async function openTalk(t: Test, audio: NegotiatedAudio, format: AudioFormat, isRecorded: boolean) {
  const scene = openLegScene(t, audio, { opus })
  const heard: Frame[] = []
  scene.bus.subscribe(subjects.heard, ({ payload }) => void heard.push(decodeFrame(payload)!))
  scene.wire.connect()
  const recording = isRecorded ? { key: 'a/b.wav', mode: 'split' as const } : null
  await scene.command({ type: 'start', epoch: 1, hears: [format], speaks: [format], recording })
  const encoder = audio.codec === 'opus' ? opus.createEncoder({ rateHz: 16_000 }) : null
  const callersPayload = (): Uint8Array => {
    if (encoder) return encoder.encode(toneOf(callers, 16_000)).slice()
    const payload = new Uint8Array(160)
    lawOfEncoding(audio.codec === 'pcmu' ? 'pcmu' : 'pcma').encode(toneOf(callers, 8000), payload)
    return payload
  }
  let seq = 0
  const frame = agentFrame(format)
  const talk = (ms: number, { agentSpeaks = true, supervisor = false } = {}) =>
    scene.run(ms, () => {
      if (audio.codec !== 'g722') scene.wire.speak(callersPayload())
      const at = { epoch: 1, seq, timestamp: seq * 20 }
      seq++
      if (agentSpeaks) scene.bus.publish(subjects.down, encodeFrame({ ...at, payload: frame }))
      if (supervisor)
        scene.bus.publish(
          subjects.voice,
          encodeFrame({ ...at, epoch: 0, payload: bytesOf(toneOf(supervisors, 16_000)) }),
        )
    })
  const supervise = (listens: boolean, voice: boolean) => scene.command({ type: 'supervise', epoch: 1, listens, voice })
  t.teardown(() => encoder?.close())
  return { ...scene, heard, talk, supervise }
}

const near = (hz: number, wanted: number): boolean => Math.abs(hz - wanted) < wanted * 0.06

for (const audio of codecs)
  for (const format of [pcm16, pcma])
    for (const isRecorded of [false, true])
      test(`${audio.codec}, ${format.encoding}, ${isRecorded ? 'recorded' : 'not recorded'}`, async (t) => {
        const { wire, heard, talk, supervise, command, files, leg } = await openTalk(t, audio, format, isRecorded)
        await talk(400)
        t.equal(heard.length, 0, 'without listeners nothing is told')
        t.same(await supervise(true, false), { type: 'accepted' })
        const before = wire.sent.length
        await talk(1_000)
        t.ok(heard.length >= 49, `${heard.length} frames`)
        const halves = heard.slice(20).map(({ payload }) => samplesOf(payload))
        const agent = joined(halves.map((both) => both.slice(320)))
        t.ok(near(pitchOf(agent, 16_000), agents), `the agent at ${pitchOf(agent, 16_000)} Hz`)
        const caller = joined(halves.map((both) => both.slice(0, 320)))
        if (audio.codec !== 'g722')
          t.ok(near(pitchOf(caller, 16_000), callers), `the caller at ${pitchOf(caller, 16_000)} Hz`)
        const undisturbed = heardOf(audio, wire.sent, before)
        t.ok(near(undisturbed.hz, agents), 'the caller hears the agent and nobody else')

        await supervise(true, true)
        await talk(200, { supervisor: true })
        const led = wire.sent.length
        await talk(1_000, { supervisor: true })
        const voice = heardOf(audio, wire.sent, led)
        t.ok(near(voice.hz, supervisors), `the caller hears ${voice.hz} Hz`)

        await command({ type: 'flush', epoch: 1 })
        await supervise(false, false)
        await talk(200)
        const [given, told] = [wire.sent.length, heard.length]
        await talk(600)
        const back = heardOf(audio, wire.sent, given)
        t.ok(near(back.hz, agents), 'the agent is back')
        t.equal(heard.length, told)
        if (!isRecorded) return
        await leg.close()
        const { samples } = parseWav(files.get('a/b.wav')!)
        const left = samples.filter((_, at) => at % 2 === 0 && at > 2 * 16_000 * 2 && at < 2 * 16_000 * 2.4)
        t.ok(
          near(pitchOf(Int16Array.from(left), 16_000), supervisors),
          'the recording has the supervisor on the agent’s side',
        )
      })

test('a supervisor of whom nothing comes is told once, and again when they speak anew', async (t) => {
  const { talk, supervise, events } = await openTalk(t, negotiatedPcmu, pcm16, false)
  const lost = () => events.filter(({ type }) => type === 'voice_lost').length
  await supervise(true, true)
  await talk(lostAfter - 100, { agentSpeaks: false })
  t.equal(lost(), 0)
  await talk(3_000, { agentSpeaks: false })
  t.equal(lost(), 1)
  await supervise(true, false)
  await supervise(true, true)
  await talk(1_000, { agentSpeaks: false, supervisor: true })
  await talk(lostAfter - 100, { agentSpeaks: false })
  t.equal(lost(), 1)
  await talk(200, { agentSpeaks: false })
  t.equal(lost(), 2)
})

test('whoever listens is never far behind, whatever a burst of the caller brings, and hears silence where nobody speaks', async (t) => {
  const { run, wire, heard, supervise } = await openTalk(t, negotiatedPcmu, pcm16, false)
  await supervise(true, false)
  await run(200)
  t.ok(heard.length >= 10 && heard.every(({ payload }) => levelOf(samplesOf(payload)) === 0), 'silence')
  const tone = new Uint8Array(160)
  lawOfEncoding('pcmu').encode(toneOf(callers, 8000), tone)
  for (let burst = 0; burst < 40; burst++) wire.speak(tone)
  await run(1_000)
  const loud = heard.filter(({ payload }) => levelOf(samplesOf(payload)) > 100).length
  t.ok(loud > 0 && loud <= 12, `${loud} frames of a burst of 40`)
})

test('a command of an actor that was taken over changes nothing', async (t) => {
  const { command, heard, talk } = await openTalk(t, negotiatedPcmu, pcm16, false)
  await command({ type: 'ping', epoch: 2 })
  t.match(await command({ type: 'supervise', epoch: 1, listens: true, voice: true }), { type: 'refused' })
  await talk(200)
  t.equal(heard.length, 0)
})
