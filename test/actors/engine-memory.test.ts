/** What an engine remembers of a call: logged as it changes, kept out of the snapshot, the same for whoever takes the call over. docs/adr/0001 */
import { readFile } from 'node:fs/promises'
import { test, type Test } from 'tap'
import { replay, type LoggedFact } from '../../actors/call/machine/replay.ts'
import { blankedLog } from '../../actors/privacy/blanked.ts'
import type { Json, JsonObject } from '../../model/json.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { openCallNode, openShared, status, type CallNode } from '../scenes/call-node.ts'
import { until } from '../scenes/in-time.ts'
import { openWebTalk } from '../scenes/web-talk.ts'

type Logged = { readonly type: string; readonly memory?: Json; readonly memoryChange?: readonly JsonObject[] }

/** A call that is talked in, and takes turns as the test says. */
async function talk(t: Test) {
  const shared = await openShared(t)
  const { sql } = shared
  const first = await openCallNode(shared)
  const { callId, browser } = await openWebTalk(shared, first)
  let node: CallNode = first
  let now = shared.clock.now()
  const opened = (of: CallNode) => until(() => of.engine.configs.at(-1))
  return {
    sql,
    callId,
    log: () => node.log,
    /** The caller says something, and the engine remembers this, if it is told so. Resolves when it is a turn of the log. */
    async turn(text: string, memory?: Json): Promise<Logged> {
      if (memory !== undefined) node.engine.emit({ type: 'memory', memory })
      node.engine.emit({ type: 'user_text', text, isFinal: true, confidence: 1, from: 0, to: 500 })
      await browser.until((message) => message.type === 'transcript' && message.isFinal && message.text === text)
      const [row] = await sql<{ event: Logged }[]>`
        select event from call_events where call_id = ${callId} and event->>'type' = 'turn_committed'
        order by seq desc limit 1`
      return row?.event ?? { type: 'none' }
    },
    snapshot: async (): Promise<string> => {
      const [row] = await sql<{ snapshot: Json }[]>`select snapshot from calls where id = ${callId}`
      return JSON.stringify(row?.snapshot)
    },
    /** The node hangs for longer than its lease. What the engine of the next one is told. */
    async takenOver(): Promise<Json> {
      await sql`update nodes set lease_until = now() - interval '1 s' where id = ${node.nodeId}`
      const former = node
      now += 60_000
      node = await openCallNode({ ...shared, clock: createHandClock(now) })
      const { memory } = await opened(node)
      await former.die()
      t.teardown(node.close)
      return memory
    },
    end: async (): Promise<void> => {
      await node.switchboard.route(callId, { type: 'hang_up_requested', by: 'service' })
      await browser.until(status('completed'))
    },
    replayed: async () => replay(await listCallEvents(sql, callId)).differences,
  }
}

const bytesOf = (json: unknown): number => Buffer.byteLength(JSON.stringify(json))

/** As that of a cascade at its bound: calls of tools, of which the oldest go. */
const full = (from: number, over: JsonObject = {}): JsonObject => ({
  besides: Array.from({ length: 60 }, (_, index) => ({
    before: [{ role: 'user', text: `question ${from + index}` }],
    calls: [{ id: `call-${from + index}`, arguments: null, output: 'x'.repeat(120), ...over }],
  })),
})

test('a turn logs what is new of a full memory, the snapshot repeats none of it, and the log replays alike', async (t) => {
  const call = await talk(t)
  t.ok(bytesOf(full(0)) > 12_000)
  t.same((await call.turn('one', full(0))).memory, full(0), 'all of it once')
  const second = await call.turn('two', full(1))
  t.notOk('memory' in second)
  t.same(
    second.memoryChange?.map(({ op, path }) => [op, path]),
    [
      ['remove', '/besides/0'],
      ['add', '/besides/59'],
    ],
  )
  t.ok(bytesOf(second) < 1_024, 'less than a KiB')
  const third = await call.turn('three')
  t.notOk('memory' in third || 'memoryChange' in third, 'nothing when nothing is new')
  const another = { besides: full(500, { output: null })['besides'] } as JsonObject
  t.same((await call.turn('four', another)).memory, another, 'all of it where its change would be longer')
  t.ok((await call.snapshot()).length < 1_500)
  t.notMatch(await call.snapshot(), /question/)
  t.same(await call.replayed(), [])
})

test('whoever takes the call over has the same memory, again and again, and a call that is over has none', async (t) => {
  const call = await talk(t)
  for (let count = 0; count < 5; count++) await call.turn(`${count}`, full(count))
  t.same(await call.takenOver(), full(4))
  await call.turn('on', full(5))
  t.same(await call.takenOver(), full(5), 'which the second one changed')
  t.same(await call.takenOver(), full(5), 'and the third one did not')
  await call.turn('little', { step: 1 })
  t.match(await call.snapshot(), /"memory":\{"step":1\}/, 'a little one is in the snapshot')
  t.same(await call.takenOver(), { step: 1 })
  await call.turn('full', full(9))
  await call.turn('full again', full(10))
  t.same(await call.takenOver(), full(10))
  t.same(await call.replayed(), [])
  await call.end()
  t.notMatch(await call.snapshot(), /memorySince|question/)
  t.same(await call.replayed(), [])
})

test('in a long talk all of it is logged now and then, so that few turns tell it', async (t) => {
  const call = await talk(t)
  const whole: number[] = []
  for (let count = 0; count < 103; count++)
    if ('memory' in (await call.turn(`${count}`, full(count)))) whole.push(count)
  t.same(whole, [0, 101])
  t.same(await call.takenOver(), full(102))
})

test('a call that an older version wrote is taken over with its memory, and goes on as any other', async (t) => {
  const call = await talk(t)
  const { sql, callId } = call
  await call.turn('one', full(0))
  await call.turn('two', full(1))
  // As it stored them: all of it with each turn, and in the snapshot.
  await sql`
    update call_events set event = event - 'memoryChange' || jsonb_build_object('memory', ${sql.json(full(1))}::jsonb)
    where call_id = ${callId} and event ? 'memoryChange'`
  await sql`
    update calls set snapshot = jsonb_set(snapshot - 'memorySince', '{context,memory}', ${sql.json(full(1))}::jsonb)
    where id = ${callId}`
  t.same(await call.takenOver(), full(1))
  t.same((await call.turn('three')).memory, full(1), 'once as it is')
  t.ok((await call.turn('four', full(2))).memoryChange)
  t.same(await call.takenOver(), full(2))
  t.same(await call.replayed(), [])
})

test('a call whose log has been removed goes on by what was said', async (t) => {
  const call = await talk(t)
  await call.turn('one', full(0))
  await call.sql`delete from call_events where call_id = ${call.callId}`
  t.equal(await call.takenOver(), null)
  t.match(
    call.log().lines.filter(({ level }) => level === 'error'),
    [{ message: /does not tell what its engine remembers/ }],
  )
})

test('a log of before there were changes replays identically', async (t) => {
  const text = await readFile(new URL('log-with-whole-memories.json', import.meta.url), 'utf8')
  const log = JSON.parse(text) as LoggedFact[]
  t.ok(log.filter(({ event }) => 'memory' in (event as JsonObject)).length > 4)
  t.same(replay(log).differences, [])
})

test('the log of an erased call replays alike, and tells nothing of what was remembered', async (t) => {
  const call = await talk(t)
  for (let count = 0; count < 3; count++) await call.turn(`${count}`, full(count))
  await call.takenOver()
  await call.turn('last', full(3))
  await call.takenOver()
  const log = await listCallEvents(call.sql, call.callId)
  const erased = log.map((step) => ({ ...step, event: blankedLog(step.event), effects: blankedLog(step.effects) }))
  t.match(JSON.stringify(log), /question 61/)
  t.notMatch(JSON.stringify(erased), /question|besides|output/)
  const changes = erased.flatMap(({ event }) => (event as { memoryChange?: Json }).memoryChange ?? [])
  t.same(changes, [], 'of a change it is left that there was one')
  t.ok(erased.some(({ event }) => 'memoryChange' in (event as JsonObject)))
  t.same(replay(erased).differences, [])
})
