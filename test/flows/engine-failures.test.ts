/**
 * What becomes of calls whose provider fails: it cannot be had, it dies, it talks garbage, its model calls tools wrongly, tools do not answer. On the
 * whole service, by telephone; the reasons are those of docs/contract/webhooks.md "failedReason", and nothing is left behind.
 */
import { test, type Test } from 'tap'
import { placeWebCall } from '../../tools/callers/web-caller.ts'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import { WebCallSession } from '../../model/web-call.ts'
import { changeAccountConfig } from '../../store/accounts.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import { cascadeKey } from '../fake/cascade-server.ts'
import {
  answer,
  callerSays,
  goodbye,
  greeting,
  openFailingCalls,
  sorry,
  type FailingCalls,
} from '../scenes/failing-calls.ts'
import { inTime, until } from '../scenes/in-time.ts'
import { openSipPeer } from '../fake/sip-peer.ts'
import { heard } from '../scenes/ten-turns/caller.ts'
import { tool, toolArguments } from '../scenes/ten-turns/conversation.ts'

const realtime = { llmProvider: 'voice_provider_a' } as const
const cascade = { llmProvider: 'cascade' } as const
const unavailable = { status: 'failed', failedReason: 'voice_session_unavailable' }
const elsewhere = '+12025550177'
const sdp = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n'
/** What is said while a tool takes its time. */
const filler = 'One moment, please.'
/** What the log may complain about in these calls. */
const expected =
  /^(voice session could not be opened|no voice session can be opened for a call that is due|a voice session died and is opened again|call\.tool_call failed|the provider refused a request of a call|frames of the agent are dropped)$/

test('providers that fail', { timeout: 170_000 }, async (t) => {
  const calls = await openFailingCalls(t)
  t.jobs = 3
  await Promise.all([
    t.test('OpenAI Realtime', { buffered: true }, (t) => ofRealtime(t, calls)),
    t.test('the cascade', { buffered: true }, (t) => ofCascade(t, calls)),
    t.test('a provider that is there and says nothing ends the call', { buffered: true }, (t) => silence(t, calls)),
  ])
  await t.test('where the account allows it, the embedded engine talks in its place', (t) => fallsBack(t, calls))
  const { stage } = calls
  t.equal(stage.service.running(), 0, 'no call is left')
  await stage.close()
  for (const { line } of [calls.realtime, calls.cascade, calls.gemini])
    await inTime('its connections to be closed', line.idle())
  t.pass('every connection is closed')
  const complaints = stage.log.lines.filter(({ level }) => /warn|error/.test(level))
  t.same(
    complaints.filter(({ message }) => !expected.test(message)),
    [],
  )
  const written = JSON.stringify(stage.log.lines)
  for (const key of [calls.realtime.server.key, cascadeKey]) t.notOk(written.includes(key), 'no key is in the log')
})

async function ofRealtime(t: Test, calls: FailingCalls): Promise<void> {
  await t.test('with nobody there no call is had: by telephone, to a telephone, from a browser', (t) =>
    nobody(t, calls),
  )
  await t.test('a key that is refused sends the caller to the number for that', (t) => redirected(t, calls))
  await t.test('a connection that is cut is made again, and the talk goes on', (t) => cutOnce(t, calls))
  await t.test('one that is cut again and again ends the call', (t) => cutAlways(t, calls))
  await t.test('garbage does no harm; what is no JSON ends the session, and the talk goes on', (t) => garbage(t, calls))
  await t.test('arguments that the schema refuses are told to the model, and nobody is asked', (t) => wrong(t, calls))
  await t.test('a tool that does not answer is told to the model, and the caller hears of it', (t) => late(t, calls))
}

async function nobody(t: Test, calls: FailingCalls): Promise<void> {
  const { stage, phone, lineFor, ended } = calls
  const gateway = { host: '127.0.0.1', port: phone.port }
  const line = await lineFor('nobody', realtime, { gateway })
  await calls.realtime.line.answers('nobody')

  await t.rejects(phone.call(line), /503/, 'the caller is not answered in vain')
  t.match(await ended(line), { ...unavailable, direction: 'inbound' })

  let rings = 0
  void phone.called().then(() => rings++)
  await stage.rest('POST', '/phone-calls', { workerId: line.workerId, phoneNumber: elsewhere })
  t.match(await ended(line), { ...unavailable, direction: 'outbound' })
  t.equal(rings, 0, 'nobody is called in vain')

  const session = WebCallSession.parse(await stage.rest('POST', '/web-calls', { workerId: line.workerId }))
  const messages: ServerMessage[] = []
  const onMessage = (message: ServerMessage): void => void messages.push(message)
  const web = await placeWebCall({ ...session, createCaller: () => createWeriftCaller(), onMessage })
  t.match(await ended(line), { status: 'failed', failedReason: 'voice_session_creation_failed' })
  await inTime('the end of the socket', web.socketClosed)
  t.match(messages.at(-1), { type: 'bye', reason: 'failed' })
  await web.hangUp()
  await calls.realtime.line.answers('provider')
}

async function redirected(t: Test, calls: FailingCalls): Promise<void> {
  const { stage, lineFor, ended } = calls
  const config = { ...realtime, serviceDownRedirectEnabled: true, serviceDownRedirectNumber: elsewhere }
  const line = await lineFor('redirected', config)
  await calls.realtime.line.answers(401)
  const peer = await openSipPeer(stage.sipPort)
  t.teardown(() => peer.close())
  const call = peer.invite({ to: `sip:${line.number}@127.0.0.1`, body: sdp })
  let taken = await call.answered()
  while (taken.status < 200) taken = await call.answered()
  t.equal(taken.status, 302, 'before the call is answered')
  t.match(headerOf(taken, 'Contact'), elsewhere)
  call.ack()
  t.match(await ended(line), unavailable)
  await calls.realtime.line.answers('provider')
}

async function cutOnce(t: Test, calls: FailingCalls): Promise<void> {
  const { realtime: provider, greeted, speaks, ended } = calls
  const line = await calls.lineFor('cut once', realtime)
  calls.realtimeSays([{ text: answer }])
  const caller = await greeted(line)
  // One was tried before the call was answered.
  const before = provider.server.sessions.length - 1
  provider.line.cut()
  await speaks(caller, answer)
  await speaks(caller, goodbye)
  t.match(await ended(line), { status: 'completed' })
  t.same(caller.seen(), [
    `agent: ${greeting}`,
    `user: ${callerSays}`,
    `agent: ${answer}`,
    `user: ${callerSays}`,
    `agent: ${goodbye}`,
  ])
  const [, second, ...more] = provider.server.sessions.slice(before)
  t.same(more, [], 'two sessions were enough')
  const told = second?.received.flatMap((event) => (event.type === 'conversation.item.create' ? [event.item] : []))
  t.match(told?.[0], { role: 'assistant', content: [{ type: 'output_text', text: greeting }] })
  await inTime('all connections to be closed', provider.line.idle())
}

async function cutAlways(t: Test, calls: FailingCalls): Promise<void> {
  const { realtime: provider, greeted, ended } = calls
  const { sessions } = provider.server
  const line = await calls.lineFor('cut always', realtime)
  await greeted(line)
  const before = sessions.length - 1
  for (let life = 1; life <= 6; life++) {
    // It has been opened when it hears the caller.
    const session = () => sessions[before + life - 1]
    const isHearing = () => session()?.received.some(({ type }) => type === 'input_audio_buffer.append') ?? false
    await until(isHearing, () => `session ${life}`)
    session()?.die()
  }
  t.match(await ended(line), unavailable)
  t.equal(sessions.length - before, 6, 'it was opened again five times')
  await inTime('all connections to be closed', provider.line.idle())
}

/** Minutes of sound that nobody asked for. */
const endless = { type: 'response.output_audio.delta', item_id: 'x', response_id: 'y', delta: 'A'.repeat(8_000_000) }
/** Events with nothing right in them. */
const nonsense: readonly object[] = [
  { type: 'weather.report', rain: true },
  { type: 'response.output_audio.delta', item_id: 7, delta: { not: 'sound' } },
  { type: 'response.output_audio_transcript.delta', item_id: null, delta: null },
  { type: 'response.done' },
  { type: 'response.done', response: { output: 'none', status: 5 } },
  { type: 'response.function_call_arguments.done', call_id: 1, name: null, arguments: 3 },
  { type: 'conversation.item.input_audio_transcription.completed', item_id: 'nobody', transcript: 12 },
  { type: 'input_audio_buffer.speech_stopped', audio_end_ms: 'soon' },
  { type: 'error' },
  {},
]

async function garbage(t: Test, calls: FailingCalls): Promise<void> {
  const { realtime: provider, greeted, speaks, ended } = calls
  const { sessions } = provider.server
  const line = await calls.lineFor('garbage', realtime)
  calls.realtimeSays([{ text: answer }])
  const caller = await greeted(line)
  const before = sessions.length - 1
  for (const words of nonsense) sessions.at(-1)?.sendRaw(JSON.stringify(words))
  sessions.at(-1)?.sendRaw(JSON.stringify(endless))
  await inTime('the sound', caller.sound())
  await caller.say(calls.speech)
  await heard(caller, answer)
  t.equal(sessions.length - before, 1, 'the session went on')
  sessions.at(-1)?.sendRaw('<html>502 Bad Gateway</html>')
  await speaks(caller, goodbye)
  t.match(await ended(line), { status: 'completed' })
  t.equal(sessions.length - before, 2)
  const said = line.events('call.transcript').map(({ text }) => text)
  t.same(said, [greeting, callerSays, answer, callerSays, goodbye])
}

async function wrong(t: Test, calls: FailingCalls): Promise<void> {
  const { toolOutputs, greeted, speaks, ended } = calls
  const line = await calls.lineFor('wrong arguments', realtime, { tool })
  const before = toolOutputs.length
  calls.realtimeSays([{ call: tool.name, arguments: '{"guests":"many","place":"outside"}' }])
  const caller = await greeted(line)
  await speaks(caller, sorry)
  calls.realtimeSays([{ call: tool.name, arguments: '{"guests":' }])
  await speaks(caller, sorry)
  await speaks(caller, goodbye)
  t.match(await ended(line), { status: 'completed' })
  t.match(toolOutputs.slice(before), [{ error: /guests/ }, { error: /JSON/ }], 'the model was told what to mend')
  t.same(line.toolCalls(), [], 'nobody was asked')
}

async function late(t: Test, calls: FailingCalls): Promise<void> {
  const { toolOutputs, greeted, speaks, ended } = calls
  const line = await calls.lineFor('late tool', realtime, { tool, toolAnswers: [{ wire: 'hang' }] })
  const before = toolOutputs.length
  calls.realtimeSays([{ call: tool.name, arguments: JSON.stringify(toolArguments) }])
  const caller = await greeted(line)
  await speaks(caller, filler)
  await heard(caller, sorry)
  await speaks(caller, goodbye)
  t.match(await ended(line), { status: 'completed' })
  t.match(toolOutputs.slice(before), [{ code: 'TOOL_TIMEOUT' }])
  t.equal(line.toolCalls().length, 1, 'it was asked once')
}

async function ofCascade(t: Test, calls: FailingCalls): Promise<void> {
  const { phone, lineFor, greeted, speaks, ended } = calls
  const { server } = calls.cascade
  await t.test('a key that is refused ends the call', async (t) => {
    const line = await lineFor('refused key', cascade)
    server.fails('models', { status: 401 })
    await t.rejects(phone.call(line), /503/)
    t.match(await ended(line), unavailable)
  })
  await t.test('an endpoint that fails once is asked again, and the caller does not notice', async (t) => {
    const line = await lineFor('fails once', cascade)
    const caller = await greeted(line)
    server.fails('transcription', { status: 500 })
    server.fails('chat', { status: 503 })
    server.fails('speech', { answers: 'cut' })
    await speaks(caller, answer)
    await caller.hangUp()
    t.match(await ended(line), { status: 'completed' })
    t.same(caller.seen(), [`agent: ${greeting}`, `user: ${callerSays}`, `agent: ${answer}`])
  })
  await t.test('a model that fails again and again ends the call, after the caller’s last words', async (t) => {
    const line = await lineFor('fails always', cascade)
    const caller = await greeted(line)
    server.fails('chat', ...Array.from({ length: 40 }, () => ({ status: 500 })))
    await caller.silence(300)
    await caller.say(calls.speech)
    t.match(await ended(line), unavailable)
    t.same(caller.seen(), [`agent: ${greeting}`, `user: ${callerSays}`])
  })
  t.same(server.violations, [])
}

async function fallsBack(t: Test, { stage, realtime: provider, lineFor, phone, ended }: FailingCalls): Promise<void> {
  await changeAccountConfig(stage.service.sql, stage.accountId, { embeddedFallback: true }, Date.now())
  const line = await lineFor('falls back', realtime, { script: 'say Hello from this machine.\nend Goodbye.' })
  await provider.line.answers(401)
  const caller = await phone.call(line)
  const { status, transcript } = await ended(line)
  t.equal(status, 'completed')
  t.match(transcript, [{ text: 'Hello from this machine.', source: 'embedded' }, { text: 'Goodbye.' }])
  await inTime('the end of the call', caller.over)
  await provider.line.answers('provider')
}

/** A caller who has heard nothing yet waits for one attempt, not for four. */
async function silence(t: Test, { phone, lineFor, ended, gemini }: FailingCalls): Promise<void> {
  const line = await lineFor('silence', { llmProvider: 'voice_provider_b' })
  await t.rejects(phone.call(line), /503/)
  t.match(await ended(line), unavailable)
  await inTime('all connections to be closed', gemini.line.idle())
}
