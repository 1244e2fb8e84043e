/** What an actor tells the leg of what need not be heard again, and writes down with a turn, on the real in-process bus. */
import { test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createSettledSpeech } from '../../actors/conversation/settled-speech.ts'
import { subjectsOf } from '../../model/bus.ts'
import { fromBytes } from '../../model/bus-json.ts'
import type { Turn } from '../../model/call.ts'
import type { KeyEvent, LegCommand, SettledLine } from '../../model/leg.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { newId } from '../scenes/tenant.ts'

function open(isKept = true) {
  const bus = createLocalBus({ log: createQuietLog(), clock: createHandClock() })
  const callId = newId<'call'>()
  const told: SettledLine[] = []
  bus.subscribe(subjectsOf(callId).legCommand, ({ payload }) => {
    const command = fromBytes(payload) as LegCommand
    if (command.type === 'settled') told.push(command)
  })
  let [frames, seq] = [0, 0]
  const heardUntil = () => 1_000 + frames * 20
  const settled = createSettledSpeech({
    bus,
    callId,
    epoch: 1,
    isKept,
    answeredAt: 1_000,
    heardUntil,
    isOpen: () => false,
  })
  const hear = (count: number): void => {
    for (let heard = 0; heard < count; heard++, frames++) settled.heard(seq++)
  }
  const pressed = (event: KeyEvent): void => settled.pressed(seq++, event)
  const press = (digit: string): void => pressed({ type: 'dtmf', digit })
  const type = (text: string): void => pressed({ type: 'typed', text })
  /** What a turn settles that ended so many frames ago. */
  const turn = (text: string, ago = 0) =>
    settled.settles({
      role: 'user',
      text,
      from: 0,
      to: (frames - ago) * 20,
      confidence: 1,
      source: 'test',
    } satisfies Turn)
  const news = async (): Promise<readonly SettledLine[]> => {
    await bus.flush()
    return told.splice(0)
  }
  const sounds = async (): Promise<readonly number[]> => (await news()).map((line) => line.seq)
  const restart = (): void => {
    seq = 0
    settled.restart()
  }
  return { ...settled, restart, hear, press, type, turn, news, sounds }
}

test('silence is settled a second and a half behind, words with their turn, once that is written down', async (t) => {
  const { hear, turn, written, sounds } = open()
  hear(200)
  t.same(await sounds(), [24, 74, 124])
  const line = turn('Hello', 20)
  t.match(line, { epoch: 1, seq: 179, keys: { upTo: 199, open: [] } })
  t.same(await sounds(), [])
  written(line!)
  t.same(await sounds(), [179])
})

test('a key is settled with the turn that it became, or after ten seconds, and not with words around it', async (t) => {
  const { hear, press, turn, written, news } = open()
  hear(100)
  press('1')
  hear(30)
  const words = turn('Hello')!
  t.match(words, { seq: 130, keys: { upTo: 130, open: [100] } }, 'words that were said behind it are no reason')
  const keys = turn('[pressed 1]')!
  t.match(keys, { seq: 130, keys: { open: [] } })
  hear(20)
  await news()
  hear(50)
  t.match((await news()).at(-1), { keys: { open: [100] } }, 'neither is written down yet')
  written(words)
  written(keys)
  t.match(await news(), [{ keys: { open: [100] } }, { keys: { open: [] } }])

  press('2')
  hear(450)
  t.match((await news()).at(-1), { keys: { open: [201] } })
  hear(100)
  t.match((await news()).at(-1), { keys: { open: [] } }, 'nothing asked for it')
})

test('of several keys those are settled that were told, in whatever way; what was typed with its own words', async (t) => {
  const { hear, press, type, turn } = open()
  hear(1)
  for (const digit of ['1', '2', '3', '4']) press(digit)
  type('two of them')
  t.match(turn('[pressed 1 2]')?.keys, { open: [3, 4, 5] })
  t.match(turn('[pressed •]')?.keys, { open: [4, 5] }, 'a private one is told as a dot')
  t.match(turn('I want two of them please')?.keys, { open: [4] })
  press('5')
  press('6')
  t.match(turn('[pressed 5]')?.keys, { open: [7] }, 'what nothing asked for is not told behind that which was')
})

test('of another leg nothing is settled by what was heard of the one before', async (t) => {
  const { hear, turn, written, restart, news } = open()
  hear(40)
  const before = turn('Hello')!
  restart()
  written(before)
  t.equal(turn('still of before'), null)
  hear(5)
  t.match(turn('Hello', 2), { seq: 2, keys: { upTo: 4 } })
  t.same(await news(), [])
})

test('a leg beside its actor is told nothing; keys that nobody has told are given back', async (t) => {
  const { hear, press, type, turn, untold, news } = open(false)
  hear(100)
  press('1')
  press('2')
  type('hello')
  t.equal(turn('[pressed 1]'), null)
  hear(100)
  t.same(await news(), [])
  t.same(untold(), [
    { type: 'dtmf', digit: '2' },
    { type: 'typed', text: 'hello' },
  ])
})
