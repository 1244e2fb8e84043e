/**
 * docs/contract/signaling.md "Joining", "Resuming" and "Limits of the socket": the socket as clients see it, over a real listener, bus and
 * WebRTC peer.
 */
import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import { test, type Test } from 'tap'
import { WebSocket } from 'ws'
import { createJoinedBus } from '../../actors/bus/joined-bus.ts'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createAdmission } from '../../actors/call/birth/admission.ts'
import { systemClock } from '../../app/clock.ts'
import { placeWebCall } from '../../tools/callers/web-caller.ts'
import { createWebMedia } from '../../gateway/web-media.ts'
import { farewellTime } from '../../gateway/web-session.ts'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { subjectsOf, type Bus, type NodeBus } from '../../model/bus.ts'
import { Problem, type ErrorBody } from '../../model/problem.ts'
import type { RtpTransportHandlers, WebPeer } from '../../model/rtp-transport.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import { createFailureGuard } from '../../net/failure-guard.ts'
import { resumeWindow } from '../../model/web-call.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { callId, setUpStage } from '../scenes/front-door.ts'

/** A client of the raw socket. `next` waits for the next message of a type and skips the others. */
async function connect(url: string, query: string, origin?: string) {
  const socket = new WebSocket(`${url}?${query}`, origin === undefined ? {} : { origin })
  const inbox: ServerMessage[] = []
  let wake: () => void = () => undefined
  socket.on('message', (content: Buffer) => {
    inbox.push(JSON.parse(content.toString()) as ServerMessage)
    wake()
  })
  const closed = once(socket, 'close').then(([code]: unknown[]) => code as number)
  socket.on('error', () => undefined)
  async function next<Type extends ServerMessage['type']>(type: Type): Promise<Extract<ServerMessage, { type: Type }>> {
    for (;;) {
      const message = inbox.shift()
      if (message?.type === type) return message as Extract<ServerMessage, { type: Type }>
      if (!message) await new Promise<void>((resolve) => (wake = resolve))
    }
  }
  const send = (message: unknown) => socket.send(typeof message === 'string' ? message : JSON.stringify(message))
  await once(socket, 'open')
  return { socket, send, next, closed, inbox }
}

const joinWell = (signalingUrl: string) =>
  placeWebCall({ signalingUrl, token: 'good', createCaller: createWeriftCaller, onMessage: () => undefined })

/** The leg sends back what it hears. */
async function soundReturns({ caller }: Awaited<ReturnType<typeof joinWell>>): Promise<void> {
  const { payloadType } = await caller.connected
  const echo = new Promise((resolve) => caller.onPacket(resolve))
  caller.send({ payloadType, marker: false, sequenceNumber: 1, timestamp: 0, payload: Buffer.from('still here') })
  await echo
}

async function until(claim: () => boolean): Promise<void> {
  while (!claim()) await new Promise((resolve) => setImmediate(resolve))
}

type Refusal = { status: number; headers: IncomingMessage['headers']; body: ErrorBody }

async function refusal(url: string, query: string, origin?: string): Promise<Refusal> {
  const socket = new WebSocket(`${url}?${query}`, origin === undefined ? {} : { origin })
  socket.on('error', () => undefined)
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  socket.terminate()
  const { statusCode: status = 0, headers } = response
  return { status, headers, body: JSON.parse(Buffer.concat(chunks).toString()) as ErrorBody }
}

test('the first message is ready, with call, session and a resume token', async (t) => {
  const { url, signaling } = await setUpStage(t)
  const client = await connect(url, 'token=good')
  t.same(await client.next('ready'), { type: 'ready', callId, sessionId: 'session-1', resumeToken: 'resume-1' })
  t.equal(signaling.sessions(), 1)
  client.send({ type: 'ping' })
  t.same(await client.next('pong'), { type: 'pong' })
})

test('what a session said and was told is handed over at its end, without what lets anybody in and without words', async (t) => {
  const { url, ladders, say, port } = await setUpStage(t)
  const { send, next, closed, socket } = await connect(url, 'token=good')
  const caller = createWeriftCaller()
  t.teardown(() => caller.close())
  send({ type: 'offer', sdp: await caller.offer() })
  await next('answer')
  send({ type: 'dtmf', digits: '4711' })
  send({ type: 'text', text: 'My name is Ada.' })
  const candidate = 'candidate:1 1 udp 2122260223 192.0.2.7 50000 typ host ufrag s3cr'
  send({ type: 'candidate', candidate: { candidate, sdpMid: '0', usernameFragment: 's3cr' } })
  send({ type: 'ping' })
  await next('pong')
  say({ type: 'transcript', role: 'user', text: 'I am Ada.', isFinal: true, turnIndex: 0, ts: '2026-01-01T00:00:00Z' })
  for (let count = 0; count < 120; count++) say({ type: 'interrupted' })
  say({ type: 'bye', reason: 'completed' })
  t.equal(await closed, 1000)
  socket.terminate()
  const [ladder] = ladders
  t.equal(ladders.length, 1)
  t.equal(ladder?.entries.length, 100, 'a flood of messages is counted')
  t.ok((ladder?.leftOut ?? 0) > 20)
  const told = (ladder?.entries ?? []).map(({ direction, text }) => `${direction} ${text}`)
  const place = { protocol: 'ws', local: `127.0.0.1:${port}`, remote: '127.0.0.1:0' }
  t.match(ladder?.entries[0], { direction: 'out', ...place })
  const of = (direction: string, type: string) => told.find((line) => line.startsWith(`${direction} {"type":"${type}"`))
  t.match(of('out', 'ready'), /"resumeToken":"\[masked\]"/)
  t.match(of('in', 'offer'), /m=audio .*a=ice-pwd:\[masked\]/)
  t.match(of('out', 'answer'), /a=ice-ufrag:\[masked\].*a=fingerprint:sha-256 \[masked\]/)
  for (const line of told) t.notMatch(line, /resume-1|s3cr|4711|Ada|a=ice-(?:pwd|ufrag):(?!\[)|(?:[0-9A-F]{2}:){8}/)
  t.same(
    [of('out', 'pong'), of('out', 'transcript')],
    [undefined, undefined],
    'what tells nothing of the way is not there',
  )
})

test('a refused upgrade is answered with 401 or 403 and the error body, before any upgrade', async (t) => {
  const { url, admission, signaling } = await setUpStage(t)
  const unknown = await refusal(url, 'token=nonsense')
  t.equal(unknown.status, 401)
  t.match(unknown.body, {
    statusCode: 401,
    type: 'UNAUTHORIZED',
    localizedKey: 'errors.unauthorized',
    requestId: /request-/,
  })
  t.equal(unknown.headers['x-request-id'], unknown.body.requestId)
  t.equal((await refusal(url, 'x=1')).status, 401, 'without a token')
  t.equal((await refusal(url, `token=${'x'.repeat(300)}`)).status, 401, 'with an endless token')
  const foreign = await refusal(url, 'token=good', 'https://evil.example')
  t.equal(foreign.status, 403)
  t.equal(foreign.body.type, 'ORIGIN_NOT_ALLOWED')
  t.ok(admission.tokens.has('good'), 'a wrong origin does not use the token up')
  await connect(url, 'token=good', 'https://good.example')
  t.equal((await refusal(url, 'token=good')).status, 401, 'a used token')
  t.equal(signaling.sessions(), 1)
})

test('a client of another version of the protocol is told the one that is spoken, before its token is looked at (RFC 6455 §4.4)', async (t) => {
  const { port, admission } = await setUpStage(t)
  const ask = (headers: Record<string, string>, path = '/v1/signaling?token=good') =>
    new Promise<IncomingMessage>((resolve, reject) =>
      http.get({ port, host: '127.0.0.1', path, headers }, (answer) => resolve(answer.resume())).on('error', reject),
    )
  const handshake = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': `${'A'.repeat(22)}==` }
  for (const version of ['8', '7', '14', 'x']) {
    const { statusCode, headers } = await ask({ ...handshake, 'sec-websocket-version': version })
    t.same([statusCode, headers['sec-websocket-version']], [426, '13'], version)
  }
  t.equal((await ask({})).statusCode, 404, 'who asks for no socket is answered as everywhere')
  t.equal((await ask({ ...handshake, 'sec-websocket-version': '8' }, '/elsewhere')).statusCode, 404)
  t.same(admission.questions, [])
})

test('a client that comes back when its call is over is told so, in place of a refusal', async (t) => {
  const { url, admission, signaling } = await setUpStage(t)
  admission.over.set('late', 'completed')
  const client = await connect(url, 'resume=late')
  t.same(await client.next('bye'), { type: 'bye', reason: 'completed' })
  t.equal(await client.closed, 1000)
  t.equal(signaling.sessions(), 0)
})

test('an address that makes tokens up is told so a few times, then 429; a good token joins all the same', async (t) => {
  let now = 1_000_000
  const unbanned = { isExempt: () => false, banned: () => undefined }
  const guard = createFailureGuard({ now: () => now, banAfter: 10, banFor: 600_000, ...unbanned })
  const { url, signaling } = await setUpStage(t, { guard })
  const statuses = []
  for (let count = 0; count < 130; count += 1) statuses.push((await refusal(url, `token=made-up-${count}`)).status)
  t.equal(statuses.filter((status) => status === 401).length, 60)
  t.equal(statuses.at(-1), 429)
  t.match(guard.bans(), [{ group: '127.0.0.1', failure: 'wrong_token', isProven: true }])
  t.equal((await refusal(url, 'resume=made-up')).body.type, 'RATE_LIMITED', 'tokens to come back with too')
  now += 5_000
  await connect(url, 'token=good')
  t.equal(signaling.sessions(), 1)
})

test('a token that was used or has expired is no made-up one, however often it comes', async (t) => {
  const unbanned = { isExempt: () => false, banned: () => undefined }
  const guard = createFailureGuard({ now: () => 1, banAfter: 2, banFor: 600_000, ...unbanned })
  const { url } = await setUpStage(t, { guard })
  for (let count = 0; count < 30; count += 1) t.equal((await refusal(url, 'token=used')).status, 401)
  t.same(guard.bans(), [])
})

test('a token that was found to be made up costs no second question, and what has not the form of ours costs none', async (t) => {
  const { url, admission } = await setUpStage(t)
  for (let count = 0; count < 20; count += 1) {
    t.equal((await refusal(url, 'token=made-up')).status, 401)
    t.equal((await refusal(url, 'resume=made-up')).status, 401)
  }
  t.same(admission.questions, ['made-up'])
  const nobody = () => t.fail('the database was asked')
  const real = createAdmission({
    sql: nobody as never,
    clock: systemClock,
    router: { route: async () => true } as never,
  })
  for (const token of ['', 'made-up', 'x'.repeat(42), 'x'.repeat(44), `${'x'.repeat(42)}!`, "' or 1=1--"]) {
    t.match(await real.admit(token, null), { type: 'UNAUTHORIZED' })
    t.match(await real.resume(token, null), { type: 'UNAUTHORIZED' })
    t.equal(await real.isOurs(token), false)
  }
})

test('an address may try so many tokens a minute that are none, without a ban; good ones do not count', async (t) => {
  const { url, clock, admission } = await setUpStage(t, { joinLimits: { triesPerMinute: 5 } })
  let resume = 'token=good'
  for (let count = 0; count < 8; count += 1) {
    const client = await connect(url, resume)
    resume = `resume=${(await client.next('ready')).resumeToken}`
  }
  const statuses = []
  for (let count = 0; count < 40; count += 1) statuses.push((await refusal(url, `token=made-up-${count}`)).status)
  t.same(statuses, [...Array.from({ length: 5 }, () => 401), ...Array.from({ length: 35 }, () => 429)])
  t.equal(admission.questions.filter((token) => token.startsWith('made-up')).length, 5)
  clock.advance(12_000)
  await connect(url, 'token=other')
})

test('one address has no more calls at once than its bound; its next token stays good', async (t) => {
  const joinLimits = { maxCallsPerAddress: 1, isExempt: () => false }
  const { url, admission, signaling } = await setUpStage(t, { joinLimits })
  t.equal((await refusal(url, 'token=nobody')).status, 401)
  const first = await connect(url, 'token=good')
  t.match(await refusal(url, 'token=other'), { status: 429, body: { type: 'RATE_LIMITED' } })
  t.ok(admission.tokens.has('other'))
  const { resumeToken } = await first.next('ready')
  const again = await connect(url, `resume=${resumeToken}`)
  again.send({ type: 'bye' })
  await until(() => signaling.sessions() === 0)
  await connect(url, 'token=other')
})

test('who joins and says nothing is closed with 1008; who has said something may be silent, on a next socket too', async (t) => {
  const { url } = await setUpStage(t, { firstMessageWithin: 300 })
  const talking = await connect(url, 'token=good')
  const { resumeToken } = await talking.next('ready')
  talking.send({ type: 'ping' })
  await talking.next('pong')
  const resumed = await connect(url, `resume=${resumeToken}`)
  const silent = await connect(url, 'token=other')
  t.equal(await silent.closed, 1008)
  t.equal(resumed.socket.readyState, WebSocket.OPEN)
})

test('no more sessions are taken than the bound, and the token stays good', async (t) => {
  const { url, admission } = await setUpStage(t, { maxSessions: 1 })
  await connect(url, 'token=good')
  const full = await refusal(url, 'token=other')
  t.equal(full.status, 503)
  t.equal(full.body.type, 'SERVICE_UNAVAILABLE')
  t.ok(admission.tokens.has('other'))
})

test('an offer is answered and sound goes both ways', async (t) => {
  const { url, legs } = await setUpStage(t)
  const messages: string[] = []
  const call = await placeWebCall({
    signalingUrl: url,
    token: 'good',
    createCaller: createWeriftCaller,
    onMessage: ({ type }) => messages.push(type),
  })
  const { payloadType } = await call.caller.connected
  const echo = new Promise<string>((resolve) => {
    call.caller.onPacket((packet) => resolve(Buffer.from(packet.payload).toString()))
  })
  call.caller.send({ payloadType, marker: true, sequenceNumber: 7, timestamp: 960, payload: Buffer.from('sound') })
  t.equal(await echo, 'sound')
  t.same(legs[0]?.heard, ['negotiated opus', 'connected connected'])
  t.same(messages, ['ready', 'answer'])
  await call.hangUp()
  t.ok(legs[0]?.heard.includes('hang up: the client said bye'))
})

test('a bad offer is an error with path sdp, a better one is answered, another one conflicts and the call goes on', async (t) => {
  const { url, legs } = await setUpStage(t)
  const client = await connect(url, 'token=good')
  client.send({ type: 'offer', sdp: 'v=0\r\nnonsense' })
  const { error } = await client.next('error')
  t.match(error, { type: 'VALIDATION_FAILED', statusCode: 400, issues: [{ path: 'sdp' }] })
  t.equal(legs.length, 0, 'no leg for a bad offer')
  const caller = createWeriftCaller()
  t.teardown(() => caller.close())
  const sdp = await caller.offer()
  client.send({ type: 'offer', sdp })
  const answer = await client.next('answer')
  client.send({ type: 'offer', sdp })
  t.equal((await client.next('error')).error.type, 'CONFLICT')
  await caller.accept(answer.sdp)
  await caller.connected
  t.equal(legs.length, 1)
  client.send({ type: 'ping' })
  t.ok(await client.next('pong'))
})

test('candidates are taken at any time, before the offer too; garbage is an error', async (t) => {
  const { url } = await setUpStage(t)
  const client = await connect(url, 'token=good')
  client.send({
    type: 'candidate',
    candidate: { candidate: 'candidate:1 1 udp 2122260223 192.0.2.7 50000 typ host', sdpMid: '0' },
  })
  client.send({
    type: 'candidate',
    candidate: { candidate: 'candidate:2 1 udp 2122260223 f3a1.local 50000 typ host', sdpMid: '0' },
  })
  client.send({ type: 'candidate', candidate: null })
  client.send({ type: 'candidate', candidate: { candidate: 'candidate:?' } })
  t.equal((await client.next('error')).error.type, 'VALIDATION_FAILED')
  client.send({ type: 'ping' })
  await client.next('pong')
  t.equal(client.inbox.length, 0, 'one error only')
})

test('what is no message is an error, the socket stays, and the twentieth closes it with 1008', async (t) => {
  const { url, signaling } = await setUpStage(t)
  const client = await connect(url, 'token=good')
  client.send('{')
  t.equal((await client.next('error')).error.type, 'INVALID_JSON')
  client.send({ type: 'dtmf', digits: 'hello' })
  const { error } = await client.next('error')
  t.equal(error.type, 'VALIDATION_FAILED')
  t.equal(error.issues?.[0]?.path, 'digits')
  for (let sent = 2; sent < 20; sent += 1) client.send({ type: 'what' })
  t.equal(await client.closed, 1008)
  t.equal(signaling.sessions(), 1, 'the call goes on and may be resumed')
})

test('more than 100 messages in one second close the socket with 1008', async (t) => {
  const { url, clock } = await setUpStage(t)
  const patient = await connect(url, 'token=good')
  for (let second = 0; second < 2; second += 1) {
    for (let sent = 0; sent < 100; sent += 1) patient.send({ type: 'ping' })
    for (let received = 0; received < 100; received += 1) await patient.next('pong')
    clock.advance(1000)
  }
  for (let sent = 0; sent < 101; sent += 1) patient.send({ type: 'ping' })
  t.equal(await patient.closed, 1008)
})

test('dtmf reaches the leg digit by digit', async (t) => {
  const { url, legs } = await setUpStage(t)
  const call = await joinWell(url)
  await call.caller.connected
  call.sendMessage({ type: 'dtmf', digits: '1#A' })
  await call.hangUp()
  t.same(
    legs[0]?.heard.filter((heard) => heard.startsWith('dtmf')),
    ['dtmf 1', 'dtmf #', 'dtmf A'],
  )
})

test('typed words reach the call as they are, once there is sound; a flood of them is refused, and the call goes on', async (t) => {
  const { url, legs, clock } = await setUpStage(t)
  const told: ServerMessage[] = []
  const options = { signalingUrl: url, token: 'good', createCaller: createWeriftCaller }
  const call = await placeWebCall({ ...options, onMessage: (message) => void told.push(message) })
  await call.caller.connected
  clock.advance(10_000)
  call.sendMessage({ type: 'text', text: '  A table for <b>two</b>, please. ' })
  call.sendMessage({ type: 'text', text: ' ' })
  for (let sent = 0; sent < 5; sent += 1) call.sendMessage({ type: 'text', text: `${sent}` })
  const errors = () => told.flatMap((message) => (message.type === 'error' ? [message.error] : []))
  await until(() => errors().length === 2)
  t.match(errors(), [{ type: 'VALIDATION_FAILED', issues: [{ path: 'text' }] }, { type: 'RATE_LIMITED' }])
  clock.advance(1_000)
  call.sendMessage({ type: 'text', text: 'again' })
  await call.hangUp()
  const texts = ['A table for <b>two</b>, please.', '0', '1', '2', '3', 'again']
  t.same(
    legs[0]?.heard.filter((heard) => heard.startsWith('typed')),
    texts.map((text) => `typed ${text}`),
  )
  const early = await connect(url, 'token=other')
  early.send({ type: 'text', text: 'Hello?' })
  t.match((await early.next('error')).error, { type: 'CONFLICT' })
})

test('what the call says is passed on in order; its bye ends socket and session', async (t) => {
  const { url, say, signaling, log } = await setUpStage(t)
  const client = await connect(url, 'token=good')
  const status = { type: 'status', status: 'in_progress', ts: '2026-01-01T00:00:00.000Z' }
  const line = {
    type: 'transcript',
    role: 'agent',
    text: 'Hello',
    isFinal: true,
    turnIndex: 0,
    ts: '2026-01-01T00:00:01.000Z',
  }
  say(status)
  say({ type: 'status', status: 'nonsense' })
  say(line)
  say({ type: 'interrupted' })
  say({ type: 'bye', reason: 'completed' })
  t.equal(await client.closed, 1000)
  t.same(client.inbox.slice(1), [status, line, { type: 'interrupted' }, { type: 'bye', reason: 'completed' }])
  t.equal(signaling.sessions(), 0)
  t.ok(log.lines.some(({ message }) => message === 'malformed message for a web client'))
})

test('a bye before any offer tells the call that its client hung up', async (t) => {
  const { url, bus, signaling } = await setUpStage(t)
  const event = new Promise<unknown>((resolve) => {
    bus.subscribe(subjectsOf(callId).legEvent, ({ payload }) => resolve(JSON.parse(Buffer.from(payload).toString())))
  })
  const client = await connect(url, 'token=good')
  client.send({ type: 'bye' })
  t.match(await event, { type: 'disconnected', cause: 'hung_up' })
  t.same(await client.next('bye'), { type: 'bye', reason: 'hung_up' })
  t.equal(await client.closed, 1000)
  t.equal(signaling.sessions(), 0)
})

test('the end of the leg is a bye with its reason, when the call says nothing more', async (t) => {
  const { url, legs, clock } = await setUpStage(t)
  const messages: ServerMessage[] = []
  const call = await placeWebCall({
    signalingUrl: url,
    token: 'good',
    createCaller: createWeriftCaller,
    onMessage: (message) => messages.push(message),
  })
  await call.caller.connected
  legs[0]?.end('completed')
  t.match(await call.caller.ended, /close_notify/, 'the media end says goodbye')
  t.notOk(
    messages.some(({ type }) => type === 'bye'),
    'the socket waits for what the call has to say',
  )
  await until(() => clock.pending() > 0)
  clock.advance(farewellTime)
  t.equal(await call.socketClosed, 1000)
  t.same(messages.at(-1), { type: 'bye', reason: 'completed' })
  await call.hangUp()
})

test('a client that comes back from another network restarts ICE; the answer comes again until it is used, and the call is the same', async (t) => {
  const { url, legs } = await setUpStage(t)
  const caller = createWeriftCaller()
  t.teardown(() => caller.close())
  const first = await connect(url, 'token=good')
  const { resumeToken } = await first.next('ready')
  first.send({ type: 'offer', sdp: await caller.offer() })
  await caller.accept((await first.next('answer')).sdp)
  const { payloadType } = await caller.connected
  first.socket.terminate()

  let sequenceNumber = 0
  const second = await connect(url, `resume=${resumeToken}`)
  const ready = await second.next('ready')
  const offer = await caller.offer()
  second.send({ type: 'offer', sdp: offer })
  const { sdp } = await second.next('answer')
  second.socket.terminate()
  const third = await connect(url, `resume=${ready.resumeToken}`)
  t.equal((await third.next('answer')).sdp, sdp, 'the socket may have lost it')
  await caller.accept(sdp)
  let hasEcho = false
  caller.onPacket(() => (hasEcho = true))
  // Only sound leads sound to another socket, and the first may still go by the one before.
  await until(() => {
    sequenceNumber += 1
    caller.send({ payloadType, marker: false, sequenceNumber, timestamp: 0, payload: Buffer.from('moved') })
    return hasEcho
  })
  third.send({ type: 'offer', sdp: offer })
  t.equal((await third.next('error')).error.type, 'CONFLICT', 'the same offer restarts nothing')
  t.same(legs[0]?.heard, ['negotiated opus', 'connected connected', 'negotiated opus'])
  t.equal(legs.length, 1)
})

test('a dropped socket leaves media alone; the resumed one gets a new token and what it missed', async (t) => {
  const { url, say, bus, signaling, clock } = await setUpStage(t)
  const call = await joinWell(url)
  await call.caller.connected
  call.drop()
  await until(() => clock.pending() > 0)
  for (let turnIndex = 0; turnIndex < 205; turnIndex += 1)
    say({ type: 'transcript', role: 'user', text: 'x', isFinal: true, turnIndex, ts: '2026-01-01T00:00:00.000Z' })
  await bus.flush()
  await soundReturns(call)
  t.equal(signaling.sessions(), 1)
  const back = await connect(url, `resume=${call.resumeToken}`)
  t.match(await back.next('ready'), { sessionId: 'session-1', resumeToken: 'resume-2' })
  t.equal((await back.next('transcript')).turnIndex, 5, 'the newest 200 were kept')
  for (let turnIndex = 6; turnIndex < 205; turnIndex += 1) t.equal((await back.next('transcript')).turnIndex, turnIndex)
  t.equal((await refusal(url, `resume=${call.resumeToken}`)).status, 401, 'the old token is void')
  await call.hangUp()
})

test('an answer that may have been lost with the socket comes again until media is connected', async (t) => {
  const { url } = await setUpStage(t)
  const client = await connect(url, 'token=good')
  const { resumeToken } = await client.next('ready')
  const caller = createWeriftCaller()
  t.teardown(() => caller.close())
  client.send({ type: 'offer', sdp: await caller.offer() })
  const first = await client.next('answer')
  const back = await connect(url, `resume=${resumeToken}`)
  const ready = await back.next('ready')
  t.equal((await back.next('answer')).sdp, first.sdp)
  await caller.accept(first.sdp)
  await caller.connected
  const again = await connect(url, `resume=${ready.resumeToken}`)
  again.send({ type: 'ping' })
  await again.next('pong')
  t.equal(again.inbox.length, 0)
})

test('a resume while the old socket still looks open replaces it', async (t) => {
  const { url, say } = await setUpStage(t)
  const old = await connect(url, 'token=good')
  const { resumeToken } = await old.next('ready')
  const back = await connect(url, `resume=${resumeToken}`)
  t.equal(await old.closed, 1000)
  await back.next('ready')
  say({ type: 'interrupted' })
  t.ok(await back.next('interrupted'))
})

test('a client that counts what it got misses nothing that its dead socket swallowed', async (t) => {
  const { url, say } = await setUpStage(t)
  const old = await connect(url, 'token=good')
  const { resumeToken } = await old.next('ready')
  for (let turnIndex = 0; turnIndex < 3; turnIndex += 1)
    say({ type: 'transcript', role: 'user', text: 'x', isFinal: true, turnIndex, ts: '2026-01-01T00:00:00.000Z' })
  await until(() => old.inbox.length === 3)
  const back = await connect(url, `resume=${resumeToken}&received=1`)
  await back.next('ready')
  t.equal((await back.next('transcript')).turnIndex, 1)
  t.equal((await back.next('transcript')).turnIndex, 2)
})

test('after 30 s without a socket there is nothing to come back to', async (t) => {
  const { url, clock, signaling } = await setUpStage(t)
  const client = await connect(url, 'token=good')
  const { resumeToken } = await client.next('ready')
  client.socket.terminate()
  await client.closed
  await until(() => clock.pending() > 0)
  clock.advance(resumeWindow - 1)
  t.equal(signaling.sessions(), 1)
  clock.advance(1)
  t.equal(signaling.sessions(), 0)
  t.equal((await refusal(url, `resume=${resumeToken}`)).status, 401)
  t.equal(clock.pending(), 0)
})

test('a client that comes back too late is told so, and its sound goes on: in the process that has it no second leg takes its place', async (t) => {
  const { url, clock, signaling, legs } = await setUpStage(t)
  const call = await joinWell(url)
  await call.caller.connected
  call.drop()
  await until(() => clock.pending() > 0)
  clock.advance(resumeWindow)
  t.equal(signaling.sessions(), 0)
  t.equal((await refusal(url, `resume=${call.resumeToken}`)).status, 401)
  await soundReturns(call)
  t.equal(legs.length, 1)
  await call.hangUp()
})

test('closing refuses newcomers, says bye and ends the media', async (t) => {
  const { url, signaling, legs } = await setUpStage(t)
  const silent = await connect(url, 'token=other')
  const call = await joinWell(url)
  await call.caller.connected
  await signaling.close()
  await signaling.close()
  t.equal(await call.socketClosed, 1001)
  t.match(await call.caller.ended, /close_notify/)
  t.equal(await silent.closed, 1001)
  t.equal(legs.length, 1)
  t.equal(signaling.sessions(), 0)
  t.equal((await refusal(url, 'token=good')).status, 503)
  await call.hangUp()
})

/** The buses of two processes: what somebody in the own one hears does not go to the other, as with NATS between them. */
function openTwoProcesses(t: Test): [NodeBus, NodeBus] {
  const deps = { log: createQuietLog(), clock: createHandClock() }
  const [toOne, toOther] = [createLocalBus(deps), createLocalBus(deps)]
  const open = (heard: Bus, told: Bus): NodeBus => {
    const wire = { ...told, subscribe: heard.subscribe, flushWhileUp: told.flush, quietFor: () => 0 }
    return createJoinedBus({ local: createLocalBus(deps), wire })
  }
  const buses: [NodeBus, NodeBus] = [open(toOne, toOther), open(toOther, toOne)]
  t.teardown(() => Promise.all(buses.map((bus) => bus.close())))
  return buses
}

test('a client that comes back to another process gets its call there by a new offer, and the former one lets go of it without a word', async (t) => {
  const [one, other] = openTwoProcesses(t)
  const former = await setUpStage(t, { bus: one })
  const next = await setUpStage(t, { beside: { bus: other, admission: former.admission } })
  const told: string[] = []
  former.bus.subscribe(subjectsOf(callId).legEvent, ({ payload }) => void told.push(Buffer.from(payload).toString()))
  const call = await joinWell(former.url)
  await call.caller.connected
  for (const turnIndex of [0, 1])
    former.say({
      type: 'transcript',
      role: 'user',
      text: 'x',
      isFinal: true,
      turnIndex,
      ts: '2026-01-01T00:00:00.000Z',
    })

  const back = await connect(next.url, `resume=${call.resumeToken}&received=2`)
  t.match(await back.next('ready'), { callId, sessionId: 'session-1', newOffer: true })
  await until(() => former.signaling.sessions() === 0)
  t.equal(await call.socketClosed, 1000)
  const caller = createWeriftCaller()
  t.teardown(() => caller.close())
  back.send({ type: 'offer', sdp: await caller.offer() })
  await caller.accept((await back.next('answer')).sdp)
  await caller.connected
  t.same(next.legs[0]?.heard, ['negotiated opus', 'connected connected'])
  former.say({
    type: 'transcript',
    role: 'user',
    text: 'y',
    isFinal: true,
    turnIndex: 2,
    ts: '2026-01-01T00:00:00.000Z',
  })
  t.equal((await back.next('transcript')).turnIndex, 2, 'it hears what the call says from there on')
  t.same(told, [], 'the call is told nothing of the leg that went')
  t.equal(next.signaling.sessions(), 1)
  await call.hangUp()
})

test('a process that is to go hands its browsers on: they come back elsewhere, their sound goes on until then, and the call hears of no end', async (t) => {
  const former = await setUpStage(t)
  const next = await setUpStage(t, { beside: former })
  const told: unknown[] = []
  former.bus.subscribe(subjectsOf(callId).legEvent, ({ payload }) => void told.push(payload))
  const messages: string[] = []
  const onMessage = ({ type }: ServerMessage): void => void messages.push(type)
  const options = { signalingUrl: former.url, token: 'good', createCaller: createWeriftCaller, onMessage }
  const call = await placeWebCall(options)
  await call.caller.connected
  const handingOn = former.signaling.handOn()
  t.equal(await call.socketClosed, 1012)
  t.match(await refusal(former.url, `resume=${call.resumeToken}`), { status: 503 }, 'here nobody comes back')
  await soundReturns(call)
  const resumeToken = former.admission.tokens.keys().find((token) => token.startsWith('resume-')) ?? ''
  const resume = { token: resumeToken, received: 0 }
  const back = await placeWebCall({ ...options, signalingUrl: next.url, resume })
  await handingOn
  await soundReturns(back)
  t.same([former.signaling.sessions(), next.signaling.sessions()], [0, 1])
  t.same(told, [])
  t.notOk(messages.includes('bye'))
  await Promise.all([call.caller.close(), back.hangUp()])
})

test('a browser that has lost its socket and closes its connection may have moved: only when nothing is heard of that has it hung up', async (t) => {
  const clock = createHandClock()
  const open = () => {
    const heard: string[] = []
    const peers: RtpTransportHandlers[] = []
    const createPeer = (handlers: RtpTransportHandlers): WebPeer => {
      peers.push(handlers)
      return { accept: async () => '', addCandidate: async () => undefined, close: async () => undefined } as never
    }
    const handlers = { negotiated: () => undefined, disconnected: (cause: string) => void heard.push(cause) }
    const leg = { handlers, attach: () => undefined, close: async () => void heard.push('closed') }
    const events = { legClosed: () => undefined, failed: () => undefined, gone: () => undefined }
    const media = createWebMedia(callId, { clock, createPeer, createLeg: () => leg as never, ...events })
    peers[0]!.negotiated({ codec: 'opus' } as never)
    return { media, heard, closes: () => peers[0]!.disconnected('hung_up', 'DTLS close_notify') }
  }
  const [here, moved, left] = [open(), open(), open()]
  here.closes()
  t.same(here.heard, ['hung_up'], 'with its socket it has hung up')
  for (const { media, closes } of [moved, left]) {
    media.presence('lost')
    closes()
  }
  t.same([moved.heard, left.heard], [[], []])
  await moved.media.close()
  clock.advance(1_500)
  t.same([moved.heard, left.heard], [['closed'], ['hung_up']])
})

test('a process that takes no more calls sends a client of another one away with 503, and its call goes on where it is', async (t) => {
  const former = await setUpStage(t)
  const next = await setUpStage(t, { beside: former })
  const call = await joinWell(former.url)
  await call.caller.connected
  former.admission.arrivals.refusal = new Problem('SERVICE_UNAVAILABLE', 'stopping')
  t.match(await refusal(next.url, `resume=${call.resumeToken}`), { status: 503, body: { type: 'SERVICE_UNAVAILABLE' } })
  t.same([former.signaling.sessions(), next.signaling.sessions()], [1, 0])
  await soundReturns(call)
  const back = await connect(former.url, 'resume=resume-2')
  t.notOk((await back.next('ready')).newOffer, 'where it is nobody asks')
  await call.hangUp()
})

test('who comes back to another process and offers nothing ends the call', async (t) => {
  const former = await setUpStage(t)
  const next = await setUpStage(t, { beside: former })
  const first = await connect(former.url, 'token=good')
  const { resumeToken } = await first.next('ready')
  const ended = new Promise<unknown>((resolve) => {
    next.bus.subscribe(subjectsOf(callId).legEvent, ({ payload }) =>
      resolve(JSON.parse(Buffer.from(payload).toString())),
    )
  })
  const back = await connect(next.url, `resume=${resumeToken}`)
  t.equal((await back.next('ready')).newOffer, true)
  next.clock.advance(5_000)
  t.match(await ended, { type: 'disconnected', cause: 'failed' })
  t.equal((await back.next('bye')).reason, 'client_lost')
})
