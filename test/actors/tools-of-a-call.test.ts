/** Tools that an engine calls in the middle of a call: run once, told to the session and to the log, whatever becomes of them. */
import { test, type Test } from 'tap'
import { replay } from '../../actors/call/machine/replay.ts'
import type { JsonObject } from '../../model/json.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import type { Sql } from '../../store/sql.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { isAsking, waitingFor } from '../scenes/blocked-queries.ts'
import { box, openCallNode, openShared } from '../scenes/call-node.ts'
import { createFolder } from '../scenes/folder.ts'
import { newId } from '../scenes/tenant.ts'
import { createCutDatabase } from '../fake/cut-database.ts'
import { openFakeWebhookReceiver } from '../fake/webhook-receiver.ts'
import { until } from '../scenes/in-time.ts'
import { openWebTalk } from '../scenes/web-talk.ts'

const schema = { type: 'object' as const, properties: { colour: { type: 'string' } }, required: ['colour'] }

/** Two of them come out alike. */
const oddNames = ['Küche öffnen!', 'Kuche offnen?', '検索', '2fa', 'x'.repeat(128), 'call__transfer']

/** A call in progress whose engine is the test, with the external tools `lookup`, `end_call` and those of `oddNames`. */
async function talk(t: Test) {
  const shared = await openShared(t)
  const database = createCutDatabase(shared.sql)
  const receiver = await openFakeWebhookReceiver(t)
  const secret = newId()
  receiver.trust('/tool', secret)
  const tool = { description: '', deliveryUrl: receiver.url('/tool'), signingSecret: secret, inputSchema: schema }
  const tools = ['lookup', 'end_call', ...oddNames].map((name) => ({ ...tool, name }))
  const kept = { dataDir: await createFolder(t) }
  const hook = async () => ({ kind: 'answered', answer: { tools } }) as const
  const node = await openCallNode({ ...shared, sql: database.sql }, hook, kept)
  t.teardown(() => node.close())
  const { callId, accountId } = await openWebTalk(shared, node)
  const { engine } = node
  const facts = async () => (await listCallEvents(shared.sql, callId)).map(({ event }) => event as { type: string })
  return {
    shared,
    database,
    node,
    callId,
    accountId,
    receiver,
    engine,
    callTool: (id: string, name: string, given: JsonObject) =>
      engine.emit({ type: 'tool_call', id, name, arguments: given }),
    /** Of the session, the first that begins so. */
    told: (prefix: string): Promise<string> => until(() => engine.told.find((line) => line.startsWith(prefix))),
    fact: (type: string, count = 1) =>
      until(async () => {
        const found = (await facts()).filter((fact) => fact.type === type)
        return found.length >= count && found
      }),
    replayed: async () => replay(await listCallEvents(shared.sql, callId)).differences,
  }
}

test('an engine is offered what its worker can do, by names it can use, and nothing that cuts off its last words', async (t) => {
  const { engine } = await talk(t)
  const names = engine.configs[0]?.tools.map(({ name }) => name) ?? []
  t.ok(names.includes('lookup') && names.includes('call__send_dtmf'))
  t.ok(names.includes('external__end_call') && !names.includes('end_call'), 'an own tool of engines keeps its name')
  t.notOk(names.includes('call__hang_up'))
  for (const name of names) t.match(name, /^[\w-]{1,64}$/)
  t.match(engine.configs[0]?.tools.find(({ name }) => name === 'lookup')?.inputSchema, schema)
})

test('a tool of any name has a plain one for engines, its own for its receiver, and none stands for another', async (t) => {
  const { engine, receiver, callTool, told, replayed } = await talk(t)
  const offered = engine.configs[0]?.tools ?? []
  t.equal(new Set(offered.map(({ name }) => name)).size, offered.length)
  for (const { name } of offered) t.match(name, /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/)
  for (const [index, odd] of oddNames.entries()) {
    const tool = offered.find(({ givenName }) => givenName === odd)
    t.match(tool?.description, odd, 'a model that is told of it finds it')
    receiver.script('/tool', [{ status: 200, body: '{"result":true}' }])
    callTool(`odd-${index}`, tool?.name ?? '', { colour: 'blue' })
    t.match((await receiver.next()).data, { name: odd })
    await told(`result:odd-${index}:${tool?.name}:success`)
  }
  t.match(
    offered.flatMap(({ name, givenName }) => (givenName?.startsWith('K') ? [name] : [])),
    ['external__Kuche_offnen_', 'external__Kuche_offnen__2'],
  )
  t.same(await replayed(), [])
})

test('a tool is asked once, its result goes to the session, and the log of it replays', async (t) => {
  const { receiver, callTool, told, fact, replayed } = await talk(t)
  receiver.script('/tool', [{ status: 200, body: JSON.stringify({ result: { shade: 'navy' } }) }])
  callTool('t1', 'lookup', { colour: 'blue' })
  callTool('t1', 'lookup', { colour: 'blue' })
  t.equal(await told('result:t1'), 'result:t1:lookup:success')
  t.match(await fact('tool_answered'), [{ id: 't1', status: 'success' }])
  t.equal((await fact('tool_called', 2)).length, 2, 'asked for twice')
  t.equal(receiver.deliveries.length, 1, 'and run once')
  t.same(await replayed(), [])
})

test('an actor that has lost its call runs no tool that the engine wants of it, though it has looked it up', async (t) => {
  const { shared, callId, receiver, engine, callTool } = await talk(t)
  receiver.script('/tool', [{ status: 200, body: JSON.stringify({ result: 1 }) }])
  await shared.sql`update calls set epoch = epoch + 1 where id = ${callId}`
  callTool('t1', 'lookup', { colour: 'blue' })
  await until(() => engine.told.includes('close'))
  t.equal(receiver.deliveries.length, 0)
  t.notOk(engine.told.some((line) => line.startsWith('result')))
})

test('a tool is looked up while the step that asks for it is committed, and asked after that', async (t) => {
  const { shared, callId, receiver, callTool, told } = await talk(t)
  const { sql } = shared
  receiver.script('/tool', [{ status: 200, body: JSON.stringify({ result: 1 }) }])
  const done = await sql.begin(async (tx) => {
    await tx`select from calls where id = ${callId} for update`
    // The look-up reads persons, the step does not: each waits for a lock of its own.
    const lookUp = await sql.begin(async (other) => {
      await other`lock table persons in access exclusive mode`
      callTool('t1', 'lookup', { colour: 'blue' })
      await until(() => waitingFor(sql, ['transactionid', 'tuple']))
      return until(() => waitingFor(sql, ['relation'], 'asked_worker'))
    })
    await until(async () => !(await isAsking(sql, lookUp, 'asked_worker')))
    t.equal(receiver.deliveries.length, 0)
    // Seen by nobody before this commits: who looks it up after the step finds no tool.
    await tx`update calls set external_tools = '[]' where id = ${callId}`
    return true
  })
  t.ok(done)
  t.equal(await told('result:t1'), 'result:t1:lookup:success')
})

test('while the database is away a tool of the integrator is asked at once and once, and its copy is told by the log of the call as ever', async (t) => {
  const { shared, database, callId, accountId, receiver, callTool, told, fact, replayed } = await talk(t)
  const request = { eventType: 'call.tool_call', url: 'https://example.com/hook' } as const
  await createSubscription(shared.sql, box, { accountId, request, newId, now: shared.clock.now() })
  const answer = { status: 200, body: JSON.stringify({ result: { shade: 'navy' } }) }
  receiver.script('/tool', [answer, answer])
  callTool('t1', 'lookup', { colour: 'blue' })
  await told('result:t1')
  database.cut()
  callTool('t2', 'lookup', { colour: 'red' })
  t.equal(await told('result:t2'), 'result:t2:lookup:success')
  t.same(
    receiver.deliveries.map(({ data }) => (data as { arguments: unknown }).arguments),
    [{ colour: 'blue' }, { colour: 'red' }],
  )
  const copies = () =>
    shared.sql<{ body: string }[]>`select body from deliveries where call_id = ${callId} order by seq`
  const atOnce = await copies()
  database.mend()
  await until(async () => {
    shared.clock.advance(1_000)
    return (await copies()).length > atOnce.length
  })
  const [, asked] = receiver.deliveries
  t.same(JSON.parse((await copies()).at(-1)?.body ?? '{}'), { type: 'call.tool_call', data: asked?.data })
  t.match(
    await fact('tool_asked', 2),
    receiver.deliveries.map(({ data }) => ({ toolCallId: (data as { toolCallId: string }).toolCallId })),
  )
  t.equal((await copies()).length, 2)
  t.same(await replayed(), [])
})

test('a tool that needs the database waits for it as long as a tool may take, and is told to be late after that', async (t) => {
  const { shared, database, engine, callTool } = await talk(t)
  const passing = (look: () => string | undefined | false, ms = 250) =>
    until(() => {
      shared.clock.advance(ms)
      return look()
    })
  const result = (id: string) => engine.told.find((line) => line.startsWith(`result:${id}`))
  database.cut()
  callTool('t1', 'call__pause_recording', {})
  t.equal(await passing(() => result('t1')), 'result:t1:call__pause_recording:error')
  const [since, told] = [shared.clock.now(), engine.told.length]
  callTool('t2', 'call__pause_recording', {})
  await passing(() => shared.clock.now() >= since + 5_000 && 'passed')
  t.equal(engine.told.length, told, 'nothing is told in the first instants')
  database.mend()
  // Slowly: what is asked of the database takes its own time.
  t.equal(await passing(() => result('t2'), 25), 'result:t2:call__pause_recording:success')
})

test('wrong arguments, unknown names and tools that fail are answers for the engine', async (t) => {
  const { receiver, callTool, told } = await talk(t)
  receiver.script('/tool', [{ status: 500 }])
  callTool('t1', 'lookup', { colour: 7 })
  t.equal(await told('result:t1'), 'result:t1:lookup:error')
  callTool('t2', 'nonsense', {})
  t.equal(await told('result:t2'), 'result:t2:nonsense:error')
  t.equal(receiver.deliveries.length, 0)
  callTool('t3', 'lookup', { colour: 'red' })
  t.equal(await told('result:t3'), 'result:t3:lookup:error')
  t.equal(receiver.deliveries.length, 1)
})

test('a result that nobody waits for any more goes nowhere', async (t) => {
  const { receiver, engine, callTool, told, fact, replayed } = await talk(t)
  receiver.script('/tool', [{ status: 200, body: JSON.stringify({ result: 1 }), held: true }])
  callTool('t1', 'lookup', { colour: 'blue' })
  await receiver.next()
  engine.emit({ type: 'tool_canceled', id: 't1' })
  await fact('tool_canceled')
  receiver.release()
  callTool('t2', 'nonsense', {})
  await told('result:t2')
  t.notOk(engine.told.some((line) => line.startsWith('result:t1')))
  t.same(await replayed(), [])
})

test('a tool that was under way when its actor died is not run again: the next one is told under its id that the result is lost', async (t) => {
  const { shared, node, callId, receiver, callTool, fact, replayed } = await talk(t)
  receiver.script('/tool', [{ wire: 'hang' }])
  callTool('t1', 'lookup', { colour: 'blue' })
  await receiver.next()
  await fact('tool_called')
  await shared.sql`update nodes set lease_until = now() - interval '1 s' where id = ${node.nodeId}`
  const next = await openCallNode(shared)
  t.teardown(() => next.close())
  await until(() => next.engine.told.length > 0)
  t.same(next.engine.told, ['result:t1:lookup:error'])
  t.match(next.engine.configs[0], { owesReply: false })
  t.match(await fact('tool_answered'), [{ id: 't1', status: 'error' }])
  t.equal(receiver.deliveries.length, 1, 'it was asked once')
  t.same(await replayed(), [])
  t.equal((await shared.sql`select from calls where id = ${callId} and epoch = 2`).count, 1)
})

/** Its actor stands still between writing down that `t1` was called and that it is about to be asked; another one takes the call over, which finds `log`. */
async function takenOverUnasked(t: Test, log: (sql: Sql, callId: string) => Promise<unknown> = async () => null) {
  const given = await talk(t)
  const { shared, database, node, callId, receiver, engine, callTool, fact } = given
  database.hold('"tool_asked"')
  callTool('t1', 'lookup', { colour: 'blue' })
  await fact('tool_called')
  await log(shared.sql, callId)
  receiver.script('/tool', [{ status: 200, body: JSON.stringify({ result: 1 }) }])
  await shared.sql`update nodes set lease_until = now() - interval '1 s' where id = ${node.nodeId}`
  const next = await openCallNode(shared)
  t.teardown(() => next.close())
  await fact('tool_answered')
  database.release()
  await until(() => engine.told.includes('close'))
  return { ...given, next }
}

test('a tool of the integrator that nobody was asked for yet when its actor was gone is run by the next one, once, under the id that it had', async (t) => {
  const { next, engine, receiver, fact, replayed } = await takenOverUnasked(t)
  t.same(next.engine.told, ['result:t1:lookup:success'])
  t.match(next.engine.configs[0], { owesReply: false })
  t.match(await fact('tool_answered'), [{ id: 't1', status: 'success' }])
  t.equal(receiver.deliveries.length, 1)
  t.notOk(
    engine.told.some((line) => line.startsWith('result')),
    'the former one has not asked when it went on',
  )
  const [toolCallId] = receiver.deliveries.map(({ data }) => (data as { toolCallId: string }).toolCallId)
  t.match([await fact('tool_called'), await fact('tool_asked')], [[{ toolCallId }], [{ toolCallId }]])
  t.same(await replayed(), [])
})

test('it is told to be lost where a version wrote the log that asked without a word, and where it has become too old', async (t) => {
  const logs = {
    'of an older version': (sql: Sql, callId: string) => sql`
      update call_events set event = event - 'toolCallId' where call_id = ${callId} and event ->> 'type' = 'tool_called'`,
    'six seconds old': (sql: Sql, callId: string) => sql`
      update call_events set at = at - interval '6 s' where call_id = ${callId} and event ->> 'type' = 'tool_called'`,
  }
  for (const [words, log] of Object.entries(logs)) {
    const { next, receiver } = await takenOverUnasked(t, log)
    t.same(next.engine.told, ['result:t1:lookup:error'], words)
    t.equal(receiver.deliveries.length, 0, words)
  }
})
