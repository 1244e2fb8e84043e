/** What a caller was saying when nobody was left to hear the end of it, and turns before they are over. A real database; engine and leg are scripted. */
import { test, type Test } from 'tap'
import { replay } from '../../actors/call/machine/replay.ts'
import { toPhoneCall } from '../../model/phone-call.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { findCall } from '../../store/calls.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { listTurns } from '../../store/transcripts.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { box, listen, openCallNode, openShared, status, type CallNode, type Shared } from '../scenes/call-node.ts'
import { until } from '../scenes/in-time.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const words = { type: 'user_text', confidence: null, from: 100, to: 900 } as const
const config: WorkerConfig = { dimensions: [{ key: 'book', name: 'Book it', type: 'boolean' }] }

async function beginTalk(shared: Shared, node: CallNode, changes: WorkerConfig = {}) {
  const { sql, clock, bus } = shared
  const tenant = await createTenant(sql, { slug: newId(), config: { ...config, ...changes } })
  const request = { eventType: '*', url: 'https://example.com/hook' } as const
  await createSubscription(sql, box, { accountId: tenant.accountId, request, newId, now: clock.now() })
  const created = await node.createWebCall(tenant.accountId, { workerId: tenant.workerId })
  const leg = createScriptedLeg(bus, created.callId)
  const browser = listen(bus, created.callId)
  await node.admission.admit(created.token, null)
  leg.event({ type: 'connected', providerStatus: 'connected' })
  await browser.until(status('in_progress'))
  await until(() => node.engine.configs.length > 0)
  const { accountId } = tenant
  const { callId } = created
  return {
    leg,
    browser,
    call: () => findCall(sql, accountId, callId),
    turns: async () => (await listTurns(sql, accountId, callId)).map(({ role, text }) => `${role}: ${text}`),
    log: () => listCallEvents(sql, callId),
    transcripts: async () => {
      const rows = await sql<{ body: string }[]>`select body from deliveries where call_id = ${callId} order by seq`
      const events = rows.map(({ body }) => JSON.parse(body) as { type: string; data: Record<string, unknown> })
      return events.flatMap(({ type, data }) => (type === 'call.transcript' ? [data] : []))
    },
  }
}

async function successorOf(t: Test, shared: Shared, dying: CallNode): Promise<CallNode & Pick<Shared, 'clock'>> {
  await shared.sql`update nodes set lease_until = now() - interval '1 s' where id = ${dying.nodeId}`
  const clock = createHandClock(shared.clock.now() + 60_000)
  const successor = await openCallNode({ ...shared, clock })
  t.teardown(() => successor.close())
  return { ...successor, clock }
}

/** The caller is in the middle of an answer, and the log has what was understood of it. */
async function saysYes({ engine }: CallNode, talk: Awaited<ReturnType<typeof beginTalk>>): Promise<void> {
  engine.emit({ type: 'user_speech_started', at: 100 })
  engine.emit({ ...words, text: 'Yes, please', isFinal: false, notes: [{ key: 'book', value: true }] })
  await until(async () => (await talk.log()).some(({ event }) => (event as { type: string }).type === 'caller_heard'))
}

test('an actor that takes a call over knows what the caller was saying when the former one died', async (t) => {
  const shared = await openShared(t)
  const dying = await openCallNode(shared)
  const talk = await beginTalk(shared, dying)
  await saysYes(dying, talk)
  t.same(await talk.turns(), [], 'it is no turn while somebody may hear the end of it')
  const successor = await successorOf(t, shared, dying)
  await until(() => successor.engine.configs.length > 0)
  t.match(successor.engine.configs, [{ history: [{ role: 'user', text: 'Yes, please' }], owesReply: true }])
  t.same(await talk.turns(), ['user: Yes, please'])
  successor.engine.emit({ type: 'finished', nextAction: null })
  await talk.browser.until(status('completed'))
  await successor.scheduler.idle()
  t.match(await talk.call(), { dimensions: { book: true } })
  t.same(replay(await talk.log()).differences, [])
  await dying.die()
})

test('a call whose process died over the words of its caller ends with them, and with what they established', async (t) => {
  const shared = await openShared(t)
  const dying = await openCallNode(shared)
  const talk = await beginTalk(shared, dying)
  await saysYes(dying, talk)
  talk.leg.close()
  const successor = await successorOf(t, shared, dying)
  const isLegless = ({ event }: { event: unknown }) => (event as { type: string }).type === 'leg_disconnected'
  await until(async () => (await talk.log()).some(isLegless))
  // So long the browser may come back by another process.
  successor.clock.advance(1_000)
  await until(async () => (await talk.call())?.outcome)
  await successor.scheduler.idle()
  t.same(await talk.turns(), ['user: Yes, please'])
  t.match(await talk.call(), {
    dimensions: { book: true },
    evidence: { book: { turn: 0, quote: 'Yes, please', source: 'engine' } },
    postProcessingStatus: 'completed',
  })
  t.same(replay(await talk.log()).differences, [])
  await dying.die()
})

test('words that are heard out after a hang-up are of the call, which ended with the hang-up', async (t) => {
  const shared = await openShared(t)
  const heard = Promise.withResolvers<void>()
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  node.engine.hearOut = async (emit) => {
    emit({ type: 'user_speech_stopped', at: 900 })
    await heard.promise
    emit({ ...words, text: 'Yes, please', isFinal: true })
    emit({ type: 'noted', key: 'book', value: true })
  }
  const talk = await beginTalk(shared, node)
  node.engine.emit({ type: 'user_speech_started', at: 100 })
  const hungUpAt = shared.clock.now()
  talk.leg.event({ type: 'disconnected', cause: 'hung_up', details: 'BYE' })
  await until(() => talk.leg.commands.some(({ type }) => type === 'close'))
  shared.clock.advance(3_000)
  heard.resolve()
  await talk.browser.until(status('completed'))
  await node.scheduler.idle()
  t.same(await talk.turns(), ['user: Yes, please'])
  t.match(await talk.call(), { dimensions: { book: true }, endedAt: hungUpAt, outcome: 'completed' })
})

test('interim call.transcript is for workers that ask for it, of both sides, and never after the final one', async (t) => {
  const shared = await openShared(t)
  for (const transcriptEvents of ['final', 'interim'] as const) {
    const node = await openCallNode(shared)
    const talk = await beginTalk(shared, node, { transcriptEvents })
    node.engine.emit({ type: 'agent_text', itemId: 'a', text: 'Shall I' })
    node.engine.say('a', 'Shall I book it?', 5)
    await shared.bus.flush()
    talk.leg.play(5)
    await until(async () => (await talk.turns()).length === 1)
    node.engine.emit({ type: 'user_speech_started', at: 100 })
    node.engine.emit({ ...words, text: 'Yes', isFinal: false })
    node.engine.emit({ type: 'user_speech_stopped', at: 900 })
    node.engine.emit({ ...words, text: 'Yes, please', isFinal: true })
    await until(async () => (await talk.turns()).length === 2)
    const told = (await talk.transcripts()).map(
      ({ turnIndex, role, text, isFinal }) => `${String(turnIndex)} ${String(role)} ${String(text)} ${String(isFinal)}`,
    )
    const finals = ['0 agent Shall I book it? true', '1 user Yes, please true']
    if (transcriptEvents === 'final') t.same(told, finals)
    else t.same(told, ['0 agent Shall I false', finals[0], '1 user Yes false', finals[1]])
    await node.close()
  }
})

test('what an engine does not do is a warning on the call, told to the browser, once', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const talk = await beginTalk(shared, node)
  const warning = { type: 'INSTRUCTIONS_NOT_FOLLOWED', message: 'It follows scripts.' } as const
  const before = await talk.call()
  t.notOk(before && 'warnings' in toPhoneCall(before))
  node.engine.emit({ type: 'warned', warning })
  node.engine.emit({ type: 'warned', warning })
  await talk.browser.until(({ type }) => type === 'warning')
  talk.leg.event({ type: 'disconnected', cause: 'hung_up', details: 'BYE' })
  await talk.browser.until(status('completed'))
  t.same(
    talk.browser.messages.flatMap((message) => (message.type === 'warning' ? [message.warning] : [])),
    [warning],
  )
  const after = await talk.call()
  t.same(after && toPhoneCall(after).warnings, [warning])
})
