/** How many calls a node sets up at a time, and who waits, how long. docs/design/load.md "The gate before new calls". */
import { test } from 'tap'
import { joinedInTurn, turnOf } from '../../app/gated-calls.ts'
import {
  createSetUps,
  longestExpected,
  longestSetUp,
  mostSetUps,
  mostWaiting,
  oneMoment,
  patience,
} from '../../actors/node/set-ups.ts'
import type { SetUpTurn } from '../../model/load-gate.ts'
import { createHandClock } from '../fake/hand-clock.ts'

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Calls by their number: those that got their turn, and those that were refused. */
function open() {
  const clock = createHandClock()
  const setUps = createSetUps({ clock, now: () => clock.now() })
  const turns = new Map<number, SetUpTurn>()
  const refused: number[] = []
  let came = 0
  const come = (count: number): void => {
    for (let left = count; left > 0; left--) {
      const number = came++
      void setUps.turn().then((turn) => ('done' in turn ? turns.set(number, turn) : refused.push(number)))
    }
  }
  return { clock, setUps, come, turns, refused, numbers: () => [...turns.keys()] }
}
const upTo = (count: number): number[] => Array.from({ length: count }, (_, number) => number)

test('few calls are set up at a time, the others wait their turn in the order in which they came', async (t) => {
  const { come, turns, refused, numbers } = open()
  come(150)
  await settled()
  t.same(numbers(), upTo(mostSetUps))
  turns.get(3)?.done()
  turns.get(3)?.done()
  await settled()
  t.same(numbers(), upTo(mostSetUps + 1), 'who is set up twice makes room for one')
  for (let number = 0; number < 150; number++) {
    turns.get(number)?.done()
    await settled()
  }
  t.same(numbers(), upTo(150))
  t.same(refused, [])
})

test('who waits longer than a caller’s network does is refused, and nobody behind loses a place', async (t) => {
  const { clock, come, turns, refused, numbers } = open()
  come(mostSetUps + 1)
  await settled()
  clock.advance(patience - 1)
  come(1)
  await settled()
  t.same(refused, [])
  clock.advance(1)
  await settled()
  t.same(refused, [mostSetUps])
  turns.get(0)?.done()
  await settled()
  t.same(numbers().at(-1), mostSetUps + 1)
  clock.advance(patience)
  await settled()
  t.same(refused, [mostSetUps], 'who got its turn is refused no more')
})

test('more than may wait are refused at once, until one of them has got its turn', async (t) => {
  const { come, turns, refused } = open()
  come(mostSetUps + mostWaiting + 1)
  await settled()
  t.same(refused, [mostSetUps + mostWaiting])
  turns.get(0)?.done()
  come(1)
  await settled()
  t.same(refused.length, 1)
})

test('an INVITE that gets no turn is refused with 503 and told when to come again', async (t) => {
  const { setUps, come } = open()
  come(mostSetUps + mostWaiting)
  t.match(await turnOf(setUps)(), {
    reason: 'node_overloaded',
    sipStatus: 503,
    retryAfterSeconds: Number,
    accountId: null,
  })
})

test('what has a queue of its own, or its place already, waits for its turn and is never refused', async (t) => {
  const { clock, setUps, come, turns } = open()
  come(mostSetUps)
  await settled()
  const begun: string[] = []
  const dial = setUps.inTurn(async () => void begun.push('dial'))
  const admission = joinedInTurn(setUps, {
    admit: async (token) => (begun.push(token), { callId: 'c', sessionId: 's', resumeToken: 'r' }) as never,
    resume: async () => ({}) as never,
    arrive: async () => (begun.push('arrive'), null),
    isOurs: async () => true,
  })
  const joining = Promise.all([admission.admit('join', null), admission.arrive()])
  clock.advance(longestSetUp - 1)
  await settled()
  t.same(begun, [])
  turns.get(0)?.done()
  await dial
  await joining
  t.same(begun, ['dial', 'join', 'arrive'], 'each makes room for the next')
  await t.rejects(
    setUps.inTurn(() => Promise.reject(new Error('bad'))),
    { message: 'bad' },
  )
  t.equal(await setUps.inTurn(async () => 'after it'), 'after it')
})

test('a set-up that waits for something that is away holds up nobody for longer than its bound', async (t) => {
  const { clock, come, numbers, turns } = open()
  come(mostSetUps + 1)
  await settled()
  clock.advance(patience - 1)
  t.same(numbers(), upTo(mostSetUps))
  come(1)
  clock.advance(longestSetUp - patience + 1)
  await settled()
  t.ok(turns.has(mostSetUps + 1))
  turns.get(0)?.done()
  come(2)
  await settled()
  t.equal(numbers().length, mostSetUps + 3, 'what is done late makes no room twice')
})

/** Of calls that come at a steady pace, each taking so long that `perSecond` are set up in a second; the ms that each waited. */
async function sustain(given: { readonly comingPerSecond: number; readonly perSecond: number; readonly ms: number }) {
  const clock = createHandClock()
  const setUps = createSetUps({ clock, now: () => clock.now() })
  const waited: number[] = []
  let refused = 0
  const take = async (): Promise<void> => {
    const came = clock.now()
    const turn = await setUps.turn()
    if (!('done' in turn)) return void refused++
    waited.push(clock.now() - came)
    clock.after((mostSetUps / given.perSecond) * 1_000, turn.done)
  }
  for (let ms = 0, due = 0; ms < given.ms; ms += 5) {
    for (due += given.comingPerSecond / 200; due >= 1; due--) void take()
    clock.advance(5)
    await settled()
  }
  return { waited, refused }
}

test('of more than are set up, for as long as they come, the rest is refused at once and nobody waits for much longer than is expected', async (t) => {
  const { waited, refused } = await sustain({ comingPerSecond: 150, perSecond: 45, ms: 10_000 })
  t.ok(waited.length > 430, 'as many are set up as can be')
  t.ok(refused > 900)
  const steady = waited.slice(100)
  t.ok(Math.max(...steady) < longestExpected + 1_000)
})

test('nobody is refused where all that come are set up', async (t) => {
  const { waited, refused } = await sustain({ comingPerSecond: 44, perSecond: 45, ms: 10_000 })
  t.equal(refused, 0)
  t.ok(waited.length > 420)
})

test('a stall refuses nobody for longer than it lasts', async (t) => {
  const { clock, come, turns, refused } = open()
  come(2 * mostSetUps)
  clock.advance(3_000)
  for (const turn of turns.values()) turn.done()
  await settled()
  come(1)
  clock.advance(oneMoment + 1)
  come(2 * mostSetUps)
  await settled()
  t.same(refused, [])
})

test('browsers that wait take no room of calls that arrive', async (t) => {
  const { setUps, come, refused } = open()
  come(mostSetUps)
  for (let count = 0; count < mostWaiting; count++) void setUps.inTurn(async () => undefined)
  come(1)
  await settled()
  t.same(refused, [])
})
