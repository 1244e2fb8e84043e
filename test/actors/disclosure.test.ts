/** What a caller is told before anything else: docs/contract/rest.md "Disclosure". On a real database; engine and leg are scripted. */
import { test, type Test } from 'tap'
import { replay } from '../../actors/call/machine/replay.ts'
import type { CallFact } from '../../actors/call/call-event.ts'
import { subjectsOf } from '../../model/bus.ts'
import { disclosureFor } from '../../model/disclosure.ts'
import { decodeFrame, encodeFrame } from '../../model/frame.ts'
import type { LegCommand } from '../../model/leg.ts'
import { toPhoneCall } from '../../model/phone-call.ts'
import { WorkerConfig } from '../../model/worker.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { findCall } from '../../store/calls.ts'
import { listTurns } from '../../store/transcripts.ts'
import { listen, openCallNode, openShared, status, type CallNode } from '../scenes/call-node.ts'
import { createRandom } from '../fake/random.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { createTenant, newId } from '../scenes/tenant.ts'
import { until } from '../scenes/in-time.ts'

const text = 'This call is recorded, and you are talking to a machine.'

type Options = { readonly config?: WorkerConfig; readonly locale?: string }

/** A web call that is answered. */
async function open(t: Test, { config = { disclosureText: text }, locale }: Options = {}) {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const { sql, bus } = shared
  const { accountId, workerId } = await createTenant(sql, { slug: newId(), config })
  const { callId, token } = await node.createWebCall(accountId, { workerId, ...(locale && { locale }) })
  const leg = createScriptedLeg(bus, callId)
  const browser = listen(bus, callId)
  await node.admission.admit(token, null)
  leg.event({ type: 'connected', providerStatus: 'connected' })
  await browser.until(status('in_progress'))
  while (node.engine.configs.length === 0) await bus.flush()
  const events = () => listCallEvents(sql, callId)
  let frames = 0
  const spoken: number[] = []
  bus.subscribe(subjectsOf(callId).down, ({ payload }) => void spoken.push(decodeFrame(payload)?.seq ?? -1))
  const call = {
    ...shared,
    spoken,
    node,
    callId,
    accountId,
    leg,
    browser,
    row: () => findCall(sql, accountId, callId),
    turns: () => listTurns(sql, accountId, callId),
    commands: <Type extends LegCommand['type']>(type: Type) =>
      leg.commands.filter((command): command is Extract<LegCommand, { type: Type }> => command.type === type),
    /** 20 ms of the caller, so often: as loud as a voice, or silent. */
    hears: (count: number, kind: 'voice' | 'silence') =>
      call.hearsFrames(
        Array.from({ length: count }, (_, i) => (kind === 'voice' ? voiceOf(frames + i) : new Uint8Array(640))),
      ),
    async hearsFrames(payloads: readonly Uint8Array[]): Promise<void> {
      for (const payload of payloads) {
        const seq = frames++
        bus.publish(subjectsOf(callId).up, encodeFrame({ epoch: 1, seq, timestamp: seq * 20, payload }))
      }
      await bus.flush()
    },
    fact: (type: string) =>
      until(async () => (await events()).map(({ event }) => event as CallFact).find((fact) => fact.type === type)),
    differences: async () => replay(await events()).differences,
  }
  return call
}

type Call = Awaited<ReturnType<typeof open>>

/** 20 ms at 16 kHz. */
function voiceOf(seq: number): Uint8Array {
  const samples = Int16Array.from({ length: 320 }, (_, i) => Math.round(6000 * Math.sin((seq * 320 + i) / 9)))
  return new Uint8Array(samples.buffer)
}

/** The engine says it, in so many frames. */
async function discloses(
  { node: { engine }, bus, leg }: Pick<Call, 'node' | 'bus' | 'leg'>,
  frames: number,
  said = text,
) {
  await until(() => engine.told.includes(`last:${text}`))
  engine.say(`disclosure-${leg.commands.length}`, said, frames)
  engine.emit({ type: 'finished', nextAction: null })
  await bus.flush()
}

const finish = async ({ node, browser }: Call, at: CallNode = node): Promise<void> => {
  at.engine.emit({ type: 'finished', nextAction: null })
  await browser.until(status('completed'))
  await at.scheduler.idle()
}

test('what must be said first is said first and to its end: nothing cuts it off, and the talk begins after it', async (t) => {
  const call = await open(t)
  const { engine } = call.node
  await discloses(call, 100)
  await call.hears(50, 'voice')
  engine.emit({ type: 'user_speech_started', at: 0 })
  await call.bus.flush()
  t.same(call.commands('flush'), [], 'the caller speaks, and the agent goes on')
  call.leg.play(99)
  await call.bus.flush()
  t.equal(engine.configs.length, 1)
  call.leg.play(1)
  await until(() => engine.configs.length === 2)
  t.match(engine.configs[1], { history: [], memory: null }, 'the talk begins as any other')
  t.match(await call.row(), { disclosure: { playedMs: 2_000, completed: true } })
  t.match(toPhoneCall((await call.row())!), { disclosure: { playedMs: 2_000, completed: true } })
  t.match(await call.fact('disclosure_played'), { playedMs: 2_000, completed: true })
  t.match(await call.fact('disclosure_due'), { text })
  engine.say('hello', 'Hello.', 5)
  await call.bus.flush()
  call.leg.play(5)
  await until(async () => (await call.turns()).length === 2)
  t.match(await call.turns(), [
    { role: 'agent', text, source: 'scripted' },
    { role: 'agent', text: 'Hello.' },
  ])
  await finish(call)
  t.same(await call.differences(), [])
})

test('what the caller says, presses and types meanwhile is heard afterwards, without the silence around it', async (t) => {
  const call = await open(t)
  const { engine } = call.node
  await discloses(call, 2_000)
  await call.hears(100, 'silence')
  await call.hears(40, 'voice')
  await call.hears(300, 'silence')
  call.leg.event({ type: 'dtmf', digit: '7' })
  call.leg.event({ type: 'typed', text: 'Hello?' })
  await call.bus.flush()
  t.equal(engine.heardSound(), 0, 'nobody listens')
  t.notOk(engine.told.includes('dtmf:7'))
  const heardBefore = engine.heardFrames()
  call.leg.play(2_000)
  await until(() => engine.told.includes('dtmf:7') && engine.told.includes('typed:Hello?'))
  t.equal(engine.heardSound(), 40, 'all that was said')
  t.ok(engine.heardFrames() - heardBefore < 150, 'and no more than its pauses')
  await call.hears(10, 'voice')
  t.equal(engine.heardSound(), 50, 'and what is said from then on')
  t.match(await call.row(), { disclosure: { playedMs: 40_000 } })
})

test('who says nothing meanwhile, or is heard as the echo of the agent only, is not taken to have spoken', async (t) => {
  const call = await open(t)
  const { engine } = call.node
  await until(() => engine.told.includes(`last:${text}`))
  const { next } = createRandom(7)
  const noise = Array.from({ length: 60 }, () =>
    Int16Array.from({ length: 320 }, () => Math.round((next() - 0.5) * 16_000)),
  )
  engine.emit({ type: 'agent_text', itemId: 'loud', text })
  for (const samples of noise) engine.emit({ type: 'audio', itemId: 'loud', payload: new Uint8Array(samples.buffer) })
  engine.emit({ type: 'item_done', itemId: 'loud' })
  engine.emit({ type: 'finished', nextAction: null })
  await call.hears(6, 'silence')
  await call.hearsFrames(noise.map((samples) => new Uint8Array(samples.map((sample) => sample / 3).buffer)))
  await call.hears(100, 'silence')
  while (call.leg.waiting() > 0) call.leg.play(60)
  await until(() => engine.configs.length === 2)
  await call.bus.flush()
  t.equal(engine.heardSound(), 0)
})

test('nobody but the agent is recorded until the disclosure has been heard', async (t) => {
  const call = await open(t)
  t.match(call.commands('start').at(-1), { recording: { parts: 'agent' } })
  await call.node.pauseRecording.pause(call.accountId, call.callId)
  t.match(await until(() => call.commands('record').at(0)), { parts: 'none' })
  await call.node.pauseRecording.resume(call.accountId, call.callId)
  t.match(await until(() => call.commands('record').at(1)), { parts: 'agent' }, 'no more than before the pause')
  await discloses(call, 10)
  call.leg.play(10)
  const talk = await until(() => call.commands('start').at(1))
  t.ok(talk.recording)
  t.notOk(talk.recording?.parts, 'both')
})

test('a disclosure is said where nothing is recorded, too', async (t) => {
  const call = await open(t, { config: { disclosureText: text, recordingEnabled: false } })
  t.match(call.commands('start').at(-1), { recording: null })
  await discloses(call, 10)
  call.leg.play(10)
  await until(() => call.node.engine.configs.length === 2)
  call.node.engine.say('hello', 'Hello.', 5)
  await call.bus.flush()
  t.equal(call.leg.waiting(), 5)
  t.same(
    call.spoken,
    [...call.spoken].sort((a, b) => a - b),
    'a leg takes no frame that is older than one it played',
  )
  t.equal(new Set(call.spoken).size, 15)
  t.match(await call.row(), { recordingState: 'off', disclosure: { completed: true } })
  t.same(await call.differences(), [])
})

test('of a caller who hangs up over it, what was played is a fact of the call', async (t) => {
  const call = await open(t)
  await discloses(call, 100)
  call.leg.play(40)
  call.leg.event({ type: 'disconnected', cause: 'hung_up', details: 'bye' })
  await call.browser.until(status('completed'))
  await call.node.scheduler.idle()
  t.match(await call.row(), { outcome: 'completed', disclosure: { playedMs: 800, completed: false } })
  const [turn, ...others] = await call.turns()
  t.ok(turn && text.startsWith(turn.text) && turn.text.length < text.length, `${turn?.text}`)
  t.same(others, [])
  t.equal(call.node.engine.configs.length, 1, 'no talk begins')
  t.same(await call.differences(), [])
})

test('an actor that takes the call over in the middle of it says it again, wholly', async (t) => {
  const call = await open(t)
  await discloses(call, 100)
  call.leg.play(40)
  await call.node.die()
  const next = await openCallNode(call)
  t.teardown(() => next.close())
  await call.sql`update nodes set lease_until = now() - interval '1 s' where id = ${call.node.nodeId}`
  await next.switchboard.start()
  await discloses({ ...call, node: next }, 100)
  t.match(call.commands('start').at(-1), { epoch: 2, recording: { parts: 'agent' } })
  while (call.leg.waiting() > 0) call.leg.play(50)
  await until(() => next.engine.configs.length === 2)
  t.match(await call.row(), { disclosure: { playedMs: 2_000, completed: true } })
  t.equal((await call.turns()).length, 1)
  await finish(call, next)
  t.same(await call.differences(), [])
})

test('an actor that takes the talk over after it says nothing first, and its engine is not told of it', async (t) => {
  const call = await open(t)
  await discloses(call, 10)
  call.leg.play(10)
  await until(() => call.node.engine.configs.length === 2)
  await call.node.die()
  const next = await openCallNode(call)
  t.teardown(() => next.close())
  await call.sql`update nodes set lease_until = now() - interval '1 s' where id = ${call.node.nodeId}`
  await next.switchboard.start()
  await until(() => next.engine.configs.length === 1)
  t.match(next.engine.configs[0], { history: [], owesReply: false })
  t.notOk(next.engine.told.some((line) => line.startsWith('last:')))
})

test('the static message of an inbound call is said behind it, to its end as well', async (t) => {
  const announcing = { inboundStaticMessageEnabled: true, inboundStaticMessageText: 'We are closed today.' }
  const call = await open(t, { config: { disclosureText: text, ...announcing } })
  const { engine } = call.node
  await discloses(call, 10)
  call.leg.play(10)
  await until(() => engine.told.includes('last:We are closed today.'))
  engine.say('closed', 'We are closed today.', 20)
  engine.emit({ type: 'finished', nextAction: null })
  await call.bus.flush()
  call.leg.play(20)
  await until(() => engine.configs.length === 3)
  t.match(engine.configs[2], { history: [], worker: { inboundStaticMessageEnabled: false } }, 'and not again')
  t.match(
    await call.row(),
    { disclosure: { playedMs: 200, completed: true } },
    'which is no part of what was disclosed',
  )
  t.match(
    (await call.turns()).map((turn) => turn.text),
    [text, 'We are closed today.'],
  )
})

test('an engine that says it in other words is told of, with what it said', async (t) => {
  const call = await open(t)
  await discloses(call, 10, 'Hi, I record this.')
  call.leg.play(10)
  await until(async () => (await call.row())?.disclosure)
  t.match(await until(async () => (await call.row())?.warnings[0]), { type: 'DISCLOSURE_REWORDED' })
  t.match(await call.turns(), [{ text: 'Hi, I record this.' }])
})

test('an engine that says nothing of it is no engine for the call', async (t) => {
  const call = await open(t)
  await until(() => call.node.engine.told.includes(`last:${text}`))
  call.node.engine.emit({ type: 'finished', nextAction: null })
  await call.browser.until(status('failed'))
  t.match(await call.row(), { outcome: 'failed', failedReason: 'voice_session_creation_failed' })
})

test('each language has its own text, and a call that none is for is told so and not recorded', async (t) => {
  const texts = { en: 'English.', 'de-DE': 'Deutsch.', 'pt-BR': 'Brasil.', pt: 'Portugal.' }
  t.equal(disclosureFor(texts, ['de-DE']), 'Deutsch.')
  t.equal(disclosureFor(texts, ['DE-de']), 'Deutsch.')
  t.equal(disclosureFor(texts, ['en-GB']), 'English.')
  t.equal(disclosureFor(texts, ['de-AT']), 'Deutsch.', 'another region')
  t.equal(disclosureFor(texts, ['pt-PT']), 'Portugal.')
  t.equal(disclosureFor(texts, ['fr', 'en']), 'English.', 'the language of the worker')
  t.equal(disclosureFor(texts, ['fr']), null)
  t.equal(disclosureFor('One for all.', ['fr']), 'One for all.')
  t.equal(disclosureFor(undefined, ['fr']), null)
  const call = await open(t, { config: { disclosureText: { fr: 'Français.' } } })
  t.match(call.commands('start').at(-1), { recording: null })
  t.match(await until(async () => (await call.row())?.warnings[0]), { type: 'DISCLOSURE_MISSING' })
  t.notOk(call.node.engine.told.some((line) => line.startsWith('last:')))
  // The step behind the one that warns.
  await until(async () => (await call.row())?.recordingState)
  t.match(await call.row(), { recordingState: 'off', disclosure: null })
})

test('texts are checked as they are configured', (t) => {
  const pathsOf = (disclosureText: unknown) =>
    WorkerConfig.safeParse({ disclosureText }).error?.issues.map(({ path }) => path.join('.')) ?? []
  t.same(pathsOf('Hello.'), [])
  t.same(pathsOf({ en: 'Hello.', 'de-AT': 'Grüß Gott.' }), [])
  for (const wrong of [' ', '', 7, { en: '' }, { 'not a tag': 'x' }, 'x'.repeat(2_001)])
    t.ok(pathsOf(wrong).every((path) => path.startsWith('disclosureText')) && pathsOf(wrong).length > 0)
  t.end()
})
