/**
 * Whether a call is recorded, and the pauses of its recording: docs/contract/rest.md "Recordings" and "Pausing a recording". On a real database; engine and
 * leg are scripted.
 */
import { test, type Test } from 'tap'
import { replay } from '../../actors/call/machine/replay.ts'
import { stateOf, step } from '../../actors/call/machine/step.ts'
import type { WorkerRequestResult } from '../../actors/call/life/performer-deps.ts'
import type { CallFact } from '../../actors/call/call-event.ts'
import type { Json } from '../../model/json.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { changeAccountConfig } from '../../store/accounts.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { findCall } from '../../store/calls.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { box, listen, openCallNode, openShared, status } from '../scenes/call-node.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { createTenant, newId } from '../scenes/tenant.ts'
import { until } from '../scenes/in-time.ts'

const refusal = (asked: Promise<unknown>): Promise<unknown> => asked.catch((error: unknown) => error)

type Options = {
  readonly config?: WorkerConfig
  readonly account?: boolean
  readonly hook?: WorkerConfig
}

/** A web call that talks, or, until `answer`, waits for its browser's media. */
async function open(t: Test, { config = {}, account, hook }: Options = {}) {
  const shared = await openShared(t)
  const answered: WorkerRequestResult = hook ? { kind: 'answered', answer: { config: hook } } : { kind: 'none' }
  const node = await openCallNode(shared, async () => answered)
  t.teardown(() => node.close())
  const { sql, bus, clock } = shared
  const { accountId, workerId } = await createTenant(sql, { slug: newId(), config })
  if (account !== undefined) await changeAccountConfig(sql, accountId, { recordingEnabled: account }, clock.now())
  const request = { eventType: '*', url: 'https://example.com/' } as const
  await createSubscription(sql, box, { accountId, request, newId, now: clock.now() })
  const { callId, token } = await node.createWebCall(accountId, { workerId })
  const leg = createScriptedLeg(bus, callId)
  const browser = listen(bus, callId)
  const ask = {
    pause: () => node.pauseRecording.pause(accountId, callId),
    resume: () => node.pauseRecording.resume(accountId, callId),
  }
  const events = () => listCallEvents(sql, callId)
  const join = async (): Promise<void> => {
    await node.admission.admit(token, null)
    leg.event({ type: 'connected', providerStatus: 'connected' })
  }
  const start = () => until(() => leg.commands.findLast(({ type }) => type === 'start'))
  return {
    ...shared,
    ...ask,
    node,
    callId,
    accountId,
    workerId,
    leg,
    browser,
    events,
    start,
    call: () => findCall(sql, accountId, callId),
    join,
    async answer() {
      await join()
      await browser.until(status('in_progress'))
      while (node.engine.configs.length === 0) await bus.flush()
      return start()
    },
    async end() {
      node.engine.emit({ type: 'finished', nextAction: null })
      await browser.until(status('completed'))
      await node.scheduler.idle()
    },
    fact: (type: string) =>
      until(async () => (await events()).map(({ event }) => event as CallFact).find((fact) => fact.type === type)),
    differences: async () => replay(await events()).differences,
    /** All that is kept of the call. */
    async kept() {
      const tables = ['calls', 'call_events', 'transcript_turns', 'deliveries']
      const rows = await Promise.all(tables.map((table) => sql`select t::text as row from ${sql(table)} t`))
      return rows.flat().map(({ row }) => String(row))
    },
  }
}

test('a call whose worker says recordingEnabled false is not recorded, and says so', async (t) => {
  const call = await open(t, { config: { recordingEnabled: false } })
  t.match(await call.answer(), { recording: null })
  await call.fact('not_recorded')
  t.match(await until(async () => (await call.call())?.recordingState === 'off' && call.call()), {
    recordingState: 'off',
  })
  t.match(await refusal(call.pause()), { type: 'CONFLICT', message: 'The call is not recorded.' })
  t.match(await refusal(call.resume()), { type: 'CONFLICT' })
  await call.end()
  t.match(await call.call(), { recordingKey: null, recordedMs: null })
  const [ended] = await call.sql<{ body: string }[]>`select body::text from deliveries where event_type = 'call.ended'`
  t.match(ended?.body, /"recordingAvailable": ?false/)
  t.same(await call.differences(), [])
})

test('the worker goes before the account, and the answer to call.worker_request before both', async (t) => {
  const isRecorded = async (options: Options) => {
    const started = await (await open(t, options)).answer()
    return started.type === 'start' && started.recording !== null
  }
  t.equal(await isRecorded({}), true, 'recorded where nobody says otherwise')
  t.equal(await isRecorded({ account: false }), false)
  t.equal(await isRecorded({ account: false, config: { recordingEnabled: true } }), true)
  t.equal(await isRecorded({ account: true, config: { recordingEnabled: false } }), false)
  t.equal(await isRecorded({ hook: { recordingEnabled: false } }), false)
})

test('whether a call is recorded is decided as its talk begins: an actor that takes over asks nobody again', async (t) => {
  const call = await open(t, { config: { recordingEnabled: false } })
  await call.answer()
  await call.fact('not_recorded')
  await call.sql`update workers set config = '{"recordingEnabled": true}'`
  const node = await takeOver(t, call)
  const again = await until(() => call.leg.commands.filter(({ type }) => type === 'start').at(1))
  t.match(again, { epoch: 2, recording: null })
  t.ok(node)
})

test('a pause that comes while the talk is still being prepared holds: the leg begins without a recorded frame', async (t) => {
  const call = await open(t)
  const [locked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  // What a worker knows is looked for while the talk is prepared.
  const lock = call.sql.begin(async (tx) => {
    await tx`lock table documents in access exclusive mode`
    locked.resolve()
    await released.promise
  })
  await locked.promise
  await call.join()
  await call.browser.until(status('in_progress'))
  call.leg.event({ type: 'dtmf', digit: '7' })
  await call.pause()
  await until(() => call.leg.commands.some((command) => command.type === 'record' && command.parts === 'none'))
  t.notOk(
    call.leg.commands.some(({ type }) => type === 'start'),
    'the leg has not begun',
  )
  released.resolve()
  await lock
  t.match(await call.start(), { recording: { parts: 'none' } })
  t.match(await call.call(), { recordingState: 'paused' })
  await until(() => call.node.engine.told.includes('dtmf:7'))
  t.pass('a key that was pressed meanwhile is not lost')
})

type Call = Awaited<ReturnType<typeof open>>

/** The node of the call dies without a word, another one finds the call. */
async function takeOver(t: Test, { node, sql, bus, clock }: Call) {
  await node.die()
  const next = await openCallNode({ sql, bus, clock })
  t.teardown(() => next.close())
  await sql`update nodes set lease_until = now() - interval '1 s' where id = ${node.nodeId}`
  await next.switchboard.start()
  return next
}

test('a recording is paused and goes on, as often as it is asked', async (t) => {
  const call = await open(t)
  t.match(await refusal(call.pause()), { type: 'CONFLICT' }, 'nobody has answered yet')
  await call.answer()
  const orders = () => call.leg.commands.filter(({ type }) => type === 'record')
  t.match(await call.resume(), { id: call.callId, recordingState: undefined }, 'it runs already')
  t.match(await call.pause(), { id: call.callId, recordingState: 'paused' })
  t.match(await call.pause(), { recordingState: 'paused' })
  await until(() => orders().length === 1)
  t.match(await call.resume(), { recordingState: 'on' })
  t.match(await call.resume(), { recordingState: 'on' })
  await until(() => orders().length === 2)
  t.match(orders(), [{ parts: 'none' }, { parts: 'both' }])
  await call.end()
  t.match(await refusal(call.pause()), { type: 'CONFLICT', message: 'The call is over.' })
  t.match(await refusal(call.node.pauseRecording.pause(call.accountId, newId<'call'>())), { type: 'NOT_FOUND' })
  t.match(await refusal(call.node.pauseRecording.pause(newId<'account'>(), call.callId)), { type: 'NOT_FOUND' })
  t.same(await call.differences(), [])
})

test('a recording that is paused stays paused for the actor that takes the call over', async (t) => {
  const call = await open(t)
  await call.answer()
  await call.pause()
  const node = await takeOver(t, call)
  const again = await until(() => call.leg.commands.filter(({ type }) => type === 'start').at(1))
  t.match(again, { epoch: 2, recording: { parts: 'none' } })
  t.match(await node.pauseRecording.pause(call.accountId, call.callId), { recordingState: 'paused' })
  while (node.engine.configs.length === 0) await call.bus.flush()
  await press(call, '5552')
  node.engine.emit(keysText('5552'))
  await call.fact('turn_committed')
  t.same(await leaks(call, '5552'), [], 'the new actor knows that it is paused')
  t.match(await node.pauseRecording.resume(call.accountId, call.callId), { recordingState: 'on' })
  await until(() => call.leg.commands.some((command) => command.type === 'record' && command.epoch === 2))
})

const keysText = (keys: string) =>
  ({
    type: 'user_text',
    text: `[pressed ${Array.from(keys).join(' ')}]`,
    isFinal: true,
    confidence: 1,
    from: 0,
    to: 0,
  }) as const

async function press({ leg, bus }: Pick<Call, 'leg' | 'bus'>, keys: string): Promise<void> {
  for (const digit of keys) leg.event({ type: 'dtmf', digit })
  await bus.flush()
}

/** Rows in which the digits stand, however they are spaced, and what of them the browser was told. */
async function leaks(call: Call, digits: string): Promise<string[]> {
  const spaced = new RegExp(`(?<!\\d)${Array.from(digits).join('[\\s".,:/-]*')}(?!\\d)`)
  const told = call.browser.messages.map((message) => JSON.stringify(message))
  return [...(await call.kept()), ...told].filter((row) => spaced.test(row))
}

test('keys that are pressed while the recording is paused reach the engine and nothing that is kept or told', async (t) => {
  const call = await open(t, { config: { transcriptEvents: 'interim' } })
  await call.answer()
  const { engine } = call.node
  await call.pause()
  await press(call, '4111222233334444#')
  t.same(engine.told.filter((line) => line.startsWith('dtmf:')).length, 17)
  t.ok(engine.told.includes('dtmf:#') && engine.told.includes('dtmf:4'))

  engine.emit(keysText('4111222233334444#'))
  engine.emit({ type: 'noted', key: 'card', value: '4111222233334444' })
  engine.emit({ type: 'noted', key: 'number', value: 4111222233334444 })
  engine.emit({ type: 'memory', memory: { values: { card: '4111 2222 3333 4444' }, step: 3 } })
  engine.emit({ type: 'tool_call', id: 'pay', name: 'pay', arguments: { card: '4111-2222-3333-4444' } })
  await call.fact('tool_answered')
  await call.resume()
  engine.emit({ type: 'agent_text', itemId: 'a', text: 'Your card is 4111 2222' })
  engine.say('a', 'Your card is 4111 2222 3333 4444, ending in four four four four.', 5)
  await call.bus.flush()
  call.leg.play(5)
  await until(async () => (await call.events()).filter(({ event }) => (event as CallFact).type === 'turn_committed')[1])
  await press(call, '42')
  engine.emit(keysText('42'))
  await until(async () => (await call.kept()).some((row) => row.includes('[pressed 4 2]')))
  await call.end()

  t.same(await leaks(call, '4111222233334444'), [])
  t.same(await leaks(call, '2222'), [])
  const kept = await call.kept()
  t.notOk(kept.some((row) => /four four four/.test(row)))
  t.ok(
    kept.some((row) => row.includes('[pressed • • •')),
    'that keys were pressed is known',
  )
  t.ok(
    kept.some((row) => /step\W+3/.test(row)),
    'the memory is the same but for them',
  )
  t.same(await call.differences(), [], 'the log replays')
})

test('keys that were pressed before the pause are told as ever', async (t) => {
  const call = await open(t)
  await call.answer()
  await press(call, '12')
  await call.pause()
  await press(call, '3456')
  call.node.engine.emit(keysText('12'))
  call.node.engine.emit(keysText('3456'))
  await until(async () => (await call.kept()).some((row) => row.includes('[pressed • • • •]')))
  t.ok((await call.kept()).some((row) => row.includes('[pressed 1 2]')))
  t.same(await leaks(call, '3456'), [])
})

test('a worker pauses the recording by its tools, over REST and in the call', async (t) => {
  const call = await open(t)
  await call.answer()
  const { engine } = call.node
  const names = engine.configs[0]?.tools.map(({ name }) => name) ?? []
  t.ok(names.includes('call__pause_recording') && names.includes('call__resume_recording'))
  engine.emit({ type: 'tool_call', id: 'p', name: 'call__pause_recording', arguments: {} })
  await until(() => engine.told.includes('result:p:call__pause_recording:success'))
  t.match(await call.call(), { recordingState: 'paused' })
  engine.emit({ type: 'tool_call', id: 'r', name: 'call__resume_recording', arguments: {} })
  await until(() => engine.told.includes('result:r:call__resume_recording:success'))
  t.match(await call.call(), { recordingState: 'on' })
  const silent = await open(t, { config: { recordingEnabled: false } })
  await silent.answer()
  t.notOk(
    silent.node.engine.configs[0]?.tools.some(({ name }) => name.endsWith('_recording')),
    'of no use without one',
  )
})

/** As version 0022 of the database has it: a call that talks, of before recordings could be paused. */
const oldSnapshot: Json = {
  value: 'talking',
  status: 'active',
  children: {},
  historyValue: {},
  tags: [],
  context: {
    now: 3_000,
    rules: 2,
    turns: 1,
    notes: {},
    memory: null,
    outcome: null,
    deadlines: { duration: 14_403_000 },
    direction: 'inbound',
    transport: 'webrtc',
    answeredAt: 2_000,
    nextAction: null,
    recordedMs: null,
    scheduledAt: null,
    providerStatus: 'connected',
  },
}

test('a call of before there were pauses is taken over, and paused', (t) => {
  const taken = step(oldSnapshot, { type: 'taken_over' }, 4_000)
  t.same(taken.effects, [{ type: 'start_conversation', turns: 1, memory: null, answeredAt: 2_000 }])
  const paused = step(taken.state.persisted, { type: 'recording_pause_requested' }, 5_000)
  t.same(paused.effects, [
    { type: 'record', parts: 'none' },
    { type: 'store_recording_state', state: 'paused' },
  ])
  t.ok(step(paused.state.persisted, { type: 'recording_pause_requested' }, 5_000).ignored, 'once')
  t.equal(stateOf(paused.state.persisted).progress, 'in_progress')
  const [again] = step(paused.state.persisted, { type: 'taken_over' }, 6_000).effects
  t.match(again, { type: 'start_conversation', recording: 'paused' })
  t.end()
})
