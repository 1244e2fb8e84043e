/** The rules of the MediaPlane port, over each: sound in this thread, and in a thread of its own that is started for real. */
import path from 'node:path'
import { test, type Test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { systemClock as clock } from '../../app/clock.ts'
import { readConfig, type Config } from '../../app/config.ts'
import { openLocalMedia } from '../../app/local-media.ts'
import { mediaSettingsOf, type LegBegan } from '../../app/media-settings.ts'
import { openMediaThreads } from '../../app/media-threads.ts'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import type { MediaPlane, PhoneCallLine } from '../../media/plane/media-plane.ts'
import type { MediaSession } from '../../media/rtp/media-session.ts'
import { subjectsOf, type NodeBus } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import { decodeFrame, encodeFrame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import { LegEvent, LegReply, type LegCommand } from '../../model/leg.ts'
import { Problem } from '../../model/problem.ts'
import { noTelemetry } from '../../model/telemetry.ts'
import { createMemoryRecordings } from '../fake/memory-recordings.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRtpPeer, type RtpPeer } from '../fake/rtp-peer.ts'
import { negotiatedPhone } from '../fake/scripted-transport.ts'
import { createFolder } from '../scenes/folder.ts'
import { until } from '../scenes/in-time.ts'
import { newId } from '../scenes/tenant.ts'
import { freePorts } from '../peers/peer-program.ts'

type Scene = {
  readonly plane: MediaPlane
  readonly bus: NodeBus
  readonly legs: ReadonlySet<CallId>
  readonly first: number
}
type OpenPlane = (
  given: { readonly bus: NodeBus; readonly config: Config; readonly legBegan: LegBegan },
  closing: AsyncDisposableStack,
) => Promise<MediaPlane>

const pairs = 3
const shared = { nodeId: newId<'node'>(), clock, log: createQuietLog(), telemetry: noTelemetry }

const planes: Readonly<Record<string, OpenPlane>> = {
  async 'in this thread'({ bus, config, legBegan }, closing) {
    const recordings = createMemoryRecordings()
    const media = openLocalMedia({ ...shared, bus, recordings, legBegan }, mediaSettingsOf(config), closing)
    await media.warmUp()
    return media
  },
  'in a thread of its own': ({ bus, config, legBegan }, closing) =>
    openMediaThreads(
      { core: { ...shared, bus, recordings: { beginWriting: () => () => undefined } }, config, legBegan },
      closing,
    ),
}

async function openScene(t: Test, open: OpenPlane): Promise<Scene> {
  const closing = new AsyncDisposableStack()
  const dataDir = await createFolder(t)
  t.teardown(() => closing.disposeAsync())
  const first = await freePorts(2 * pairs)
  const config = readConfig({
    DATA_DIR: dataDir,
    RECORDINGS_DIR: path.join(dataDir, 'recordings'),
    MEDIA_THREADS: '1',
    SIP_MEDIA_PORTS: `${first}-${first + 2 * pairs - 1}`,
  })
  const bus = createLocalBus(shared)
  closing.defer(() => bus.close())
  const legs = new Set<CallId>()
  const legBegan: LegBegan = (callId) => {
    legs.add(callId)
    return () => void legs.delete(callId)
  }
  return { plane: await open({ bus, config, legBegan }, closing), bus, legs, first }
}

const sessionOf = ({ local: remote }: RtpPeer): MediaSession => ({
  remote,
  audio: negotiatedPhone,
  direction: 'sendrecv',
  srtp: null,
  rtcpMux: false,
})

/** A leg on a line, with its peer and its actor. */
async function openTalk(t: Test, { plane, bus }: Scene) {
  const [line, peer] = [await plane.openPhone(), await createRtpPeer()]
  t.teardown(() => peer.close())
  const callId = newId<'call'>()
  const subjects = subjectsOf(callId)
  const events: LegEvent[] = []
  const heard: number[] = []
  bus.subscribe(subjects.legEvent, ({ payload }) => void events.push(LegEvent.parse(fromBytes(payload))))
  bus.subscribe(subjects.up, ({ payload }) => void heard.push(decodeFrame(payload)?.seq ?? -1))
  const asked: string[] = []
  const ends = { hangUps: [] as (string | undefined)[], closed: 0 }
  const leg = line.begin({
    callId,
    signaling: {
      answer: () => void asked.push('answer'),
      transfer(to) {
        asked.push(`transfer ${to}`)
        return Promise.resolve({ accepted: false, details: 'not today' } as const)
      },
      sendDtmf: (digits) => asked.push(`keys ${digits}`) > 0,
    },
    connectWithin: 60_000,
    hangUp: (reason) => void ends.hangUps.push(reason),
    onClosed: () => void ends.closed++,
  })
  await leg.opened
  line.use(sessionOf(peer))
  const command = async (told: LegCommand): Promise<LegReply> =>
    LegReply.parse(fromBytes(await bus.request(subjects.legCommand, toBytes(told), { timeout: 5_000 })))
  const sound = new Uint8Array(160).fill(0xd5)
  const speak = async (line: PhoneCallLine, packets: number): Promise<void> => {
    for (let sequenceNumber = 1; sequenceNumber <= packets; sequenceNumber++)
      await peer.send(line.local, { sequenceNumber, payloadType: negotiatedPhone.payloadType, payload: sound })
  }
  return { line, peer, leg, callId, subjects, events, heard, asked, ends, command, speak, sound }
}

const format = [{ encoding: 'pcma', rateHz: 8000 }] as const
const start: LegCommand = { type: 'start', epoch: 1, hears: [...format], speaks: [...format], recording: null }

const rules: Readonly<Record<string, (t: Test, scene: Scene) => Promise<void>>> = {
  'a line says where peers find it': async (t, { plane, first }) => {
    const line = await plane.openPhone()
    const { address, port, rtcpPort } = line.local
    t.equal(address, '127.0.0.1')
    t.ok(port % 2 === 0 && port >= first && port < first + 2 * pairs, `${port}`)
    t.equal(rtcpPort, port + 1)
    t.equal(line.addressFor(4), '127.0.0.1')
    t.equal(line.addressFor(6), null)
    await line.close()
  },

  'there are as many lines as pairs of ports, and a closed one gives its own back': async (t, { plane }) => {
    const lines = [await plane.openPhone(), await plane.openPhone(), await plane.openPhone()]
    t.equal(new Set(lines.map(({ local }) => local.port)).size, pairs)
    await t.rejects(plane.openPhone(), { name: 'NoPortsLeft' })
    const [one] = lines
    await one?.close()
    await one?.close('again')
    const next = await plane.openPhone()
    t.equal(next.local.port, one?.local.port)
    for (const line of [...lines, next]) await line.close()
  },

  'a line counts packets, and knows keys that come with the sound': async (t, { plane }) => {
    const [line, peer] = [await plane.openPhone(), await createRtpPeer()]
    line.use(sessionOf(peer))
    t.same([line.packetsReceived(), line.hearsKeys()], [0, false])
    await peer.send(line.local, { sequenceNumber: 1, payloadType: 8, payload: new Uint8Array(160) })
    await until(() => line.packetsReceived() === 1)
    t.equal(line.hearsKeys(), false)
    await peer.send(line.local, { sequenceNumber: 2, payloadType: 101, payload: Uint8Array.of(5, 10, 0, 160) })
    await until(() => line.hearsKeys())
    await line.close()
    await peer.close()
  },

  'a leg is there when it has opened, hears, speaks, and ends once': async (t, scene) => {
    const talk = await openTalk(t, scene)
    const { leg, peer, events, heard, ends, command, subjects, callId, line, sound } = talk
    t.match(await command({ type: 'ping', epoch: 1 }), { type: 'here', connected: false, ended: null })
    await until(() => scene.legs.has(callId))
    leg.handlers.connected('200 OK')
    await until(() => events.some(({ type }) => type === 'connected'))
    t.match(await command(start), { type: 'started', hears: format[0], speaks: format[0] })
    await talk.speak(line, 20)
    await until(
      () => heard.length >= 10,
      () => heard,
    )
    t.same(
      heard,
      heard.toSorted((one, other) => one - other),
      'in order',
    )
    for (let seq = 0; seq < 10; seq++)
      scene.bus.publish(subjects.down, encodeFrame({ epoch: 1, seq, timestamp: 20 * seq, payload: sound }))
    const { bytes, port } = await peer.next()
    t.same([port, bytes.length], [line.local.port, 12 + 160])
    t.match(await command({ type: 'close', epoch: 1, reason: 'completed' }), { type: 'closed', recordedMs: null })
    await until(() => ends.closed === 1 && !scene.legs.has(callId))
    t.same(ends, { hangUps: ['completed'], closed: 1 })
    await leg.close()
    t.equal(ends.closed, 1)
  },

  'what a leg wants of its signaling is asked there, and its answer comes back': async (t, scene) => {
    const { command, asked, leg, events } = await openTalk(t, scene)
    leg.handlers.ringing('180 Ringing')
    await until(() => events.some(({ type }) => type === 'ringing'))
    t.match(await command({ type: 'answer', epoch: 1 }), { type: 'accepted' })
    leg.handlers.connected('200 OK')
    t.match(await command(start), { type: 'started' })
    t.match(await command({ type: 'transfer', epoch: 1, to: '+4930' }), { type: 'refused', details: 'not today' })
    t.same(asked, ['answer', 'transfer +4930'])
    await leg.close()
  },

  'keys by signaling and the end by it reach the actor in their order': async (t, scene) => {
    const { events, leg, ends, command } = await openTalk(t, scene)
    leg.handlers.connected('200 OK')
    t.match(await command(start), { type: 'started' })
    for (const digit of '123') leg.dtmf(digit)
    leg.handlers.disconnected('hung_up', 'BYE')
    await until(() => events.some(({ type }) => type === 'disconnected'))
    t.match(await command({ type: 'close', epoch: 1, reason: 'completed' }), { type: 'closed' })
    await until(() => ends.closed === 1)
    const told = events.map((event) => (event.type === 'dtmf' ? event.digit : event.type))
    t.same(told, ['connected', '1', '2', '3', 'disconnected'])
    await t.rejects(command({ type: 'flush', epoch: 1 }), { name: 'BusNoResponders' }, 'nobody is left on the bus')
  },

  'a browser is answered after a bad offer too, is known to be reached, and leaves nothing': async (t, scene) => {
    const { plane, bus, legs } = scene
    const callId = newId<'call'>()
    const told = { closed: [] as string[], failed: [] as unknown[] }
    const gone = Promise.withResolvers<void>()
    const media = plane.openWeb(callId, {
      legClosed: (reason) => void told.closed.push(reason),
      failed: (error) => void told.failed.push(error),
      gone: gone.resolve,
    })
    const refusal: unknown = await media.answer('no SDP').catch((error: unknown) => error)
    t.ok(refusal instanceof Problem && refusal.type === 'VALIDATION_FAILED', 'with the same words as at the edge')
    t.same([media.hangUp('too early'), media.wasReached()], [false, false])
    const caller = createWeriftCaller()
    await caller.accept(await media.answer(await caller.offer()))
    await caller.connected
    await until(() => media.wasReached() && legs.has(callId))
    t.equal(media.hangUp('bye'), true)
    // Its actor learns what was recorded, and lets the leg go.
    const close = toBytes({ type: 'close', epoch: 1, reason: 'completed' } satisfies LegCommand)
    t.match(fromBytes(await bus.request(subjectsOf(callId).legCommand, close, { timeout: 5_000 })), { type: 'closed' })
    await gone.promise
    await until(() => legs.size === 0)
    t.same([told.closed.length, told.failed], [1, []])
    await media.close()
    await caller.close()
  },
}

for (const [name, open] of Object.entries(planes)) {
  test(`sound ${name}`, { timeout: 120_000 }, async (t) => {
    const scene = await openScene(t, open)
    for (const [rule, holds] of Object.entries(rules)) await t.test(rule, (t) => holds(t, scene))
    t.equal(scene.legs.size, 0)
    t.same(
      shared.log.lines.filter(({ level }) => level === 'error'),
      [],
    )
  })
}
