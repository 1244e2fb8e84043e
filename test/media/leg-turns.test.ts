/** A leg whose beginning and end wait for their turn, because many come in one moment: what its actor is answered, and in which order. */
import { test } from 'tap'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { negotiatedPcmu } from '../fake/scripted-transport.ts'
import { openLegScene } from '../scenes/leg-scene.ts'

const pcmu = { encoding: 'pcmu', rateHz: 8000 } as const

test('what is commanded behind a start that waits is carried out behind it, and an end is told before its turn', async (t) => {
  const turns: (() => void)[] = []
  const scene = openLegScene(t, negotiatedPcmu, {
    opus: createOpusLibrary(),
    inTurn: (work) => void turns.push(work),
  })
  const { bus, wire, command, events } = scene
  wire.connect()
  await bus.flush()
  const answers: string[] = []
  const asked = [
    { type: 'start', epoch: 1, hears: [pcmu], speaks: [pcmu], recording: null },
    { type: 'flush', epoch: 1 },
  ].map((wanted) => command(wanted).then(({ type }) => answers.push(type)))
  await bus.flush()
  t.same([answers, turns.length], [[], 2])
  for (const turn of turns.splice(0)) turn()
  await Promise.all(asked)
  t.same(answers, ['started', 'flushed'])
  t.equal((await command({ type: 'flush', epoch: 1 })).type, 'flushed', 'with nothing before it, at once')

  wire.disconnect('hung_up', 'the caller hung up')
  await bus.flush()
  t.same([events.at(-1)?.type, wire.isClosed(), turns.length], ['disconnected', false, 1])
  const closed = command({ type: 'close', epoch: 1, reason: 'caller' })
  for (const turn of turns.splice(0)) turn()
  t.equal((await closed).type, 'closed')
  t.ok(wire.isClosed())
})
