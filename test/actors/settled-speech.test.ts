/** What an actor tells the leg of what need not be heard again, on the real in-process bus. */
import { test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createSettledSpeech } from '../../actors/conversation/settled-speech.ts'
import { subjectsOf } from '../../model/bus.ts'
import { fromBytes } from '../../model/bus-json.ts'
import type { LegCommand } from '../../model/leg.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { newId } from '../scenes/tenant.ts'

function open() {
  const bus = createLocalBus({ log: createQuietLog(), clock: createHandClock() })
  const callId = newId<'call'>()
  const told: number[] = []
  bus.subscribe(subjectsOf(callId).legCommand, ({ payload }) => {
    const command = fromBytes(payload) as LegCommand
    if (command.type === 'settled') told.push(command.seq)
  })
  let [frames, seq] = [0, 0]
  const settled = createSettledSpeech({ bus, callId, epoch: 1, heardUntil: () => frames * 20, isOpen: () => false })
  const hear = (count: number): void => {
    for (let heard = 0; heard < count; heard++, frames++) settled.heard(seq++)
  }
  const news = async (): Promise<readonly number[]> => {
    await bus.flush()
    return told.splice(0)
  }
  return { hear, press: () => settled.pressed(seq++, null), written: settled.written, news }
}

test('silence is settled a second and a half behind, words with their turn', async (t) => {
  const { hear, written, news } = open()
  hear(200)
  t.same(await news(), [24, 74, 124])
  written(3_600, 'Hello')
  t.same(await news(), [179])
})

test('a key is settled with the turn that it became, with what was said up to it, or after ten seconds', async (t) => {
  const { hear, press, written, news } = open()
  hear(100)
  press()
  hear(150)
  t.same(await news(), [24, 74, 99], 'what was said before it, and no more')
  press()
  hear(50)
  // Of the first key: it was pressed after 2 s.
  written(2_000, 'Hello')
  t.same(await news(), [], 'words that were said right before it are no reason')
  written(2_000, '[pressed 1]')
  t.same(await news(), [100])
  hear(500)
  const rest = await news()
  t.equal(Math.max(...rest.slice(0, -2)), 250, 'the second one is waited for')
  t.ok(rest.at(-1)! > 700, `nothing asked for it: ${rest.at(-1)}`)
})
