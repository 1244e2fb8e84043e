/** What a browser hears while the process of its call's actor is silent: beats over the real in-process bus, the leg's own time. */
import { test } from 'tap'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { createActorBeats } from '../../media/leg/actor-beats.ts'
import { toBytes } from '../../model/bus-json.ts'
import { nodeSubjectsOf } from '../../model/node-beat.ts'
import type { NodeId } from '../../model/ids.ts'
import { negotiatedPcmu } from '../fake/scripted-transport.ts'
import { openLegScene } from '../scenes/leg-scene.ts'

const hears = { encoding: 'pcm16', rateHz: 16_000 } as const

test('soft noise from when the process of the actor is silent until another one has the call', async (t) => {
  const beats: { isSilent(node: string): boolean }[] = []
  const scene = openLegScene(t, negotiatedPcmu, {
    opus: createOpusLibrary(),
    nodeId: 'leg' as NodeId,
    isSilent: (node) => beats.some((heard) => heard.isSilent(node)),
  })
  const { bus, clock, wire, command, run } = scene
  const heard = createActorBeats({ bus, now: () => clock.now() })
  t.teardown(() => heard.close())
  beats.push(heard)
  const start = (epoch: number, node: string) =>
    command({ type: 'start', epoch, hears: [hears], speaks: [hears], recording: null, node })
  let passed = 0
  const beat = (node: string) => () => {
    if (passed++ % 5 === 0) bus.publish(nodeSubjectsOf(node as NodeId).beat, toBytes({}))
  }
  const packetsOf = async (ms: number, each?: () => void): Promise<number> => {
    const before = wire.sent.length
    await run(ms, each)
    return wire.sent.length - before
  }
  wire.connect()
  await start(1, 'first')
  await run(1_000, beat('first'))
  t.ok((await packetsOf(1_000, beat('first'))) <= 3, 'a pause')
  await run(400)
  t.equal(await packetsOf(1_000), 50)
  t.ok(wire.sent.slice(-50).every(({ payload }) => payload.some((byte) => byte !== 0xff && byte !== 0x7f)))
  await start(2, 'second')
  await run(400, beat('second'))
  t.ok((await packetsOf(1_000, beat('second'))) <= 3)
  await start(3, 'never heard')
  t.ok((await packetsOf(1_000)) <= 3, 'a process that tells nothing is not taken for gone')
})
