/** When a silent client is taken for gone: by its consent while it has a socket or may come back, quickly when socket and media end together. */
import { test } from 'tap'
import { createLegWire } from '../../media/leg/leg-wire.ts'
import { createSilenceWatch } from '../../media/leg/silence-watch.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { negotiatedOpus } from '../fake/scripted-transport.ts'
import { openLegScene } from '../scenes/leg-scene.ts'

/** Asked every 20 ms, as a leg does; `sign` comes every so many ms. */
function createWatch() {
  let time = 1000
  const watch = createSilenceWatch(() => time)
  const run = (ms: number, every = 0, sign: () => void = () => undefined) => {
    for (let passed = 20; passed <= ms; passed += 20) {
      time += 20
      if (every > 0 && passed % every === 0) sign()
      const details = watch.gone()
      if (details) return { details, cause: watch.cause(), after: passed }
    }
    return null
  }
  const leap = (ms: number) => void (time += ms)
  return { watch, run, leap }
}

test('without sound the call goes on for as long as the client consents and has its socket', async (t) => {
  for (const talks of [true, false]) {
    const { watch, run } = createWatch()
    watch.presence('open')
    if (talks) t.equal(run(1000, 20, watch.packet), null)
    t.equal(run(600_000, 6000, watch.consented), null, 'ten minutes of checks, as Firefox sends them')
    t.equal(run(600_000, 6000, watch.alive), null, 'or of reports')
    t.match(run(60_000), { cause: 'media_lost', details: 'consent ended', after: 30_000 })
  }
})

test('behind comfort noise a gateway without reports may be silent for a minute, behind sound for 15 s', async (t) => {
  const { watch, run } = createWatch()
  run(1000, 20, watch.packet)
  watch.packet(true)
  t.equal(run(60_000), null)
  watch.packet(true)
  t.match(run(90_000), { cause: 'media_lost', details: 'packets stopped coming', after: 60_020 })
  watch.packet()
  t.match(run(60_000), { cause: 'media_lost', details: 'packets stopped coming', after: 15_020 })
})

test('a telephone that sends nothing while its caller is silent is known by its pauses, and may be silent for a minute', async (t) => {
  const nothing = () => undefined
  const silenceAfter = (
    pauses: readonly { readonly ms: number; readonly lost?: number; readonly marker?: boolean }[],
  ) => {
    let [time, sequenceNumber, timestamp] = [0, 65_500, 2 ** 32 - 4000]
    const told = { negotiated: nothing, connected: nothing, packet: nothing, held: nothing, disconnected: nothing }
    const { handlers, lost } = createLegWire({ ...told, now: () => time, connectWithin: 60_000 })
    handlers.negotiated({ ...negotiatedOpus, codec: 'pcmu', payloadType: 0, clockRateHz: 8000 })
    handlers.connected('200 OK')
    const say = (marker: boolean) => {
      for (let count = 0; count < 25; count += 1) {
        const packet = { payloadType: 0, sequenceNumber, timestamp, payload: new Uint8Array(160) }
        handlers.packet({ ...packet, marker: marker && count === 0 })
        time += 20
        sequenceNumber = (sequenceNumber + 1) & 0xffff
        timestamp = (timestamp + 160) >>> 0
      }
    }
    say(true)
    for (const { ms, lost: left = 0, marker = true } of pauses) {
      time += ms
      timestamp = (timestamp + ms * 8) >>> 0
      sequenceNumber = (sequenceNumber + left) & 0xffff
      say(marker)
    }
    const since = time
    while (lost() === null) time += 20
    return time - since
  }
  t.equal(silenceAfter([{ ms: 3000 }, { ms: 600 }]), 60_000)
  for (const pauses of [
    [],
    [{ ms: 3000 }],
    [
      { ms: 3000, lost: 150 },
      { ms: 3000, lost: 150 },
    ],
    [
      { ms: 600, marker: false },
      { ms: 600, marker: false },
    ],
  ])
    t.equal(silenceAfter(pauses), 15_000, JSON.stringify(pauses))
})

test('a client whose socket is lost and whose media goes on is there: sound, checks, reports', async (t) => {
  for (const presence of ['left', 'lost'] as const) {
    const { watch, run } = createWatch()
    watch.presence('open')
    run(1000, 20, watch.packet)
    watch.presence(presence)
    t.equal(run(30_000, 20, watch.packet), null)
    watch.presence('open')
    t.equal(run(6000, 6000, watch.consented), null, 'put on hold')
    watch.presence(presence)
    t.equal(run(30_000, 6000, watch.consented), null, 'without the socket again')
    watch.presence('open')
    t.equal(run(29_000), null, 'back, and moving to another network')
    t.equal(run(15_000, 20, watch.packet), null)
  }
})

test('a page that closes its socket and falls silent was closed: noticed within 5 s', async (t) => {
  const { watch, run } = createWatch()
  watch.presence('open')
  run(1000, 20, watch.packet)
  watch.presence('left')
  const gone = run(60_000)
  t.match(gone, { cause: 'hung_up' })
  t.ok((gone?.after ?? 1e9) < 4500, `${gone?.after} ms`)
})

test('a client whose socket breaks together with its media may be on its way to another network', async (t) => {
  const { watch, run } = createWatch()
  watch.presence('open')
  run(1000, 20, watch.packet)
  watch.presence('lost')
  t.equal(run(29_900), null)
  watch.presence('none')
  t.match(run(200), { cause: 'media_lost', details: 'packets stopped coming' })
})

test('when nobody comes back, sound or reports have to come every 15 s', async (t) => {
  const { watch, run } = createWatch()
  watch.presence('open')
  run(1000, 20, watch.packet)
  watch.presence('none')
  t.match(run(60_000, 5000, watch.consented), { cause: 'media_lost', details: 'packets stopped coming', after: 15_020 })
})

test('time in which this process stood still is no silence of the client', async (t) => {
  const { watch, run, leap } = createWatch()
  watch.presence('open')
  run(1000, 20, watch.packet)
  for (const presence of ['open', 'left'] as const) {
    watch.presence(presence)
    leap(60_000)
    t.equal(run(100), null)
  }
})

test('a leg is told of the socket and of consent, and ends as it should', async (t) => {
  const scene = openLegScene(t, negotiatedOpus, { opus: createOpusLibrary() })
  const { handlers } = scene.leg
  scene.wire.connect()
  handlers.presence('open')
  scene.command({ type: 'start', epoch: 1, hears: [pcm16], speaks: [pcm16], recording: null }).catch(t.threw)
  for (let rounds = 0; rounds < 20; rounds += 1) {
    await scene.run(5000)
    handlers.consented()
  }
  t.notMatch(scene.events.at(-1), { type: 'disconnected' })
  handlers.presence('left')
  await scene.run(20, () => scene.wire.speak(Uint8Array.of(0xf8, 0xff, 0xfe)))
  await scene.run(4500)
  t.match(scene.events.at(-1), { type: 'disconnected', cause: 'hung_up' })
})

const pcm16 = { encoding: 'pcm16', rateHz: 16_000 } as const
