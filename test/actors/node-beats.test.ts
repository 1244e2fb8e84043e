/** Nodes that hear of each other: who falls silent loses its calls at once, whoever was only asleep finds them gone, and none is run twice. */
import { createSecretKey, randomBytes } from 'node:crypto'
import { test } from 'tap'
import type { CallFact } from '../../actors/call/call-event.ts'
import { replay } from '../../actors/call/machine/replay.ts'
import { toBytes } from '../../model/bus-json.ts'
import type { NodeId } from '../../model/ids.ts'
import { nodeSubjectsOf } from '../../model/node-beat.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { renewLease } from '../../store/nodes.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { listTurns } from '../../store/transcripts.ts'
import { createCutDatabase } from '../fake/cut-database.ts'
import { awake, openBeats, openNode, pass, talk } from '../scenes/beating-nodes.ts'
import { openShared, status } from '../scenes/call-node.ts'
import { createFolder } from '../scenes/folder.ts'
import { until } from '../scenes/in-time.ts'
import { newId } from '../scenes/tenant.ts'

test('calls of a node that falls silent are another’s in less than half a second, though its lease runs on', async (t) => {
  const shared = await openShared(t)
  const [first, second] = [await openNode(t, shared), await openNode(t, shared)]
  const calls = [await talk(shared, first.node), await talk(shared, first.node), await talk(shared, first.node)]
  await pass(shared, 200)
  first.sleeps(true)
  await pass(shared, 450)
  await until(() => second.node.engine.configs.length === calls.length)
  const owned = () => shared.sql`select from calls where owner = ${second.node.nodeId} and epoch = 2`
  t.equal((await owned()).count, calls.length)

  first.sleeps(false)
  for (const { leg } of calls) leg.event({ type: 'disconnected', cause: 'hung_up', details: 'bye' })
  for (const { browser } of calls) await browser.until(status('completed'))
  await second.node.scheduler.idle()
  await until(() => first.node.switchboard.running() === 0)
  for (const { callId } of calls) {
    const log = await listCallEvents(shared.sql, callId)
    t.same(replay(log).differences, [])
    t.equal(log.filter(({ event }) => (event as { type: string }).type === 'leg_disconnected').length, 1, 'ended once')
  }
})

test('a node that is busy and says nothing for half a second keeps its calls; of one that stands still for longer another has them', async (t) => {
  const shared = await openShared(t)
  const [first, second] = [await openNode(t, shared), await openNode(t, shared)]
  const { callId } = await talk(shared, first.node)
  const ownerOf = async () =>
    (await shared.sql<{ owner: NodeId }[]>`select owner from calls where id = ${callId}`)[0]?.owner
  await pass(shared, 200)
  first.standsStill(true)
  await pass(shared, 800)
  t.same(second.beats.sightings().silent, [])
  first.standsStill(false)
  await pass(shared, 200)
  await second.node.switchboard.start()
  t.equal(await ownerOf(), first.node.nodeId)
  first.standsStill(true)
  await pass(shared, 1_100)
  await until(async () => (await ownerOf()) === second.node.nodeId)
})

test('calls of a silent node go to the process of their leg where that runs calls, else to those that have room', async (t) => {
  const shared = await openShared(t)
  const [first, second, third] = [await openNode(t, shared), await openNode(t, shared), await openNode(t, shared)]
  const calls: Awaited<ReturnType<typeof talk>>[] = []
  for (let count = 0; count < 6; count++) calls.push(await talk(shared, first.node))
  const [near, far] = [calls.slice(0, 3), calls.slice(3)]
  const at = (nodeId: string) => ({ type: 'here', connected: true, ended: null, node: nodeId }) as const
  for (const { leg } of near) leg.answer('ping', at(second.node.nodeId))
  for (const { leg } of far) leg.answer('ping', at(newId()))
  second.beats.tell(() => ({ ...awake, room: 2 }))
  await pass(shared, 200)
  first.sleeps(true)
  await pass(shared, 450)
  // A call runs from the moment that it is being claimed: its owner is the one before until that is written.
  const left = () => shared.sql`select from calls where owner = ${first.node.nodeId}`
  await until(async () => (await left()).count === 0)
  const owner = async ({ callId }: (typeof calls)[number]): Promise<string | undefined> =>
    (await shared.sql<{ owner: string }[]>`select owner from calls where id = ${callId}`)[0]?.owner
  for (const call of near) t.equal(await owner(call), second.node.nodeId)
  for (const call of far) t.equal(await owner(call), third.node.nodeId)
})

test('turns that a living node had only on its disk when another took its call are in the transcript when it has its database again, each once', async (t) => {
  const shared = await openShared(t)
  const database = createCutDatabase(shared.sql)
  const dataDir = await createFolder(t)
  const first = await openNode(t, { ...shared, sql: database.sql }, { dataDir })
  const second = await openNode(t, shared)
  const { callId, leg, browser } = await talk(shared, first.node)
  const says = ({ node }: typeof first, text: string, from: number) => {
    const turn = { role: 'user', text, from, to: from + 400, confidence: 1, source: 'scripted', latency: null } as const
    return node.switchboard.route(callId, { type: 'turn_committed', turn })
  }
  const said = async () =>
    (
      await shared.sql<{ text: string }[]>`
        select text from transcript_turns where call_id = ${callId} and role = 'user' order by turn_index`
    ).map(({ text }) => text)
  await says(first, 'zero', 0)
  await pass(shared, 200)
  database.cut()
  for (const [text, from] of [
    ['no', 400],
    ['one', 1_000],
    ['two', 2_000],
    ['[pressed 1]', 2_500],
    ['three', 3_000],
  ] as const)
    t.ok(await says(first, text, from))
  first.sleeps(true)
  await pass(shared, 450)
  await until(() => second.node.engine.configs.length === 1)
  // Its engine is of another opinion on when that was said.
  t.ok(await says(second, 'no', 1_450))
  t.ok(await says(second, 'two, which its leg had kept', 2_050))
  t.ok(await says(second, '[pressed 1]', 3_500))
  // Another time.
  t.ok(await says(second, 'three', 4_000))
  first.sleeps(false)
  database.mend()
  await until(async () => {
    await pass(shared, 100)
    return (await said()).length === 7
  })
  t.same(await said(), ['zero', 'no', 'two, which its leg had kept', '[pressed 1]', 'three', 'one', 'three'])
  const recalled = () => second.node.engine.told.filter((told) => told.startsWith('recall'))
  await until(() => recalled().length === 2)
  t.same(recalled(), ['recall:user:one', 'recall:user:three'])
  await until(() => first.node.switchboard.running() === 0)
  t.notOk(first.node.log.lines.some(({ message }) => message === 'steps of a call were put aside'))
  const log = await listCallEvents(shared.sql, callId)
  const again = log.flatMap(({ event }) => ((event as { type: string }).type === 'turn_found' ? [event] : []))
  for (const fact of again) await second.node.switchboard.route(callId, fact as unknown as CallFact)
  t.equal((await said()).length, 7, 'told again they are not written again')
  const sessions = first.node.engine.configs.length
  const given = second.node.switchboard.handOver(new AbortController().signal)
  await until(async () => {
    await pass(shared, 100)
    return first.node.engine.configs.length > sessions
  })
  t.equal(await given, 1)
  t.same(
    first.node.engine.configs.at(-1)?.history.map(({ text }) => text),
    ['zero', 'one', 'no', 'two, which its leg had kept', 'three', '[pressed 1]', 'three'],
    'who goes on has them where they were said',
  )
  t.ok(await says(first, 'five', 5_000))
  leg.event({ type: 'disconnected', cause: 'hung_up', details: 'bye' })
  await browser.until(status('completed'))
  t.same((await said()).at(-1), 'five')
  t.same(replay(await listCallEvents(shared.sql, callId)).differences, [])
})

test('those of a call that is over by then are written, and nobody is told but by a warning of the call', async (t) => {
  const shared = await openShared(t)
  const { sql } = shared
  const database = createCutDatabase(sql)
  const dataDir = await createFolder(t)
  const first = await openNode(t, { ...shared, sql: database.sql }, { dataDir })
  const second = await openNode(t, shared)
  const { accountId, callId, leg, browser } = await talk(shared, first.node)
  const request = { eventType: '*', url: 'https://receiver.example/' } as const
  const box = createSecretBox(createSecretKey(randomBytes(32)))
  await createSubscription(sql, box, { accountId, request, newId, now: shared.clock.now() })
  await pass(shared, 200)
  database.cut()
  const turn = { role: 'user', text: 'Nine', from: 900, to: 950, confidence: 1, source: 's', latency: null } as const
  t.ok(await first.node.switchboard.route(callId, { type: 'turn_committed', turn }))
  first.sleeps(true)
  await pass(shared, 450)
  await until(() => second.node.engine.configs.length === 1)
  leg.event({ type: 'disconnected', cause: 'hung_up', details: 'bye' })
  await browser.until(status('completed'))
  const isOver = async () => (await sql`select from calls where id = ${callId} and finished`).count === 1
  await until(isOver)
  const told = () => sql`select event_type from deliveries where call_id = ${callId}`
  const before = (await told()).count
  t.ok(before > 0)
  first.sleeps(false)
  database.mend()
  const turns = () => listTurns(sql, accountId, callId)
  await until(async () => {
    await pass(shared, 100)
    return (await turns()).length === 1
  })
  await until(() => first.node.switchboard.running() === 0)
  t.match(await turns(), [{ ...turn, turnIndex: 0 }])
  t.equal((await told()).count, before, 'call.ended stays the last event')
  const [row] = await sql`select owner, warnings, finished from calls where id = ${callId}`
  t.match(row, { owner: null, finished: true, warnings: [{ type: 'TRANSCRIPT_COMPLETED_LATE' }] })
  // What calls are searched by follows the turn.
  const words = async () =>
    (await sql`select words from call_words where call_id = ${callId}`).map((one) => one['words'] as string[])
  await until(async () => (await words()).length > 0)
  t.same(await words(), [['nine']])
  t.notOk(first.node.log.lines.some(({ message }) => message === 'steps of a call were put aside'))
  t.same(replay(await listCallEvents(sql, callId)).differences, [])
})

test('a node that was asleep leaves what is another’s by now with the first word of it', async (t) => {
  const shared = await openShared(t)
  const [first, second] = [await openNode(t, shared), await openNode(t, shared)]
  const { callId } = await talk(shared, first.node)
  t.equal(first.node.switchboard.running(), 1)
  shared.bus.publish(nodeSubjectsOf(second.node.nodeId).took, toBytes({ callId, epoch: 1 }))
  await shared.bus.flush()
  t.equal(first.node.switchboard.running(), 1, 'of its own epoch it hears without leaving')
  shared.bus.publish(nodeSubjectsOf(second.node.nodeId).took, toBytes({ callId, epoch: 2 }))
  await until(() => first.node.switchboard.running() === 0)
})

test('a node that is heard keeps its calls though its lease ran out, and one that cannot be heard as long as it says so', async (t) => {
  const shared = await openShared(t)
  const [first, second] = [await openNode(t, shared), await openNode(t, shared)]
  const { callId } = await talk(shared, first.node)
  await pass(shared, 200)
  const ownerOf = async () =>
    (await shared.sql<{ owner: NodeId }[]>`select owner from calls where id = ${callId}`)[0]?.owner
  await shared.sql`update nodes set lease_until = now() - interval '1 s' where id = ${first.node.nodeId}`
  await second.node.switchboard.start()
  t.equal(await ownerOf(), first.node.nodeId)

  const reached = first.cutOff()
  t.teardown(reached)
  while (!first.beats.isOffBus()) await pass(shared, 50)
  const isOff = () => shared.sql`select from nodes where id = ${first.node.nodeId} and off_bus`
  await until(async () => (await isOff()).count === 1)
  await pass(shared, 550)
  await second.node.switchboard.start()
  t.equal(await ownerOf(), first.node.nodeId)
  await renewLease(shared.sql, first.node.nodeId, 60_000)
  await second.node.switchboard.start()
  t.equal(await ownerOf(), second.node.nodeId)
})

test('a bus that answers nobody makes nobody silent: who hears nothing says that it is off', async (t) => {
  const { bus, clock } = await openShared(t)
  let isFrozen = false
  const frozen = Promise.withResolvers<void>()
  const beats = openBeats(
    t,
    { clock, bus: { ...bus, flush: () => (isFrozen ? frozen.promise : bus.flush()) } },
    newId<'node'>(),
  )
  const other = newId<'node'>()
  const seen = { silence: 0, link: 0 }
  beats.watch({ silence: () => seen.silence++, link: () => seen.link++ })
  bus.publish(nodeSubjectsOf(other).beat, toBytes(awake))
  await pass({ bus, clock }, 100)
  t.same(beats.sightings(), { silent: [], heard: [other], left: [] })
  isFrozen = true
  await pass({ bus, clock }, 5_000)
  t.same(
    [beats.isOffBus(), beats.sightings(), seen],
    [true, { silent: [], heard: [], left: [] }, { silence: 0, link: 1 }],
  )
  isFrozen = false
  frozen.resolve()
  await pass({ bus, clock }, 300)
  t.same([beats.isOffBus(), beats.sightings().heard], [false, [other]])
  await pass({ bus, clock }, 2_000)
  t.same([beats.sightings().silent, seen.silence], [[other], 2], 'told, and once more for those who wait for others')
})
