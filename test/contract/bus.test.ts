/** The rules of the Bus port, over every bus: in-process, NATS on one connection, NATS between two nodes, joined, and of a thread beside each. */
import { test } from 'tap'
import type { Test } from 'tap'
import { createJoinedBus } from '../../actors/bus/joined-bus.ts'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createNatsBus } from '../../actors/bus/nats-bus.ts'
import { serveThreadBus } from '../../actors/bus/serve-thread-bus.ts'
import { maxNumbers } from '../../actors/bus/subject-numbers.ts'
import { createThreadBus } from '../../actors/bus/thread-bus.ts'
import { createThreadBusEnds } from '../../actors/bus/thread-entries.ts'
import { subjectMatches } from '../../actors/bus/bus-rules.ts'
import { BusAway, BusNoResponders, BusTimeout, subjectsOf } from '../../model/bus.ts'
import type { Bus, BusMessage, NodeBus } from '../../model/bus.ts'
import type { Log } from '../../model/log.ts'
import type { Telemetry } from '../../model/telemetry.ts'
import { lastingClock as clock } from '../fake/lasting-clock.ts'
import { createRecordedTelemetry } from '../fake/recorded-telemetry.ts'
import { newId } from '../scenes/tenant.ts'
import { natsServerPaths, startNatsServer } from '../peers/nats-server.ts'
import { needsTool } from '../peers/tools.ts'

type Lines = { log: Log; lines: string[]; said: (message: string) => Promise<void> }
/** Who asks and who listens; one and the same bus, or two nodes. */
type Pair = { here: Bus; there: Bus; lines: string[] }
type Open = (t: Test) => Promise<Pair>

const text = (message: BusMessage): string => Buffer.from(message.payload).toString()
const bytes = (words: string): Uint8Array => new TextEncoder().encode(words)

function createLines(): Lines {
  const lines: string[] = []
  const waiting = new Map<string, () => void>()
  const write = (message: string): void => {
    lines.push(message)
    waiting.get(message)?.()
  }
  const log: Log = { debug: write, info: write, warn: write, error: write, with: () => log }
  const said = (message: string) => new Promise<void>((resolve) => waiting.set(message, resolve))
  return { log, lines, said }
}

/** Everything published before by the same publisher has been delivered when it resolves. */
async function fence({ here, there }: Pair): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const subscription = there.subscribe('fence', () => resolve())
  await there.flush()
  here.publish('fence', bytes(''))
  await promise
  subscription.close()
}

async function collect(bus: Bus, pattern: string, queue?: string) {
  const got: BusMessage[] = []
  const subscription = bus.subscribe(pattern, (message) => got.push(message), queue === undefined ? {} : { queue })
  await bus.flush()
  return { got, texts: () => got.map(text), subjects: () => got.map((message) => message.subject), subscription }
}

const rules: Readonly<Record<string, (t: Test, pair: Pair) => Promise<void>>> = {
  'no handler runs inside publish': async (t, pair) => {
    const { got } = await collect(pair.there, 'a')
    pair.here.publish('a', bytes('1'))
    t.equal(got.length, 0)
    await fence(pair)
    t.equal(got.length, 1)
  },

  '10,000 messages of one publisher arrive complete and in order, whatever their subjects': async (t, pair) => {
    const seen: number[] = []
    const payload = new Uint8Array(640)
    const view = new DataView(payload.buffer)
    pair.there.subscribe('load.*', (message) => {
      seen.push(new DataView(message.payload.buffer, message.payload.byteOffset).getUint32(0))
    })
    await pair.there.flush()
    for (let number = 0; number < 10_000; number++) {
      view.setUint32(0, number)
      pair.here.publish(`load.${number % 7}`, payload)
    }
    await fence(pair)
    t.equal(seen.length, 10_000)
    t.ok(seen.every((number, index) => number === index))
  },

  'a buffer may be used again as soon as publish, request or respond returned': async (t, pair) => {
    const { texts } = await collect(pair.there, 'a')
    const buffer = Buffer.from('first')
    pair.here.publish('a', buffer)
    buffer.write('again')
    pair.here.publish('a', buffer)
    buffer.write('WRONG')
    await fence(pair)
    t.same(texts(), ['first', 'again'])

    pair.there.subscribe('b', (message) => {
      const answer = Buffer.from(`${text(message)}!`)
      message.respond(answer)
      answer.fill('x')
    })
    await pair.there.flush()
    const question = Buffer.from('really')
    const answer = pair.here.request('b', question, { timeout: 5_000 })
    question.fill('x')
    t.equal(Buffer.from(await answer).toString(), 'really!')
  },

  'a payload that its sender gave away arrives as it was, and each receiver has its own': async (t, pair) => {
    const seen: string[] = []
    const spoil = (message: BusMessage): void => {
      seen.push(text(message))
      message.payload.fill(0)
    }
    pair.there.subscribe('one', spoil)
    for (let count = 0; count < 3; count++) pair.there.subscribe('many', spoil)
    await pair.there.flush()
    pair.here.publish('one', bytes('given'), true)
    pair.here.publish('many', bytes('mine'), true)
    await fence(pair)
    t.same(seen, ['given', 'mine', 'mine', 'mine'])
  },

  'what one receiver does to its bytes no other receiver sees': async (t, pair) => {
    const seen: string[] = []
    const spoil = (message: BusMessage): void => {
      seen.push(text(message))
      message.payload.fill(0)
    }
    for (let count = 0; count < 3; count++) pair.there.subscribe('a', spoil)
    await pair.there.flush()
    pair.here.publish('a', bytes('mine'))
    await fence(pair)
    t.same(seen, ['mine', 'mine', 'mine'])
  },

  '* stands for one token, a final > for one or more': async (t, pair) => {
    const subjects = ['a', 'b', 'a.b', 'a.c', 'a.b.c', 'a.x.c', 'a.b.c.d', 'ab.c']
    const expected: Record<string, string[]> = {
      a: ['a'],
      '*': ['a', 'b'],
      '>': subjects,
      'a.*': ['a.b', 'a.c'],
      '*.c': ['a.c', 'ab.c'],
      'a.>': ['a.b', 'a.c', 'a.b.c', 'a.x.c', 'a.b.c.d'],
      'a.*.c': ['a.b.c', 'a.x.c'],
      'a.b.>': ['a.b.c', 'a.b.c.d'],
      '*.*.>': ['a.b.c', 'a.x.c', 'a.b.c.d'],
      'a.b.c.d.>': [],
    }
    const heard = new Map<string, string[]>()
    for (const pattern of Object.keys(expected)) {
      heard.set(pattern, [])
      pair.there.subscribe(pattern, ({ subject }) => subject !== 'fence' && heard.get(pattern)?.push(subject))
    }
    await pair.there.flush()
    for (const subject of subjects) pair.here.publish(subject, bytes(''))
    await fence(pair)
    t.same(Object.fromEntries(heard), expected)
  },

  'of the members of one queue exactly one gets each message, other subscribers all': async (t, pair) => {
    const members = [
      await collect(pair.there, 'job.*', 'crew'),
      await collect(pair.there, 'job.*', 'crew'),
      await collect(pair.there, 'job.>', 'crew'),
    ]
    const otherQueue = await collect(pair.there, 'job.*', 'audit')
    const single = await collect(pair.there, 'job.*')
    const sent = Array.from({ length: 300 }, (_, number) => String(number))
    for (const number of sent) pair.here.publish('job.new', bytes(number))
    await fence(pair)
    const byNumber = (left: string, right: string): number => Number(left) - Number(right)
    t.same(members.flatMap((member) => member.texts()).toSorted(byNumber), sent)
    t.ok(members.every((member) => member.got.length > 0))
    t.same(otherQueue.texts(), sent)
    t.same(single.texts(), sent)

    members[0]?.subscription.close()
    members[1]?.subscription.close()
    await pair.there.flush()
    const before = members[2]?.got.length ?? 0
    for (const number of sent) pair.here.publish('job.new', bytes(number))
    await fence(pair)
    t.equal((members[2]?.got.length ?? 0) - before, 300, 'the member that stays gets all')
  },

  'a closed subscription hears nothing, not even what was published before; closing again does nothing': async (
    t,
    pair,
  ) => {
    const gone = await collect(pair.there, 'a')
    const stays = await collect(pair.there, 'a')
    pair.here.publish('a', bytes('1'))
    gone.subscription.close()
    gone.subscription.close()
    await fence(pair)
    pair.here.publish('a', bytes('2'))
    await fence(pair)
    t.same(gone.texts(), [])
    t.same(stays.texts(), ['1', '2'])
  },

  'a handler may close another subscription, which hears nothing from then on': async (t, pair) => {
    const heard: string[] = []
    const left = pair.there.subscribe('a', () => {
      heard.push('left')
      right.close()
    })
    const right = pair.there.subscribe('a', () => {
      heard.push('right')
      left.close()
    })
    await pair.there.flush()
    pair.here.publish('a', bytes('1'))
    await fence(pair)
    t.equal(heard.length, 1)
  },

  'a request gets its answer; only the first one counts': async (t, pair) => {
    pair.there.subscribe('sum', (message) => {
      message.respond(bytes(`${text(message)} once`))
      message.respond(bytes('twice'))
    })
    await pair.there.flush()
    const ask = (words: string) => pair.here.request('sum', bytes(words), { timeout: 5_000 })
    const answers = await Promise.all([ask('a'), ask('b'), ask('')])
    t.same(
      answers.map((answer) => Buffer.from(answer).toString()),
      ['a once', 'b once', ' once'],
    )
  },

  'an empty answer is an answer': async (t, pair) => {
    pair.there.subscribe('empty', (message) => message.respond(new Uint8Array(0)))
    await pair.there.flush()
    t.equal((await pair.here.request('empty', bytes(''), { timeout: 5_000 })).length, 0)
  },

  'an answer comes after what the answering side published before it': async (t, pair) => {
    const events = await collect(pair.here, 'event')
    pair.there.subscribe('command', (message) => {
      pair.there.publish('event', bytes('done'))
      message.respond(bytes('ok'))
    })
    await pair.there.flush()
    await pair.here.request('command', bytes(''), { timeout: 5_000 })
    t.same(events.texts(), ['done'])
  },

  'a request that nobody listens to fails at once with BusNoResponders': async (t, pair) => {
    const { subscription } = await collect(pair.there, 'lonely.*')
    subscription.close()
    await pair.there.flush()
    await t.rejects(pair.here.request('lonely.ask', bytes('?'), { timeout: 60_000 }), BusNoResponders)
  },

  'a request without an answer fails with BusTimeout, and a late answer goes nowhere': async (t, pair) => {
    const asked: BusMessage[] = []
    pair.there.subscribe('slow', (message) => asked.push(message))
    await pair.there.flush()
    await t.rejects(pair.here.request('slow', bytes('?'), { timeout: 30 }), BusTimeout)
    await fence(pair)
    t.equal(asked.length, 1)
    asked[0]?.respond(bytes('too late'))
    await fence(pair)
    pair.there.subscribe('quick', (message) => message.respond(bytes('in time')))
    await pair.there.flush()
    t.equal(Buffer.from(await pair.here.request('quick', bytes('?'), { timeout: 5_000 })).toString(), 'in time')
  },

  'an answer may be given long after the handler returned': async (t, pair) => {
    const asked: BusMessage[] = []
    pair.there.subscribe('later', (message) => asked.push(message))
    await pair.there.flush()
    const answer = pair.here.request('later', bytes('?'), { timeout: 5_000 })
    for (let count = 0; count < 50; count++) pair.here.publish('noise', bytes('x'.repeat(count)))
    await fence(pair)
    asked[0]?.respond(bytes('now'))
    t.equal(Buffer.from(await answer).toString(), 'now')
  },

  'respond on a message that was published does nothing': async (t, pair) => {
    const all = await collect(pair.here, '>')
    pair.there.subscribe('said', (message) => message.respond(bytes('echo')))
    await pair.there.flush()
    pair.here.publish('said', bytes('hello'))
    await fence(pair)
    await fence({ ...pair, here: pair.there, there: pair.here })
    t.same(all.texts().filter(Boolean), ['hello'])
  },

  'a handler that throws stops nobody else and is logged': async (t, pair) => {
    pair.there.subscribe('a', () => {
      throw new Error('a bug')
    })
    const other = await collect(pair.there, 'a')
    pair.here.publish('a', bytes('1'))
    pair.here.publish('a', bytes('2'))
    await fence(pair)
    t.same(other.texts(), ['1', '2'])
    t.equal(pair.lines.filter((line) => line === 'bus handler threw').length, 2)
  },

  'impossible subjects and patterns are a TypeError, a payload over 1 MiB is a RangeError': async (t, { here }) => {
    for (const subject of ['', '.', 'a.', '.a', 'a..b', 'a b', 'a.*', 'a.>', 'a\r\nPUB b'])
      t.throws(() => here.publish(subject, bytes('')), TypeError, JSON.stringify(subject))
    for (const pattern of ['', 'a.', 'a..b', 'a b', '>.a', 'a.>.b'])
      t.throws(() => here.subscribe(pattern, () => undefined), TypeError, JSON.stringify(pattern))
    t.throws(() => here.publish('a', new Uint8Array(1024 * 1024 + 1)), RangeError)
    await t.rejects(here.request('a', new Uint8Array(1024 * 1024 + 1), { timeout: 1_000 }), RangeError)
    const whole = await collect(here, 'big')
    here.publish('big', new Uint8Array(1024 * 1024))
    await here.flush()
    await fence({ here, there: here, lines: [] })
    t.equal(whole.got[0]?.payload.length, 1024 * 1024)
  },

  'what was published before close still arrives': async (t, pair) => {
    const { got } = await collect(pair.there, 'a')
    const own = await collect(pair.here, 'a')
    for (let count = 0; count < 100; count++) pair.here.publish('a', bytes(String(count)))
    await pair.here.close()
    t.equal(own.got.length, 100)
    if (pair.here !== pair.there) await fence({ ...pair, here: pair.there })
    t.equal(got.length, 100)
  },

  'close ends waiting requests with BusNoResponders and is idempotent': async (t, pair) => {
    await collect(pair.there, 'silent')
    const unanswered = t.rejects(pair.here.request('silent', bytes('?'), { timeout: 60_000 }), BusNoResponders)
    await fence(pair)
    await Promise.all([pair.here.close(), pair.here.close()])
    await unanswered
    await pair.here.close()
  },

  'a closed bus takes no messages, hears nothing and asks nobody, without throwing': async (t, { here }) => {
    const before = await collect(here, 'a')
    await here.close()
    const after = await collect(here, 'a')
    here.publish('a', bytes('1'))
    await here.flush()
    await t.rejects(here.request('a', bytes('?'), { timeout: 60_000 }), BusNoResponders)
    before.subscription.close()
    after.subscription.close()
    t.same([...before.texts(), ...after.texts()], [])
  },
}

async function prove(t: Test, open: Open): Promise<void> {
  for (const [name, rule] of Object.entries(rules)) await t.test(name, async (t) => rule(t, await open(t)))
}

function closedAfter(t: Test, bus: Bus): Bus {
  t.teardown(() => bus.close())
  return bus
}

test('the in-process bus', async (t) => {
  await prove(t, async (t) => {
    const { log, lines } = createLines()
    const bus = closedAfter(t, createLocalBus({ log, clock }))
    return { here: bus, there: bus, lines }
  })
})

test('the bus over NATS', async (t) => {
  const program = needsTool(t, 'nats-server', natsServerPaths)
  if (!program) return
  const server = await startNatsServer(program)
  t.teardown(() => server.close())
  const connect = async (t: Test, log: Log) =>
    closedAfter(t, await createNatsBus({ url: server.url, log, clock, name: 'contract' }))

  await t.test('on one connection', (t) =>
    prove(t, async (t) => {
      const { log, lines } = createLines()
      const bus = await connect(t, log)
      return { here: bus, there: bus, lines }
    }),
  )

  await t.test('between two nodes', (t) =>
    prove(t, async (t) => {
      const { log, lines } = createLines()
      return { here: await connect(t, log), there: await connect(t, log), lines }
    }),
  )
})

/** As a process among several has it. */
async function joinedBus(t: Test, url: string, log: Log, telemetry?: Telemetry): Promise<NodeBus> {
  const told = { log, clock, ...(telemetry && { telemetry }) }
  const wire = await createNatsBus({ url, ...told, name: 'contract', hearsItself: false })
  const bus = createJoinedBus({ local: createLocalBus(told), wire })
  t.teardown(() => bus.close())
  return bus
}

test('the joined bus', async (t) => {
  const program = needsTool(t, 'nats-server', natsServerPaths)
  if (!program) return
  const server = await startNatsServer(program)
  t.teardown(() => server.close())

  await t.test('within one process', (t) =>
    prove(t, async (t) => {
      const { log, lines } = createLines()
      const bus = await joinedBus(t, server.url, log)
      return { here: bus, there: bus, lines }
    }),
  )

  await t.test('between two processes', (t) =>
    prove(t, async (t) => {
      const { log, lines } = createLines()
      return { here: await joinedBus(t, server.url, log), there: await joinedBus(t, server.url, log), lines }
    }),
  )

  await t.test('from a thread to another process', (t) =>
    prove(t, async (t) => {
      const { log, lines } = createLines()
      const here = threadBusOn(t, await joinedBus(t, server.url, log), log)
      return { here, there: await joinedBus(t, server.url, log), lines }
    }),
  )

  const twoOf = async (t: Test) => {
    const { log } = createLines()
    return { one: await joinedBus(t, server.url, log), other: await joinedBus(t, server.url, log) }
  }
  /** Until what `from` has published is at `to`. */
  const fenced = (from: Bus, to: Bus) => fence({ here: from, there: to, lines: [] })

  await t.test('a subject of one call that is heard in the process of its sender never goes on the wire', async (t) => {
    const { one, other } = await twoOf(t)
    const { up } = subjectsOf(newId<'call'>())
    const [near, far] = [await collect(one, up), await collect(other, up)]
    one.publish(up, bytes('1'))
    other.publish(up, bytes('2'))
    await fenced(one, other)
    await fenced(other, one)
    t.same([near.texts(), far.texts()], [['1'], ['2']])
    far.subscription.close()
    await other.flush()
    other.publish(up, bytes('3'))
    await fenced(other, one)
    t.same(near.texts(), ['1', '3'], 'where nobody hears it any more it goes out again')
  })

  await t.test('every other subject is heard in all processes, once in each, whatever the pattern', async (t) => {
    const { one, other } = await twoOf(t)
    const heard = [await collect(one, 'news'), await collect(one, '*'), await collect(other, 'news')]
    one.publish('news', bytes('1'))
    other.publish('news', bytes('2'))
    await fenced(one, other)
    await fenced(other, one)
    t.same(
      heard.map(({ texts }) => texts().filter(Boolean).toSorted()),
      [
        ['1', '2'],
        ['1', '2'],
        ['1', '2'],
      ],
    )
  })

  await t.test('of the members of a queue those of the process of the sender are first', async (t) => {
    const { one, other } = await twoOf(t)
    const near = await collect(one, 'job', 'crew')
    const far = await collect(other, 'job', 'crew')
    for (let count = 0; count < 50; count++) one.publish('job', bytes('x'))
    await fenced(one, other)
    t.same([near.got.length, far.got.length], [50, 0])
    near.subscription.close()
    await one.flush()
    for (let count = 0; count < 50; count++) one.publish('job', bytes('x'))
    await fenced(one, other)
    t.same([near.got.length, far.got.length], [50, 50])
  })

  await t.test('a request is answered in the process that asks where somebody there listens', async (t) => {
    const { one, other } = await twoOf(t)
    for (const [bus, name] of [[one, 'one'] as const, [other, 'other'] as const])
      bus.subscribe('who', (message) => message.respond(bytes(name)), { queue: 'crew' })
    await one.flush()
    await other.flush()
    for (const [bus, name] of [[one, 'one'] as const, [other, 'other'] as const])
      t.equal(Buffer.from(await bus.request('who', bytes('?'), { timeout: 5_000 })).toString(), name)
  })
})

/** Two processes, and a server that the test takes away. */
async function openAway(t: Test) {
  const program = needsTool(t, 'nats-server', natsServerPaths)
  if (!program) return null
  const server = await startNatsServer(program)
  t.teardown(() => server.close())
  const { log, said } = createLines()
  const telemetry = createRecordedTelemetry()
  const one = await joinedBus(t, server.url, log, telemetry)
  const { log: otherLog, said: otherSaid } = createLines()
  const other = await joinedBus(t, server.url, otherLog)
  const { up, legCommand } = subjectsOf(newId<'call'>())
  const bothSaid = (message: string) => Promise.all([said(message), otherSaid(message)])
  return { program, server, one, other, bothSaid, telemetry, up, legCommand }
}
type Away = NonNullable<Awaited<ReturnType<typeof openAway>>>

const answered = async (bus: Bus, subject: string): Promise<string> =>
  Buffer.from(await bus.request(subject, bytes('?'), { timeout: 200 })).toString()

/** What needs no other process goes on, and what does fails in time and says why. */
async function goesOnAlone(t: Test, { one, telemetry, up, legCommand }: Away): Promise<void> {
  const near = await collect(one, up)
  one.subscribe(legCommand, (message) => message.respond(bytes('here')))
  await one.flush()
  for (let count = 0; count < 20; count++) one.publish(up, bytes(String(count)))
  await one.flush()
  t.equal(near.got.length, 20)
  t.equal(await answered(one, legCommand), 'here')
  await t.rejects(answered(one, 'elsewhere'), BusAway)
  t.same(telemetry.counted, [], 'nothing of it was for the wire')
  one.publish('elsewhere', bytes('lost'))
  t.ok(one.quietFor() >= 0)
}

/** What comes from the other process is heard again, and asked. */
async function isBackBetween(t: Test, { one, other }: Away): Promise<void> {
  const heard = await collect(other, 'after')
  other.subscribe('who', (message) => message.respond(bytes('other')))
  await fence({ here: other, there: one, lines: [] })
  t.equal(await answered(one, 'who'), 'other')
  one.publish('after', bytes('again'))
  await fence({ here: one, there: other, lines: [] })
  t.same(heard.texts(), ['again'])
}

test('what a process hears from itself goes on while NATS is gone, and the rest when it is back', async (t) => {
  const away = await openAway(t)
  if (!away) return
  const { program, server, bothSaid, telemetry } = away
  const lost = bothSaid('bus connection lost')
  await server.close()
  await lost
  await goesOnAlone(t, away)
  const back = bothSaid('bus connection is back')
  const second = await startNatsServer(program, server.port)
  t.teardown(() => second.close())
  await back
  t.same(telemetry.counted, [{ name: 'bus.dropped', labels: {}, by: 1 }])
  await isBackBetween(t, away)
})

test('a NATS server that stands still is away as well, and back when it answers', async (t) => {
  const away = await openAway(t)
  if (!away) return
  const { server, bothSaid, telemetry, one } = away
  const stopped = bothSaid('bus server does not answer')
  await server.freeze()
  t.teardown(() => server.thaw())
  const wasSent = { name: 'BusAway', wasSent: true }
  const asked = t.rejects(one.request('elsewhere', bytes('?'), { timeout: 1_500 }), wasSent)
  await stopped
  t.ok(one.quietFor() >= 900)
  await goesOnAlone(t, away)
  await asked
  const back = bothSaid('bus server answers again')
  server.thaw()
  await back
  t.ok(one.quietFor() < 900)
  t.same(telemetry.counted, [{ name: 'bus.dropped', labels: {}, by: 1 }])
  await isBackBetween(t, away)
})

type Further = { readonly telemetry?: Telemetry; readonly atEndOfTurn?: (wake: () => void) => void }

/** As a thread has it; the other end of its memory and messages is in this one. */
function threadBusOn(t: Test, bus: Bus, log: Log, { telemetry, ...turns }: Further = {}): Bus {
  const ends = createThreadBusEnds()
  const told = { log, clock, ...(telemetry && { telemetry }) }
  const host = serveThreadBus({ bus, end: ends.host, ...told })
  const threadBus = createThreadBus({ end: ends.thread, ...told, ...turns })
  t.teardown(async () => {
    await threadBus.close()
    host.close()
  })
  return threadBus
}

test('the bus of a thread', async (t) => {
  const localBus = (t: Test, log: Log) => closedAfter(t, createLocalBus({ log, clock }))

  await t.test('with itself', (t) =>
    prove(t, async (t) => {
      const { log, lines } = createLines()
      const bus = threadBusOn(t, localBus(t, log), log)
      return { here: bus, there: bus, lines }
    }),
  )

  await t.test('with another thread', (t) =>
    prove(t, async (t) => {
      const { log, lines } = createLines()
      const bus = localBus(t, log)
      return { here: threadBusOn(t, bus, log), there: threadBusOn(t, bus, log), lines }
    }),
  )

  await t.test('with the rest of the process', (t) =>
    prove(t, async (t) => {
      const { log, lines } = createLines()
      const bus = localBus(t, log)
      return { here: threadBusOn(t, bus, log), there: bus, lines }
    }),
  )

  await t.test('with another node over NATS', async (t) => {
    const program = needsTool(t, 'nats-server', natsServerPaths)
    if (!program) return
    const server = await startNatsServer(program)
    t.teardown(() => server.close())
    await prove(t, async (t) => {
      const { log, lines } = createLines()
      const connect = async () => closedAfter(t, await createNatsBus({ url: server.url, log, clock, name: 'contract' }))
      return { here: threadBusOn(t, await connect(), log), there: await connect(), lines }
    })
  })
})

test('small and large messages of a thread arrive in the order they were published', async (t) => {
  const { log } = createLines()
  const bus = closedAfter(t, createLocalBus({ log, clock }))
  const thread = threadBusOn(t, bus, log)
  const sizes = Array.from({ length: 3_000 }, (_, number) => [4, 700, 5_000, 1_900][number % 4] ?? 4)
  for (const [here, there] of [
    [thread, bus],
    [bus, thread],
  ] as const) {
    const seen: number[] = []
    there.subscribe('sized.*', ({ payload }) => void seen.push(Buffer.from(payload).readUInt32BE(0)))
    await there.flush()
    sizes.forEach((size, number) => {
      const payload = Buffer.alloc(size)
      payload.writeUInt32BE(number)
      here.publish(`sized.${number % 3}`, payload)
    })
    await fence({ here, there, lines: [] })
    t.same(seen, [...sizes.keys()])
  }
})

test('the bus of a thread drops what is published past its bound, says so, and goes on', async (t) => {
  const { log, lines, said } = createLines()
  const telemetry = createRecordedTelemetry()
  const bus = closedAfter(t, createLocalBus({ log, clock }))
  const thread = threadBusOn(t, bus, log, { telemetry })
  const large = await collect(bus, 'large')
  const full = said('bus is full, messages were dropped')
  for (let count = 0; count < 70; count++) thread.publish('large', new Uint8Array(1024 * 1024))
  await fence({ here: thread, there: bus, lines: [] })
  await full
  t.equal(large.got.length, 64)
  t.same(telemetry.counted, [{ name: 'bus.dropped', labels: {}, by: 6 }])
  t.equal(lines.length, 1)
  thread.publish('large', bytes('x'))
  await fence({ here: thread, there: bus, lines: [] })
  t.equal(large.got.length, 65)
})

test('what a thread publishes in one turn wakes the other side once, at the end of that turn', async (t) => {
  const { log } = createLines()
  const bus = closedAfter(t, createLocalBus({ log, clock }))
  const wakes: (() => void)[] = []
  const thread = threadBusOn(t, bus, log, { atEndOfTurn: (wake) => void wakes.push(wake) })
  let heard = 0
  let all = Promise.withResolvers<void>()
  bus.subscribe('up', () => {
    heard += 1
    if (heard % 100 === 0) all.resolve()
  })
  for (const turn of [1, 2]) {
    await thread.flush()
    all = Promise.withResolvers<void>()
    for (let count = 0; count < 100; count++) thread.publish('up', bytes('x'))
    t.equal(wakes.length, 1)
    await bus.flush()
    t.equal(heard, (turn - 1) * 100, 'nobody looks before')
    wakes.pop()?.()
    await all.promise
    t.equal(heard, turn * 100)
  }
})

test('a thread publishes on more subjects than it has numbers for, and each message arrives under its own', async (t) => {
  const { log } = createLines()
  const bus = closedAfter(t, createLocalBus({ log, clock }))
  const thread = threadBusOn(t, bus, log)
  const heard: string[] = []
  bus.subscribe('call.*', (message) => void heard.push(`${message.subject} ${text(message)}`))
  const calls = maxNumbers + 10
  const published: string[] = []
  const publish = (call: number): void => {
    thread.publish(`call.${call}`, bytes(String(call)))
    published.push(`call.${call} ${call}`)
  }
  // The first ones have lost their numbers to the last; those that follow have theirs still, or lose them to the first.
  for (let call = 0; call < calls; call++) publish(call)
  for (const call of [0, 1, 2, 10, 11, 12, 13, calls - 1, 0]) publish(call)
  // More than the ring has room for.
  await fence({ here: thread, there: bus, lines: [] })
  t.same(heard, published)
})

test('of a thread that is gone nothing is left on the bus', async (t) => {
  const { log } = createLines()
  const bus = closedAfter(t, createLocalBus({ log, clock }))
  const ends = createThreadBusEnds()
  const host = serveThreadBus({ bus, end: ends.host, log, clock })
  const thread = createThreadBus({ end: ends.thread, log, clock })
  thread.subscribe('leg', () => undefined)
  await thread.flush()
  const asked = t.rejects(bus.request('leg', bytes('?'), { timeout: 50 }), BusTimeout)
  await asked
  host.close()
  await t.rejects(bus.request('leg', bytes('?'), { timeout: 60_000 }), BusNoResponders)
  ends.thread.port.close()
})

test('a node whose NATS server went away comes back by itself', async (t) => {
  const program = needsTool(t, 'nats-server', natsServerPaths)
  if (!program) return
  const first = await startNatsServer(program)
  t.teardown(() => first.close())
  const { log, said, lines } = createLines()
  const telemetry = createRecordedTelemetry()
  const bus = await createNatsBus({ url: first.url, log, clock, name: 'contract', telemetry })
  t.teardown(() => bus.close())
  const heard = await collect(bus, 'a')

  const lost = said('bus connection lost')
  await first.close()
  await lost
  for (let count = 0; count < 1000; count++) bus.publish('a', new Uint8Array(100_000))
  t.equal(lines.filter((line) => line === 'bus drops messages').length, 1, 'said once')
  await t.rejects(bus.request('a', bytes('?'), { timeout: 20 }), BusAway)

  const back = said('bus connection is back')
  const second = await startNatsServer(program, first.port)
  t.teardown(() => second.close())
  await back
  t.same(telemetry.counted, [{ name: 'bus.dropped', labels: {}, by: 1000 }], 'told when it is over')
  bus.publish('a', bytes('again'))
  await fence({ here: bus, there: bus, lines: [] })
  t.same(heard.texts(), ['again'], 'the subscription lives on; what was published meanwhile is lost')

  await second.close()
  await bus.close()
  t.pass('close does not wait for a server that is not there')
})

test('a NATS address where nobody listens is an error at the start', async (t) => {
  const program = needsTool(t, 'nats-server', natsServerPaths)
  if (!program) return
  const server = await startNatsServer(program)
  await server.close()
  await t.rejects(createNatsBus({ url: server.url, log: createLines().log, clock, name: 'contract' }))
})

test('the in-process bus drops what is published past its bound in one turn, says so, and goes on', async (t) => {
  const { log, lines } = createLines()
  const bus = closedAfter(t, createLocalBus({ log, clock }))
  const byCount = await collect(bus, 'small')
  const byBytes = await collect(bus, 'large')
  for (let count = 0; count < 70_000; count++) bus.publish('small', bytes('x'))
  await bus.flush()
  t.equal(byCount.got.length, 65_536)
  for (let count = 0; count < 70; count++) bus.publish('large', new Uint8Array(1024 * 1024))
  await bus.flush()
  t.equal(byBytes.got.length, 64)
  t.same(lines, ['bus is full, messages were dropped', 'bus is full, messages were dropped'])
  bus.publish('small', bytes('x'))
  await bus.flush()
  t.equal(byCount.got.length, 65_537)
})

test('whoever comes and goes, each message finds exactly the subscribers it matches', async (t) => {
  const random = seeded(20_240_229)
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item
  const words = ['a', 'b', 'c']
  const subjectOf = (length: number) => Array.from({ length }, () => pick(words)).join('.')
  const patternOf = () => {
    const tokens = Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick([...words, '*']))
    return [...tokens, ...(random() < 0.3 ? ['>'] : [])].join('.')
  }
  const bus = closedAfter(t, createLocalBus({ log: createLines().log, clock }))
  const live = new Map<number, { pattern: string; close(): void }>()
  const expected: string[] = []
  const heard: string[] = []
  for (let step = 0; step < 5_000; step++) {
    const choice = random()
    if (choice < 0.15) {
      const pattern = patternOf()
      const subscription = bus.subscribe(pattern, ({ subject }) => heard.push(`${subject} at ${step}`))
      live.set(step, { pattern, close: () => subscription.close() })
    } else if (choice < 0.28 && live.size > 0) {
      await bus.flush()
      const leaving = pick([...live.keys()])
      live.get(leaving)?.close()
      live.delete(leaving)
    } else {
      const subject = subjectOf(1 + Math.floor(random() * 4))
      for (const [id, { pattern }] of live) if (slowMatch(pattern, subject)) expected.push(`${subject} at ${id}`)
      bus.publish(subject, bytes(''))
    }
  }
  await bus.flush()
  t.ok(expected.length > 5_000)
  t.same(heard.toSorted(), expected.toSorted())
  for (let count = 0; count < 2_000; count++) {
    const [pattern, subject] = [patternOf(), subjectOf(1 + Math.floor(random() * 4))]
    if (subjectMatches(pattern, subject) !== slowMatch(pattern, subject)) t.fail(`${pattern} against ${subject}`)
  }
})

/** The same rule said another way: as a regular expression. */
function slowMatch(pattern: string, subject: string): boolean {
  const shape = pattern.replaceAll('.', '\\.').replaceAll('*', '[^.]+').replace(/>$/, '.+')
  return new RegExp(`^${shape}$`).test(subject)
}

/** Mulberry32: the same numbers in every run. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
