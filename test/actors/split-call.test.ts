/** A call whose leg is in another process than its actor, over a real NATS server: what both make of a bus that is gone for a while. */
import { test } from 'tap'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { until } from '../scenes/in-time.ts'
import { openSplitCall } from '../scenes/split-call.ts'
import type { VoiceEngine } from '../../model/voice-engine.ts'

const pcmu = { encoding: 'pcmu', rateHz: 8000 } as const

/** Takes what the wire has, and notes what it hears: one number for each frame. */
function listeningEngine() {
  const scripted = createScriptedEngine()
  const heard: number[] = []
  const engine: VoiceEngine = {
    ...scripted,
    hears: [pcmu],
    speaks: [pcmu],
    async open(config, emit) {
      const session = await scripted.open(config, emit)
      return { ...session, hear: (payload) => void heard.push(payload[0]!) }
    },
  }
  const say = (itemId: string, text: string, frames: readonly number[]): void => {
    scripted.emit({ type: 'agent_text', itemId, text })
    for (const mark of frames) scripted.emit({ type: 'audio', itemId, payload: new Uint8Array(160).fill(mark) })
    scripted.emit({ type: 'item_done', itemId })
  }
  return { ...scripted, engine, heard, say }
}

const from = (first: number, count: number): number[] => Array.from({ length: count }, (_, index) => first + index)

test('what a caller says while NATS is gone is kept by the leg and heard when it is back, in order and once', async (t) => {
  const call = await openSplitCall(t)
  if (!call) return
  const { engine, heard } = listeningEngine()
  call.wire.connect()
  const actor = await call.openActor(1, engine)
  let said = 0
  const speak = (): void => call.wire.speak(new Uint8Array(160).fill(++said))
  await call.run(200, speak)
  await until(() => heard.length === 10)

  await call.stopNats()
  await call.run(600, speak)
  t.equal(heard.length, 10)
  await call.startNats()
  await call.run(40, speak)
  await until(
    () => heard.length === 42,
    () => heard,
  )
  t.same(heard, from(1, 42))
  t.same(actor.facts, [])
})

test('what the agent says while NATS is gone is played when it is back; that it was heard out meanwhile is found', async (t) => {
  const call = await openSplitCall(t)
  if (!call) return
  const { engine, say, told } = listeningEngine()
  call.wire.connect()
  const actor = await call.openActor(1, engine)
  say('a', 'One two three', from(1, 10))
  await call.settle()
  await call.stopNats()
  say('b', 'Four five six', from(11, 10))
  await call.run(400)
  t.same(told, [], 'nobody could tell')
  const sound = (): number[] => call.wire.sent.map(({ payload }) => payload[0]!).filter((mark) => mark < 0x60)
  t.same(sound(), from(1, 10))

  await call.startNats()
  await call.run(40)
  await until(
    () => told.length === 1,
    () => told,
  )
  await call.settle()
  await call.run(300)
  await until(
    () => told.length === 2,
    () => told,
  )
  t.same(sound(), from(1, 20))
  t.same(told, ['played:a', 'played:b'])
  t.match(actor.facts, [{ turn: { text: 'One two three' } }, { turn: { text: 'Four five six' } }])
})
