/** What need not be on the moment is done together, once a second, and never later than it was asked for. */
import { test } from 'tap'
import { createBeat } from '../../app/clock.ts'
import { createHandClock } from '../fake/hand-clock.ts'

function open() {
  const clock = createHandClock(0)
  let timers = 0
  const within = createBeat((ms, action) => {
    timers++
    return clock.after(ms, action)
  })
  const ran: string[] = []
  /** Again and again, as a round does. */
  const repeat = (name: string, ms: number): void =>
    void within(ms, () => {
      ran.push(`${name} ${clock.now()}`)
      repeat(name, ms)
    })
  return { clock, within, ran, repeat, timers: () => timers }
}

test('what is asked for at different moments shares a timer, each as often as it wants', (t) => {
  const { clock, ran, repeat, timers } = open()
  repeat('lease', 1_000)
  clock.advance(300)
  repeat('due', 1_000)
  clock.advance(300)
  repeat('bans', 2_500)
  clock.advance(4_400)
  t.equal(
    ran.join(),
    'lease 1000,due 1000,bans 2000,lease 2000,due 2000,lease 3000,due 3000,bans 4000,lease 4000,due 4000,lease 5000,due 5000',
  )
  t.equal(timers(), 6, 'one for each second')
  t.end()
})

test('nothing is later than it was asked for, and what is sooner than a beat has a timer of its own', (t) => {
  const { clock, within } = open()
  for (const ms of [40, 999, 1_000, 1_700, 5_000, 29_999]) {
    const asked = clock.now()
    let ranAt = NaN
    within(ms, () => (ranAt = clock.now()))
    clock.advance(ms)
    t.ok(ranAt <= asked + ms && ranAt > asked + ms - 2_000, `${ms}: ${ranAt - asked}`)
    clock.advance(137)
  }
  t.end()
})

test('what was taken back is not done, one that fails holds up no other, and nobody waits for a beat that nobody wants', (t) => {
  const { clock, within } = open()
  const ran: string[] = []
  within(1_000, () => ran.push('taken back'))()
  const cancel = within(1_000, () => ran.push('taken back by a neighbor'))
  within(1_000, () => {
    throw new Error('fails')
  })
  within(1_000, () => ran.push('after it'))
  cancel()
  t.throws(() => clock.advance(1_000), /fails/)
  clock.advance(1_000)
  t.same(ran, ['after it'])
  clock.advance(1_000)
  t.equal(clock.pending(), 0)
  within(2_000, () => ran.push('begins again'))
  clock.advance(2_000)
  t.same(ran, ['after it', 'begins again'])
  clock.advance(1_000)
  t.equal(clock.pending(), 0)
  t.end()
})
