/** A provider that goes away in a call: the next engine that the worker names goes on with what was said. docs/voice-engines.md "Which engine a call gets". */
import t, { test, type Test } from 'tap'
import { replay } from '../../actors/call/machine/replay.ts'
import type { CallId } from '../../model/ids.ts'
import { EngineRefusal, type VoiceEngine } from '../../model/voice-engine.ts'
import { WorkerConfig } from '../../model/worker.ts'
import { changeAccountConfig } from '../../store/accounts.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { createScriptedEngine, type ScriptedEngine } from '../fake/scripted-engine.ts'
import { createScriptedLeg, type ScriptedLeg } from '../fake/scripted-leg.ts'
import { createScriptedEdge } from '../fake/scripted-phone.ts'
import { listen, openCallNode, openShared, status, type Shared } from '../scenes/call-node.ts'
import { until } from '../scenes/in-time.ts'
import { createCallingTenant } from '../scenes/telephony.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const named: WorkerConfig = { llmProvider: 'voice_provider_a', fallbackProviders: ['voice_provider_b', 'cascade'] }
const gone = { type: 'failed', details: 'the provider is down', isRetryable: false } as const
const down = (): VoiceEngine => ({
  ...createScriptedEngine(),
  open: () => Promise.reject(new EngineRefusal('it answered 503', false)),
})

const sharing = openShared(t)

async function openNode(t: Test, over: { first?: VoiceEngine } = {}) {
  const shared = await sharing
  const [first, second, third] = [createScriptedEngine(), createScriptedEngine(), createScriptedEngine()]
  const providers = { voice_provider_b: second, cascade: third }
  const node = await openCallNode(shared, undefined, { provider: over.first ?? first, providers })
  t.teardown(() => node.close())
  return { shared, node, first, second, third, providers }
}

const opened = (engine: ScriptedEngine, sessions = 1) => until(() => engine.configs.length >= sessions)

async function webCall(t: Test, config: WorkerConfig, over: { first?: VoiceEngine; embeddedFallback?: boolean } = {}) {
  const stage = await openNode(t, over)
  const { shared, node } = stage
  const { accountId, workerId } = await createTenant(shared.sql, { slug: newId(), config })
  if (over.embeddedFallback) await changeAccountConfig(shared.sql, accountId, { embeddedFallback: true }, Date.now())
  const { callId, token } = await node.createWebCall(accountId, { workerId })
  const leg = createScriptedLeg(shared.bus, callId)
  const browser = listen(shared.bus, callId)
  await node.admission.admit(token, null)
  leg.event({ type: 'connected', providerStatus: 'connected' })
  await browser.until(status('in_progress'))
  return { ...stage, callId, leg, browser, ...recordOf(shared, callId) }
}

const recordOf = ({ sql }: Shared, callId: CallId) => ({
  replayed: async () => replay(await listCallEvents(sql, callId)).differences,
  said: async () =>
    (
      await sql<{ role: string; text: string }[]>`
        select role, text from transcript_turns where call_id = ${callId} order by turn_index`
    ).map(({ role, text }) => `${role}: ${text}`),
  outcome: async () => (await sql`select outcome, failed_reason, finished from calls where id = ${callId}`)[0],
})

/** The caller hears `frames` of what the agent says. */
async function hears(engine: ScriptedEngine, leg: ScriptedLeg, text: string, frames = 5): Promise<void> {
  const before = leg.waiting()
  engine.say(newId(), text, 5)
  await until(() => leg.waiting() === before + 5)
  leg.play(frames)
}

/** The agent asks, the caller answers, and the agent is in the midst of its next sentence. */
async function talkWith(
  engine: ScriptedEngine,
  { leg, said }: Pick<Awaited<ReturnType<typeof webCall>>, 'leg' | 'said'>,
) {
  await opened(engine)
  await hears(engine, leg, 'Which day suits you?')
  await until(async () => (await said()).length === 1)
  engine.emit({ type: 'user_speech_started', at: 100 })
  engine.emit({ type: 'user_speech_stopped', at: 600 })
  engine.emit({ type: 'user_text', text: 'Friday.', isFinal: true, confidence: 1, from: 100, to: 600 })
  await until(async () => (await said()).length === 2)
  await hears(engine, leg, 'Friday it is, at which time?', 2)
}

test('a provider that is lost in a web call is replaced: the next one knows what was said, bridges, and the call ends as any other', async (t) => {
  const call = await webCall(t, named)
  const { first, second, third, leg, browser } = call
  await talkWith(first, call)
  first.emit(gone)
  await opened(second)
  const [config] = second.configs
  t.match(config, { bridges: true, owesReply: true, memory: null })
  const told = config?.history.map(({ role, text }) => `${role}: ${text}`) ?? []
  t.same(told.slice(0, 2), ['agent: Which day suits you?', 'user: Friday.'])
  t.match(told[2], /^agent: Friday/, 'as far as it was heard')
  t.equal(leg.waiting(), 0, 'of the sentence that was broken off nothing more is heard')

  // Its frames follow those of before.
  await hears(second, leg, 'Sorry, the line broke off. At which time?')
  await until(async () => (await call.said()).length === 4)
  second.emit({ type: 'finished', nextAction: null })
  await browser.until((message) => message.type === 'bye')
  t.match(await call.outcome(), { outcome: 'completed', failedReason: null })
  t.same(
    (await call.said()).map((line) => line.split(':')[0]),
    ['agent', 'user', 'agent', 'agent'],
  )
  t.equal(third.configs.length, 0)
  t.same(await call.replayed(), [])
})

test('what the caller says while no engine listens is heard by the next one', async (t) => {
  const call = await webCall(t, named)
  const { first, second, leg, shared } = call
  await opened(first)
  await hears(first, leg, 'Which day suits you?')
  await until(async () => (await call.said()).length === 1)
  const block = await shared.sql.reserve()
  await block`begin`
  await block`lock table documents in access exclusive mode`
  first.emit(gone)
  await until(async () => (await listCallEvents(shared.sql, call.callId)).some(({ event }) => isFailure(event)))
  for (let frame = 0; frame < 40; frame++) leg.speak(1)
  await shared.bus.flush()
  leg.event({ type: 'dtmf', digit: '7' })
  await block`rollback`
  block.release()
  await opened(second)
  await until(() => second.heardFrames() >= 40 && second.told.includes('dtmf:7'))
  t.equal(second.heardFrames(), 40)
})

const isFailure = (event: unknown): boolean => (event as { type?: string }).type === 'engine_failed'

test('a tool that is under way goes on, once, and its result goes to the next engine', async (t) => {
  const call = await webCall(t, named)
  const { first, second, shared } = call
  await opened(first)
  await hears(first, call.leg, 'One moment.')
  const block = await shared.sql.reserve()
  await block`begin`
  await block`lock table documents in access exclusive mode`
  first.emit({ type: 'tool_call', id: 't1', name: 'nothing_of_the_kind', arguments: {} })
  first.emit(gone)
  await block`rollback`
  block.release()
  await opened(second)
  await until(() => [...first.told, ...second.told].some((line) => line.startsWith('result:t1')))
  const events = (await listCallEvents(shared.sql, call.callId)).map(({ event }) => (event as { type: string }).type)
  t.equal(events.filter((type) => type === 'tool_called').length, 1)
  t.same(await call.replayed(), [])
})

test('one after the other is tried, none twice, and when all are lost the call ends as ever', async (t) => {
  const call = await webCall(t, named)
  const { first, second, third, browser } = call
  await talkWith(first, call)
  first.emit(gone)
  await opened(second)
  second.emit(gone)
  await opened(third)
  t.match(third.configs[0], { bridges: true })
  third.emit(gone)
  await browser.until((message) => message.type === 'bye')
  t.match(await call.outcome(), { outcome: 'failed' })
  t.same(
    [first, second, third].map(({ configs }) => configs.length),
    [1, 1, 1],
  )
  t.same(await call.replayed(), [])
})

test('before the agent was heard the next one begins the talk as if it had been the first', async (t) => {
  const call = await webCall(t, named, { first: down() })
  await opened(call.second)
  t.match(call.second.configs[0], { history: [], owesReply: false })
  t.equal(call.second.configs[0]?.bridges, undefined)
  call.second.emit({ type: 'finished', nextAction: null })
  await call.browser.until((message) => message.type === 'bye')
  t.match(await call.outcome(), { outcome: 'completed' })
  t.same(await call.replayed(), [])
})

test('providers that are not set up here are passed over, and the embedded one by leave of the account comes last', async (t) => {
  const config: WorkerConfig = { llmProvider: 'cascade', fallbackProviders: ['voice_provider_b'] }
  const shared = await sharing
  const second = createScriptedEngine({ failsToOpen: 'no' })
  const node = await openCallNode(shared, undefined, { providers: { voice_provider_b: second } })
  t.teardown(() => node.close())
  const { accountId, workerId } = await createTenant(shared.sql, { slug: newId(), config })
  await changeAccountConfig(shared.sql, accountId, { embeddedFallback: true }, Date.now())
  const { callId, token } = await node.createWebCall(accountId, { workerId })
  const leg = createScriptedLeg(shared.bus, callId)
  const browser = listen(shared.bus, callId)
  await node.admission.admit(token, null)
  leg.event({ type: 'connected', providerStatus: 'connected' })
  await opened(node.engine)
  node.engine.emit({ type: 'finished', nextAction: null })
  await browser.until((message) => message.type === 'bye')
  t.match(await recordOf(shared, callId).outcome(), { outcome: 'completed' })
  t.same(await recordOf(shared, callId).replayed(), [])
})

test('a worker in test mode, and one that names nobody, have no other engine once the agent was heard', async (t) => {
  for (const config of [{ llmProvider: 'voice_provider_a' }, { ...named, testModeEnabled: true }] as WorkerConfig[]) {
    const call = await webCall(t, config, { embeddedFallback: true })
    const engine = config.testModeEnabled ? call.node.engine : call.first
    await talkWith(engine, call)
    engine.emit(gone)
    await call.browser.until((message) => message.type === 'bye')
    t.match(await call.outcome(), { outcome: 'failed' })
    t.equal(call.second.configs.length, 0)
    t.same(await call.replayed(), [])
  }
})

test('a session that dies is opened once more with its own provider before another one takes its place', async (t) => {
  const call = await webCall(t, named)
  const { first, second } = call
  await talkWith(first, call)
  const died = { ...gone, isRetryable: true }
  first.emit(died)
  await opened(first, 2)
  t.equal(first.configs[1]?.bridges, undefined)
  first.emit(died)
  await opened(second)
  t.equal(first.configs.length, 2)
  // A session of its own that dies later bridges no more.
  await hears(second, call.leg, 'Sorry, the line broke off.')
  second.emit(died)
  await opened(second, 2)
  t.equal(second.configs[1]?.bridges, undefined)
})

test('an actor that takes the call over goes on with the engine that took the place', async (t) => {
  const call = await webCall(t, named)
  const { first, second, shared, node, providers } = call
  await talkWith(first, call)
  first.emit(gone)
  await opened(second)
  second.emit({ type: 'memory', memory: { place: 'of the second' } })
  await hears(second, call.leg, 'Sorry, the line broke off.')
  await until(async () => (await call.said()).length === 4)
  await node.die()
  const next = await openCallNode(shared, undefined, { provider: first, providers })
  t.teardown(() => next.close())
  await shared.sql`update nodes set lease_until = now() - interval '1 s' where id = ${node.nodeId}`
  await next.switchboard.start()
  await opened(second, 2)
  t.equal(first.configs.length, 1)
  t.match(second.configs[1], { memory: { place: 'of the second' } })
  t.equal(second.configs[1]?.bridges, undefined)
})

test('a telephone call is dialed when any of its engines can be had, and goes on with the next when that is lost', async (t) => {
  const { shared, node, second, third } = await openNode(t, { first: down() })
  const edge = createScriptedEdge(shared.bus, {})
  t.teardown(async () => edge.close())
  const tenant = await createCallingTenant(shared.sql)
  await shared.sql`update workers set config = ${shared.sql.json(named as never)} where id = ${tenant.workerId}`
  const { id } = await node.createPhoneCall(
    tenant.accountId,
    { workerId: tenant.workerId, phoneNumber: '+4930200' },
    null,
  )
  const callId = id as CallId
  const phone = await edge.phone(callId)
  phone.event({ type: 'connected', providerStatus: '200 OK' })
  // The first session was the trial.
  await opened(second, 2)
  second.say('a', 'Good morning.', 5)
  second.emit(gone)
  await opened(third)
  t.match(third.configs[0], { bridges: true, owesReply: true })
  third.emit({ type: 'finished', nextAction: null })
  await phone.next('close')
  await until(async () => (await recordOf(shared, callId).outcome())?.['finished'])
  t.match(await recordOf(shared, callId).outcome(), { outcome: 'completed' })
  t.same(await recordOf(shared, callId).replayed(), [])
})

test('the setting names providers that there are, three at most, each once', (t) => {
  const pathsOf = (fallbackProviders: unknown) => {
    const parsed = WorkerConfig.safeParse({ fallbackProviders })
    return parsed.success ? 'taken' : parsed.error.issues.map(({ path }) => path.join('.')).join()
  }
  t.equal(pathsOf([]), 'taken')
  t.equal(pathsOf(['cascade', 'embedded', 'voice_provider_a']), 'taken')
  t.equal(pathsOf(['cascade', 'cascade']), 'fallbackProviders')
  t.equal(pathsOf(['nobody']), 'fallbackProviders.0')
  t.equal(pathsOf(['cascade', 'embedded', 'voice_provider_a', 'voice_provider_b']), 'fallbackProviders')
  t.end()
})
