/** A node that is stopped: its calls go to another one, each in a pause of its talk, and what is said before and after it is one conversation. */
import { test } from 'tap'
import { replay } from '../../actors/call/machine/replay.ts'
import { nodeSubjectsOf } from '../../model/node-beat.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { listTurns } from '../../store/transcripts.ts'
import { createCutDatabase } from '../fake/cut-database.ts'
import { openShared, status } from '../scenes/call-node.ts'
import { createFolder } from '../scenes/folder.ts'
import { freezePostgres } from '../scenes/frozen-postgres.ts'
import { until } from '../scenes/in-time.ts'
import { openNode, pass, talk } from '../scenes/beating-nodes.ts'

const never = new AbortController().signal

test('a call is handed over when its talk pauses, with all that was said, and goes on there', async (t) => {
  const shared = await openShared(t)
  const [first, second] = [await openNode(t, shared), await openNode(t, shared)]
  const call = await talk(shared, first.node)
  await pass(shared, 200)
  first.node.engine.say('a', 'Hello', 5)
  for (const [seq, digit] of ['3', '7', '9'].entries())
    call.leg.event({ type: 'dtmf', digit, line: { epoch: 1, seq, ...(digit === '9' && { hidden: true as const }) } })
  await shared.bus.flush()
  first.node.engine.emit({ type: 'user_text', text: '[pressed 3]', isFinal: true, confidence: 1, from: 0, to: 0 })
  await shared.bus.flush()
  const given = first.node.switchboard.handOver(never)
  await pass(shared, 1_000)
  t.equal(second.node.engine.configs.length, 0, 'the agent speaks')
  call.leg.play(5)
  while (first.node.switchboard.running() > 0) await pass(shared, 20)
  t.equal(await given, 1)
  await until(() => second.node.engine.configs.length === 1)
  t.match(second.node.engine.configs[0], {
    history: [
      { role: 'user', text: '[pressed 3]' },
      { role: 'agent', text: 'Hello' },
    ],
    owesReply: false,
  })
  t.match(call.leg.commands.at(-1), { type: 'start', epoch: 2 })
  const kept = call.leg.commands.flatMap((command) => (command.type === 'keep' ? [command.keys ?? null] : []))
  t.match(kept, [null, [{ digit: '7' }, { digit: '9', line: { hidden: true } }]], 'keys that nobody has told yet')

  second.node.engine.emit({ type: 'finished', nextAction: null })
  await call.browser.until(status('completed'))
  await second.node.scheduler.idle()
  t.match(await listTurns(shared.sql, call.accountId, call.callId), [{ text: '[pressed 3]' }, { text: 'Hello' }])
  t.same(replay(await listCallEvents(shared.sql, call.callId)).differences, [])
})

test('a talk that does not pause is handed over in the middle of a sentence, which is played to its end and is one turn', async (t) => {
  const shared = await openShared(t)
  const [first, second] = [await openNode(t, shared), await openNode(t, shared)]
  const call = await talk(shared, first.node)
  await pass(shared, 200)
  first.node.engine.emit({ type: 'memory', memory: { at: 'the greeting' } })
  first.node.engine.say('a', 'Hello there', 10)
  await shared.bus.flush()
  call.leg.play(4)
  const said = () => call.leg.commands.flatMap((command) => (command.type === 'says' ? [command.words] : []))
  const format = { encoding: 'pcm16', rateHz: 16000 } as const
  const left = () => ({
    words: [{ ...said()[0], ...said().at(-1)!, sent: 10, isCut: false }],
    nextSeq: 10,
    lastPlayedSeq: 3,
  })
  await until(() => said().at(-1)?.frames === 10)
  call.leg.answer('start', { type: 'started', hears: format, speaks: format, left: left() })
  const given = first.node.switchboard.handOver(never)
  while (first.node.switchboard.running() > 0) await pass(shared, 500)
  t.equal(await given, 1)
  await until(() => second.node.engine.configs.length === 1)
  t.match(second.node.engine.configs[0], {
    history: [{ role: 'agent', text: 'Hello there' }],
    memory: { at: 'the greeting' },
    owesReply: false,
    unheardMs: 120,
  })
  t.notOk(
    call.leg.commands.some(({ type }) => type === 'flush'),
    'nothing is cut',
  )
  call.leg.play(6)
  const turns = async () => (await listTurns(shared.sql, call.accountId, call.callId)).map(({ text }) => text)
  await until(async () => (await turns()).length === 1)
  t.same(await turns(), ['Hello there'])
})

test('without another node that takes calls they stay, and one that nobody takes after all is taken back', async (t) => {
  const shared = await openShared(t)
  const first = await openNode(t, shared)
  const { callId } = await talk(shared, first.node)
  await pass(shared, 200)
  t.equal(await first.node.switchboard.handOver(never), 0)
  t.equal(first.node.switchboard.running(), 1)

  const second = await openNode(t, shared)
  await pass(shared, 200)
  await second.node.switchboard.handOver(never)
  t.equal(await first.node.switchboard.handOver(never), 0, 'it is being stopped itself')
  t.equal(first.node.switchboard.running(), 1)
  const [row] = await shared.sql`select owner, epoch from calls where id = ${callId}`
  t.match(row, { owner: first.node.nodeId, epoch: 2 })
  await until(() => first.node.engine.configs.length === 2)
})

test('one that nobody takes because the database goes away just then is taken back when it is back', async (t) => {
  const shared = await openShared(t)
  const database = createCutDatabase(shared.sql)
  const cuttable = { ...shared, sql: database.sql }
  const [first, second] = [await openNode(t, cuttable), await openNode(t, cuttable)]
  const { callId } = await talk(shared, first.node)
  await pass(shared, 200)
  // Before what the other one asks of it.
  shared.bus.subscribe(nodeSubjectsOf(second.node.nodeId).offer, () => database.cut())
  const given = first.node.switchboard.handOver(never)
  while (first.node.switchboard.running() > 0) await pass(shared, 50)
  await pass(shared, 3_000)
  t.equal(first.node.engine.configs.length + second.node.engine.configs.length, 1, 'nobody has it')
  database.mend()
  await until(async () => {
    await pass(shared, 100)
    return first.node.switchboard.running() === 1
  })
  t.equal(await given, 0)
  await until(() => first.node.engine.configs.length === 2)
  t.match(await shared.sql`select owner, epoch from calls where id = ${callId}`, [
    { owner: first.node.nodeId, epoch: 2 },
  ])
})

test('what the caller was saying is heard again by the next actor, and is one turn; what is written down is settled', async (t) => {
  const shared = await openShared(t)
  const [first, second] = [await openNode(t, shared), await openNode(t, shared)]
  const call = await talk(shared, first.node)
  const words = { type: 'user_text', confidence: null, from: 0, to: 400 } as const
  first.node.engine.emit({ type: 'user_speech_started', at: 0 })
  first.node.engine.emit({ ...words, text: 'I would', isFinal: false })
  const understood = () =>
    shared.sql`select from call_events where call_id = ${call.callId} and event ->> 'type' = 'caller_heard'`
  await until(async () => (await understood()).count === 1)
  const format = { encoding: 'pcm16', rateHz: 16000 } as const
  call.leg.answer('start', { type: 'started', hears: format, speaks: format, waits: { kept: 20 } })
  call.leg.answer('ping', { type: 'here', connected: true, ended: null, kept: 20 })
  await pass(shared, 200)
  first.sleeps(true)
  await pass(shared, 450)
  await until(() => call.leg.commands.some(({ type }) => type === 'listens'))
  t.same(second.node.engine.configs[0]?.history, [], 'half a sentence is none')

  for (let frame = 0; frame < 20; frame++) call.leg.speak(2)
  await until(() => second.node.engine.heardFrames() === 20)
  second.node.engine.emit({ type: 'user_speech_started', at: 0 })
  second.node.engine.emit({ type: 'user_speech_stopped', at: 400 })
  second.node.engine.emit({ ...words, text: 'I would like two.', isFinal: true })
  const settled = () => call.leg.commands.flatMap((command) => (command.type === 'settled' ? [command] : []))
  await until(() => settled().length === 1)
  t.same(settled(), [{ type: 'settled', epoch: 2, seq: 19, keys: { upTo: 19, open: [] } }])
  // Whoever follows is told with the start of the leg, should the leg not have been told.
  const last = await openNode(t, shared)
  await pass(shared, 200)
  second.sleeps(true)
  await pass(shared, 450)
  const third = () => call.leg.commands.find((command) => command.type === 'start' && command.epoch === 3)
  await until(() => third() !== undefined)
  t.match(third(), { settled: { epoch: 2, seq: 19, keys: { upTo: 19, open: [] } } })
  await until(() => last.node.engine.configs.length === 1)
  last.node.engine.emit({ type: 'finished', nextAction: null })
  await call.browser.until(status('completed'))
  await last.node.scheduler.idle()
  const turns = await listTurns(shared.sql, call.accountId, call.callId)
  t.same(
    turns.map(({ role, text }) => [role, text]),
    [['user', 'I would like two.']],
  )
  t.same(replay(await listCallEvents(shared.sql, call.callId)).differences, [])
})

test('while the database is away a call stays where it is; once it is back it goes, with what was said meanwhile', async (t) => {
  const shared = await openShared(t)
  const open = async () => openNode(t, shared, { dataDir: await createFolder(t) })
  const [first, second] = [await open(), await open()]
  const call = await talk(shared, first.node)
  await pass(shared, 200)
  const goOn = freezePostgres(shared.databaseDir)
  t.teardown(goOn)
  first.node.engine.emit({ type: 'user_text', text: 'Seven', isFinal: true, confidence: 1, from: 0, to: 400 })
  await until(async () => {
    await pass(shared, 100)
    return first.node.log.lines.some(({ message }) => message.startsWith('the database does not answer'))
  })
  const leaving = new AbortController()
  const given = first.node.switchboard.handOver(leaving.signal)
  await pass(shared, 5_000)
  leaving.abort()
  t.equal(await given, 0)
  t.equal(first.node.switchboard.running(), 1)
  t.equal(second.node.engine.configs.length, 0)

  const again = first.node.switchboard.handOver(never)
  await pass(shared, 1_000)
  goOn()
  await until(async () => {
    await pass(shared, 100)
    return first.node.switchboard.running() === 0
  })
  t.equal(await again, 1)
  await until(() => second.node.engine.configs.length === 1)
  t.match(second.node.engine.configs[0]?.history, [{ role: 'user', text: 'Seven' }])
  const [row] = await shared.sql`select owner, epoch from calls where id = ${call.callId}`
  t.match(row, { owner: second.node.nodeId, epoch: 2 })
})
