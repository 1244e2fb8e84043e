/**
 * Two processes of the service on one database and one NATS server, one of them the telephone edge, and a real telephone on the other side:
 * whichever is killed with -9, and whenever, nobody is called twice, no call is lost or rings on, and each ends once.
 */
import { once } from 'node:events'
import { test, type Test } from 'tap'
import { createNatsBus } from '../../actors/bus/nats-bus.ts'
import { replay, type LoggedFact } from '../../actors/call/machine/replay.ts'
import { systemClock } from '../../app/clock.ts'
import { dialSubject } from '../../model/dial.ts'
import type { AccountId, CallId, NodeId } from '../../model/ids.ts'
import type { RtpPacket } from '../../model/rtp-transport.ts'
import { createMediaPorts } from '../../media/rtp/media-ports.ts'
import { openPhone, type CallToPhone, type Phone, type PhoneLine } from '../../tools/callers/phone.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { createSecretBox, loadAppKey, subkey } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { natsServerPaths, startNatsServer } from '../peers/nats-server.ts'
import { freePorts } from '../peers/peer-program.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import { isOneRecording } from '../scenes/one-recording.ts'
import { startPhoneNode, type PhoneNode } from '../scenes/phone-node.ts'
import { openEdgeScene } from '../scenes/sip-edge-scene.ts'
import { createEar, openSupervisor, sendTone } from '../scenes/supervisor.ts'
import { openSipPeer, type SipPeer } from '../fake/sip-peer.ts'
import { trunkOf } from '../fake/telephony-port.ts'
import { addTrunk } from '../scenes/telephony.ts'
import { createTenant, newId } from '../scenes/tenant.ts'
import { needsTool } from '../peers/tools.ts'
import { openFakeWebhookReceiver, type FakeWebhookReceiver } from '../fake/webhook-receiver.ts'
import { inTime, until } from '../scenes/in-time.ts'

const number = '+12025550100'
const called = '+12025550199'
const sdp = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n'

type Json = Readonly<Record<string, unknown>>
type Node = PhoneNode
/** `port`: of a telephone edge; the usual one without it. */
type Start = (edge: boolean, port?: number) => Promise<Node>
type Telephone = { readonly phone: Phone; next(): Promise<CallToPhone>; rings(): number }
type Scene = {
  readonly t: Test
  readonly sql: Sql
  readonly sipPort: number
  readonly start: Start
  /** The telephone edge. */
  readonly edge: Node
  readonly telephone: Telephone
  readonly peer: SipPeer
  readonly receiver: FakeWebhookReceiver
  readonly worker: { readonly accountId: string; readonly workerId: string; readonly key: string }
}

test('a telephone call outlives whoever runs it', { timeout: 260_000 }, async (t) => {
  const nats = needsTool(t, 'nats-server', natsServerPaths)
  if (!nats) return
  const scene = await openScene(t, nats)
  const flow = (sentence: string, run: (scene: Scene) => Promise<void>) =>
    t.test(sentence, (inner) => run({ ...scene, t: inner as Test }))

  await flow('killed in the talk: a pause, and it goes on where it stopped', killsInTalk)
  await flow(
    'stopped in the talk: another node goes on with it, and the caller hears no more than a breath',
    stopsInTalk,
  )
  await flow('a supervisor speaks by a third process: whichever is killed, the caller is not left alone', supervises)
  await flow('killed while it rings: the other side rings on, once, and is talked to', killsInRinging)
  await flow('killed before the answer: who takes over answers', killsBeforeAnswer)
  await flow('killed while the caller is passed on: the passing on is heard of', killsInTransfer)
  await flow('an edge that is stopped hangs up the calls of other nodes, after its grace, and they end', stopsEdge)
  await flow('an edge that is killed: who does not come over to its heir is hung up, and all its calls end', killsEdge)
  await flow(
    'an edge that is killed: a telephone that comes over to its heir hears the agent go on, also when that one is stopped',
    killsEdgeInTalk,
  )
})

test('what was asked while the bus was away is not heard when it is back and nobody waits any more', async (t) => {
  const program = needsTool(t, 'nats-server', natsServerPaths)
  if (!program) return
  const first = await startNatsServer(program)
  t.teardown(() => first.close())
  const log = createQuietLog()
  const [asking, edge] = [
    await createNatsBus({ url: first.url, log, clock: systemClock, name: 'asks' }),
    await createNatsBus({ url: first.url, log, clock: systemClock, name: 'edge' }),
  ]
  t.teardown(() => Promise.all([asking.close(), edge.close()]))
  const heard: string[] = []
  edge.subscribe(dialSubject, (message) => {
    heard.push(new TextDecoder().decode(message.payload))
    message.respond(message.payload)
  })
  await edge.flush()
  const both = (message: string) => log.lines.filter((line) => line.message === message).length === 2
  await first.close()
  await until(() => both('bus connection lost'))
  const ask = (text: string, timeout: number) =>
    asking.request(dialSubject, new TextEncoder().encode(text), { timeout })
  await t.rejects(ask('late', 100), { name: 'BusAway' })
  // Who waits for the bus may be answered, or find the other one not back yet.
  const patient = ask('patient', 10_000).catch(() => null)
  const second = await startNatsServer(program, first.port)
  t.teardown(() => second.close())
  await until(() => both('bus connection is back'))
  await patient
  const isHeard = () => ask('last', 5_000).then(Boolean, () => false)
  await until(isHeard)
  t.notOk(heard.includes('late'), heard.join(' '))
})

test('a request to dial whose call is over, or has another actor, calls nobody and tells nobody', async (t) => {
  const { dial, telephony, peer, bus, edge, log } = await openEdgeScene(t)
  telephony.trunks = [trunkOf({ gateways: [{ host: '127.0.0.1', port: peer.port }] })]
  const told: string[] = []
  bus.subscribe('call.*.leg.event', ({ payload }) => void told.push(new TextDecoder().decode(payload)))
  telephony.leave = 'passed_on'
  const late = await dial()
  t.match(late.reply, { type: 'dialing' })
  await until(() => edge.health().calls === 0)
  t.same(told, [])
  telephony.leave = 'was_dialed'
  await dial()
  await until(() => told.length > 0)
  t.match(JSON.parse(told[0] ?? ''), { type: 'dial_failed', outcome: { reason: 'sip_call_failed' } })
  t.same(telephony.carried, [], 'no trunk was asked')
  t.equal(log.lines.filter(({ message }) => message.includes('nobody was called')).length, 2)
})

async function openScene(t: Test, natsProgram: string): Promise<Scene> {
  const nats = await startNatsServer(natsProgram)
  t.teardown(() => nats.close())
  const { sql, dataDir } = await openTestDatabase(t)
  const sipPort = await freePorts(1)
  const start: Start = (edge, port = sipPort) => startPhoneNode(t, sql, [dataDir, nats.url, edge ? String(port) : ''])
  const receiver = await openFakeWebhookReceiver(t)
  const telephone = await openTelephone(t)
  const peer = await openSipPeer(sipPort)
  t.teardown(() => peer.close())
  const worker = await openWorker(sql, dataDir, { receiver, phonePort: telephone.phone.port })
  return { t, sql, sipPort, start, edge: await start(true), telephone, peer, receiver, worker }
}

async function openTelephone(t: Test): Promise<Telephone> {
  const log = createQuietLog()
  const now = () => performance.now()
  const ticker = createTicker({ now, after: (ms, action) => systemClock.after(ms, action) })
  const media = createMediaPorts({ bindAddress: '127.0.0.1', externalAddress: null, portRange: [0, 0], now, log })
  const calls: CallToPhone[] = []
  let [count, notice] = [0, () => {}]
  const phone = await openPhone({
    address: '127.0.0.1',
    port: 0,
    protocol: 'udp',
    media,
    ticker,
    clock: systemClock,
    log,
    wishes: { codecs: ['PCMU'], encryption: 'none' },
    onCall(call) {
      count += 1
      calls.push(call)
      notice()
    },
  })
  t.teardown(async () => {
    await phone.close()
    await media.close()
    ticker.close()
  })
  return {
    phone,
    rings: () => count,
    async next() {
      for (;;) {
        const call = calls.shift()
        if (call) return call
        await new Promise<void>((resolve) => (notice = resolve))
      }
    },
  }
}

async function openWorker(
  sql: Sql,
  dataDir: string,
  { receiver, phonePort }: { receiver: FakeWebhookReceiver; phonePort: number },
) {
  const redirect = { serviceDownRedirectEnabled: true, serviceDownRedirectNumber: '+12025550111' }
  const tenant = await createTenant(sql, { slug: 'acme', script: 'Count.', config: redirect })
  const { accountId, workerId } = tenant
  await sql`
    update workers set inbound_phone_number = ${number}, outbound_phone_number = ${number} where id = ${workerId}`
  const gateways = [{ host: '127.0.0.1', port: phonePort }]
  await addTrunk(sql, tenant, { gateways, allowedAddresses: ['127.0.0.1'], qualify: false })
  const { key } = await createApiKey(sql, { accountId, name: 'test', newId, now: Date.now() })
  const box = createSecretBox(subkey(await loadAppKey({ appSecret: null, dataDir }), 'secrets'))
  // The first that fits is asked the question of a call.
  for (const [at, eventType] of [
    ['/hook', 'call.worker_request'],
    ['/all', '*'],
  ] as const) {
    const request = { eventType, url: receiver.url(at), timeoutMs: 10_000 }
    const { signingSecret } = await createSubscription(sql, box, { accountId, request, newId, now: Date.now() })
    receiver.trust(at, signingSecret ?? '')
  }
  receiver.script('/all', [{ status: 200, body: '{}' }], { forever: true })
  receiver.script('/hook', [{ status: 200, body: '{}' }], { forever: true })
  return { accountId, workerId, key }
}

/** By REST of this node, which runs the call: any node may have given it its place, and then it is moved. */
async function dial(scene: Scene, node: Node): Promise<CallId> {
  const { accountId, workerId, key } = scene.worker
  const answer = await fetch(`${node.url}/v1/accounts/${accountId}/phone-calls`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ workerId, phoneNumber: called }),
  })
  const { id: callId } = (await answer.json()) as { id: CallId }
  const { owner } = await until(
    async () =>
      (await scene.sql<{ owner: NodeId }[]>`select owner from calls where id = ${callId} and owner is not null`)[0],
  )
  if (owner !== node.id) await moveTo(scene, callId, node)
  return callId
}

const ownedBy = ({ sql }: Scene, callId: CallId, { id }: Node) =>
  until(async () => (await sql`select from calls where id = ${callId} and owner = ${id}`).count === 1)

/** The one that is running. */
async function theCall(sql: Sql): Promise<CallId> {
  const { id } = await until(async () => (await sql<{ id: CallId }[]>`select id from calls where not finished`)[0])
  return id
}

/** A call that this node has not got: its actor is fenced, and this node finds it as its own. */
async function moveTo(scene: Scene, callId: CallId, node: Node): Promise<void> {
  const { sql } = scene
  const [before] = await sql<
    { epoch: number }[]
  >`update calls set owner = ${node.id} where id = ${callId} returning epoch`
  await until(async () => (await sql`select from calls where id = ${callId} and epoch > ${before!.epoch}`).count === 1)
}

/** The other side of a call with sound: sends silence, counts what is not. */
function listen(line: PhoneLine, t: Test) {
  let loud = 0
  let loudAt = performance.now()
  /** Ms without sound, of those longer than a packet. */
  const silences: number[] = []
  let [sequenceNumber, timestamp] = [0, 0]
  line.onPacket(({ payload }: RtpPacket) => {
    if (!payload.some((byte) => byte !== 0xff && byte !== 0x7f)) return
    loud += 1
    const at = performance.now()
    if (at - loudAt > 100) silences.push(at - loudAt)
    loudAt = at
  })
  const payload = new Uint8Array(160).fill(0xff)
  const timer = setInterval(() => {
    line.send({ payloadType: 0, marker: false, sequenceNumber, timestamp, payload })
    ;[sequenceNumber, timestamp] = [(sequenceNumber + 1) & 0xffff, timestamp + 160]
  }, 20)
  t.teardown(() => clearInterval(timer))
  void line.ended.then(() => clearInterval(timer))
  return {
    loud: () => loud,
    silences,
    async heardMore(packets = 30) {
      const before = loud
      await until(() => loud >= before + packets)
    },
  }
}

async function endOf({ t, sql, receiver }: Scene, callId: CallId) {
  for (;;) {
    const { data } = (await receiver.next('call.ended', '/all')) as { data: Json }
    if (data['callId'] !== callId) throw new Error('another call ended')
    await until(async () => (await sql`select from deliveries where status = 'pending'`).count === 0)
    // A node that was killed may have sent what it could not write down any more: the same event, by its id.
    const events = new Map(receiver.deliveries.map((one) => [one.eventId, one]))
    const told = [...events.values()].filter((one) => (one.data as Json)['callId'] === callId && one.path === '/all')
    t.equal(told.filter(({ type }) => type === 'call.ended').length, 1, 'it ends once')
    const statuses = told.filter(({ type }) => type === 'call.status_update').map((one) => (one.data as Json)['status'])
    t.equal(new Set(statuses).size, statuses.length, `no status twice: ${statuses.join(', ')}`)
    t.equal((await sql`select from calls where not finished`).count, 0)
    return { ...data, statuses } as Json & { statuses: unknown[] }
  }
}

async function killsInTalk(scene: Scene): Promise<void> {
  const { t, sql, start, edge, telephone } = scene
  const other = await start(false)
  const callId = await dial(scene, other)
  const line = await (await telephone.next()).answer()
  const ear = listen(line, t)
  await ear.heardMore()
  await ownedBy(scene, callId, other)
  await other.kill()
  ear.silences.length = 0
  const began = performance.now()
  await ownedBy(scene, callId, edge)
  const owned = Math.round(performance.now() - began)
  await ear.heardMore()
  const longest = Math.round(Math.max(0, ...ear.silences))
  t.comment(`owned by another after ${owned} ms, the longest silence was ${longest} ms`)
  t.ok(longest < 3_000)
  const said = () => sql`select from transcript_turns where call_id = ${callId} and role = 'agent'`
  await until(async () => (await said()).count >= 2)
  await line.hangUp()
  const { transcript, statuses, status } = await endOf(scene, callId)
  t.equal(status, 'completed')
  t.same(statuses, ['queued', 'in_progress', 'completed'])
  const counted = (transcript as { text: string }[]).map(({ text }) => Number(/\d+/.exec(text)?.[0]))
  t.ok(counted.length >= 2, `said ${counted.join(' ')}`)
  t.same(
    counted,
    counted.toSorted((a, b) => a - b),
    'in order',
  )
  t.equal(new Set(counted).size, counted.length, 'and nothing twice')
}

/** As a deploy does. */
async function stopsInTalk(scene: Scene): Promise<void> {
  const { t, start, edge, telephone } = scene
  const other = await start(false)
  const callId = await dial(scene, other)
  const line = await (await telephone.next()).answer()
  const ear = listen(line, t)
  await ear.heardMore()
  await ownedBy(scene, callId, other)
  ear.silences.length = 0
  const exit = once(other.child, 'exit')
  other.child.send('close')
  await ownedBy(scene, callId, edge)
  await ear.heardMore(60)
  t.same(await exit, [0, null])
  // The engine says one sentence right behind the other; a gap of less than 100 ms is none.
  t.comment(`the longest silence was ${Math.round(Math.max(0, ...ear.silences))} ms`)
  t.ok(Math.max(0, ...ear.silences) < 2_000, ear.silences.map(Math.round).join(' '))
  await line.hangUp()
  const { transcript, statuses, status } = await endOf(scene, callId)
  t.equal(status, 'completed')
  t.same(statuses, ['queued', 'in_progress', 'completed'])
  const counted = (transcript as { text: string }[]).map(({ text }) => Number(/\d+/.exec(text)?.[0]))
  t.same(
    counted,
    counted.map((_, index) => index),
    'every sentence, once',
  )
}

/** Leg, actor and the line of the supervisor are in three processes; a second one listens in that of the leg. */
async function supervises(scene: Scene): Promise<void> {
  const { t, sql, start, edge, telephone, worker } = scene
  const accountId = worker.accountId as AccountId
  await sql`update accounts set config = config || '{"supervisionEnabled": true}' where id = ${accountId}`
  const [actor, door] = [await start(false), await start(false)]
  const callId = await dial(scene, actor)
  const line = await (await telephone.next()).answer()
  const ear = createEar()
  line.onPacket(ear.take)
  const fallSilent = sendTone('caller', line.send)
  t.teardown(fallSilent)
  await ear.hears('agent')
  await ownedBy(scene, callId, actor)
  const joins = (email: string, { url }: Node) => openSupervisor(t, { sql, url, accountId, callId, email })
  const far = await joins('far@example.com', door)
  const near = await joins('near@example.com', edge)
  for (const { ear: theirs } of [far, near]) {
    await theirs.hears('agent')
    await theirs.hears('caller')
  }
  t.equal(ear.count('supervisor'), 0, 'nobody hears who listens')

  t.equal((await far.takeOver()).status, 204)
  await ear.hears('supervisor')
  t.match(await near.takeOver(), { status: 409, text: /Somebody else speaks with the caller/ })
  const silenced = ear.count('agent')
  ear.longestSilence()
  await far.ear.hears('caller')
  await near.ear.hears('supervisor')
  const understood = async () =>
    (await sql`select from transcript_turns where call_id = ${callId} and role = 'user'`).count
  const before = await until(understood)
  await actor.kill()
  await until(async () => (await sql`select from calls where id = ${callId} and owner <> ${actor.id}`).count === 1)
  await ear.hears('supervisor')
  await until(async () => (await understood()) > before + 1)
  t.comment(`its actor was killed: the longest silence was ${ear.longestSilence()} ms`)
  t.equal(ear.count('agent'), silenced, 'whoever took the call over leaves it to who speaks')

  t.equal((await far.giveBack()).status, 204)
  await ear.hears('agent')
  t.equal((await near.whisper('Be brief.')).status, 204)
  t.equal((await far.takeOver()).status, 204)
  await ear.hears('supervisor')
  if ((await sql`select from calls where id = ${callId} and owner = ${door.id}`).count > 0)
    await moveTo(scene, callId, edge)
  ear.longestSilence()
  await door.kill()
  await ear.hears('agent')
  t.comment(`the supervisor's process was killed: the longest silence was ${ear.longestSilence()} ms`)
  t.equal((await near.takeOver()).status, 204, 'and another one may speak')
  await ear.hears('supervisor')
  await line.hangUp()
  fallSilent()
  await inTime('the end of the line of who spoke', near.ended)

  const { transcript, status } = await endOf(scene, callId)
  t.equal(status, 'completed')
  // Of a sentence that was cut off the number may be missing.
  const said = (transcript as { text: string }[]).map(({ text }) => text)
  t.equal(said.at(-1), 'Bye.', 'what the caller said to them last is heard out')
  const counted = said.flatMap((text) => /\d+/.exec(text)?.map(Number) ?? [])
  t.ok(counted.length >= 2, counted.join(' '))
  t.same(
    counted,
    counted.toSorted((a, b) => a - b),
    'the agent went on behind what it had said',
  )
  const log = (await listCallEvents(sql, callId)) as readonly LoggedFact[]
  t.same(replay(log).differences, [])
  const steps = log.flatMap(({ event, ignored }) => (ignored ? [] : [event as { type: string; id?: string }]))
  t.match(
    steps.filter(({ type }) => /^(?:supervisor|voice|whispered)/.test(type)),
    [
      { type: 'supervisor_joined', id: far.id },
      { type: 'supervisor_joined', id: near.id },
      { type: 'voice_taken', id: far.id },
      { type: 'voice_returned', id: far.id },
      { type: 'whispered', userId: near.userId },
      { type: 'voice_taken', id: far.id },
      { type: 'voice_lost' },
      { type: 'voice_taken', id: near.id },
    ],
  )
  const audited = await sql<{ action: string; userId: string; result: string }[]>`
    select action, user_id, result from audit_entries where account_id = ${accountId} and action like 'supervision.%' order by id`
  t.same(
    audited.map(({ action, userId, result }) => [action.split('.')[1], userId === far.userId ? 'far' : 'near', result]),
    [
      ['listen', 'far', 'success'],
      ['listen', 'near', 'success'],
      ['take_over', 'far', 'success'],
      ['take_over', 'near', 'error'],
      ['give_back', 'far', 'success'],
      ['whisper', 'near', 'success'],
      ['take_over', 'far', 'success'],
      ['take_over', 'near', 'success'],
    ],
  )
}

async function killsInRinging(scene: Scene): Promise<void> {
  const { t, start, edge, telephone, receiver } = scene
  const before = telephone.rings()
  const other = await start(false)
  const callId = await dial(scene, other)
  const ringing = await telephone.next()
  await ownedBy(scene, callId, other)
  await other.kill()
  // Nobody hears it but the leg.
  ringing.ring()
  await ownedBy(scene, callId, edge)
  const told = async () => (await receiver.next('call.status_update', '/all')).data as Json
  for (let status = await told(); status['callId'] !== callId || status['status'] !== 'ringing';) status = await told()
  const line = await ringing.answer()
  const ear = listen(line, t)
  await ear.heardMore()
  await line.hangUp()
  const ended = await endOf(scene, callId)
  t.equal(ended['status'], 'completed')
  t.same(ended.statuses, ['queued', 'ringing', 'in_progress', 'completed'])
  t.equal(telephone.rings(), before + 1, 'it was called once')
}

async function killsBeforeAnswer(scene: Scene): Promise<void> {
  const { t, sql, start, edge, telephone, sipPort, receiver } = scene
  const other = await start(false)
  receiver.script('/hook', [{ status: 200, body: '{}', held: true }], { forever: true })
  const calling = telephone.phone.call(`sip:${number}@127.0.0.1:${sipPort}`, called)
  const callId = await theCall(sql)
  const asked = async () => {
    while (((await receiver.next('call.worker_request', '/hook')).data as Json)['callId'] !== callId);
  }
  await asked()
  await moveTo(scene, callId, other)
  await asked()
  await other.kill()
  await ownedBy(scene, callId, edge)
  await asked()
  receiver.script('/hook', [{ status: 200, body: '{}' }], { forever: true })
  receiver.release()
  const line = await calling
  await listen(line, t).heardMore()
  await line.hangUp()
  const ended = await endOf(scene, callId)
  t.equal(ended['status'], 'completed')
  t.same(ended.statuses, ['ringing', 'in_progress', 'completed'])
}

async function killsInTransfer(scene: Scene): Promise<void> {
  const { t, sql, start, peer, worker } = scene
  const other = await start(false)
  await sql`update documents set content = 'mute' where account_id = ${worker.accountId}`
  const call = peer.invite({ to: `sip:${number}@127.0.0.1`, body: sdp })
  let answer = await call.answered()
  while (answer.status < 200) answer = await call.answered()
  t.equal(answer.status, 200)
  call.ack()
  const refer = await peer.request('REFER')
  const callId = await theCall(sql)
  await moveTo(scene, callId, other)
  peer.answer(refer, 202)
  await other.kill()
  const notify = { headers: ['Event: refer', 'Subscription-State: terminated', 'Content-Type: message/sipfrag'] }
  const heard = await call.request('NOTIFY', { ...notify, body: 'SIP/2.0 200 OK' })
  t.equal(heard.status, 200, 'the leg hears it without an actor')
  // Who takes over has nothing left to do but to end the call, and owns it no longer than that.
  peer.answer(await peer.request('BYE'), 200)
  const ended = await endOf(scene, callId)
  t.match(ended, { status: 'failed', failedReason: 'voice_session_unavailable' })
  const [{ providerStatus }] = (await sql`select provider_status from calls where id = ${callId}`) as unknown as [
    Json & { providerStatus: string },
  ]
  t.equal(providerStatus, '200 OK')
  await sql`update documents set content = 'Count.' where account_id = ${worker.accountId}`
}

/** The edge has a grace of 2 s. */
async function stopsEdge(scene: Scene): Promise<void> {
  const { t, start, edge, telephone, peer } = scene
  const other = await start(false)
  const callId = await dial(scene, other)
  const line = await (await telephone.next()).answer()
  await listen(line, t).heardMore()
  await ownedBy(scene, callId, other)
  const exit = once(edge.child, 'exit')
  const closing = once(edge.child, 'message')
  edge.child.send('close')
  await closing
  t.equal((await peer.invite({ to: `sip:${number}@127.0.0.1`, body: sdp }).answered()).status, 503, 'no new calls')
  t.equal(await line.ended.then(() => 'BYE'), 'BYE')
  t.same(await exit, [0, null])
  const ended = await endOf(scene, callId)
  // The talk was cut off, and nobody who talked wanted that.
  t.match(ended, { status: 'failed', endedBy: 'service', recordingAvailable: true })
  await other.kill()
}

async function killsEdge(scene: Scene): Promise<void> {
  const { t, sql, start, peer, telephone } = scene
  const other = await start(false)
  const edge = await start(true)
  const talk = peer.invite({ to: `sip:${number}@127.0.0.1`, body: sdp })
  let answer = await talk.answered()
  while (answer.status < 200) answer = await talk.answered()
  talk.ack()
  await until(async () => (await sql`select from calls where progress = 'in_progress' and outcome is null`).count === 1)
  const talking = await theCall(sql)
  await moveTo(scene, talking, other)
  const rung = await dial(scene, other)
  const before = telephone.rings()
  const ringing = await telephone.next()
  ringing.ring()
  await until(async () => (await sql`select from calls where id = ${rung} and progress = 'ringing'`).count === 1)
  await edge.kill()
  const killedAt = performance.now()
  const since = () => Math.round(performance.now() - killedAt)
  const successor = await start(true)
  // It is asked over if its heir begins before the call has been given up, and refuses.
  peer.request('INVITE').then(
    (invite) => peer.answer(invite, 488),
    () => undefined,
  )
  const bye = await peer.request('BYE')
  t.equal(headerOf(bye, 'Call-ID'), talk.callId)
  t.equal(headerOf(bye, 'From'), headerOf(answer, 'To'), 'in the name of the dead one')
  t.comment(`the peer was told after ${since()} ms`)
  t.equal((await talk.request('BYE')).status, 481)
  t.equal((await talk.reinvite({ body: sdp })).status, 481)
  peer.answer(bye, 200)
  await until(async () => (await sql`select from calls where id = ${talking} and outcome is not null`).count === 1)
  t.comment(`its call was over after ${since()} ms`)
  await until(async () => (await sql`select from sip_dialogs`).count === 0)
  await until(async () => (await sql`select from calls where not finished`).count === 0)
  const ends = await sql`select id, outcome from calls where id = any(${[talking, rung]}) order by id`
  t.match(ends, [{ outcome: 'failed' }, { outcome: 'failed' }])
  t.ok(telephone.rings() <= before + 1, 'nobody is called again')
  ringing.refuse(486)
  await successor.kill()
  await other.kill()
}

/** Two calls: the actor of one is in another process, that of the other dies with its telephone's edge. */
async function killsEdgeInTalk(scene: Scene): Promise<void> {
  const { t, sql, start, telephone } = scene
  const [edge, other] = [await start(true), await start(false)]
  const calls = []
  for (const owner of [other, edge]) {
    const callId = await dial(scene, owner)
    const line = await (await telephone.next()).answer()
    const ear = listen(line, t)
    await ear.heardMore()
    await ownedBy(scene, callId, owner)
    calls.push({ callId, line, ear })
  }
  const rings = telephone.rings()
  await until(async () => (await sql`select from sip_dialogs where dialog ? 'talk'`).count === calls.length)
  // What was placed is the first one's.
  const heir = await start(true, await freePorts(1))
  await edge.kill()
  const killedAt = performance.now()
  for (const { ear } of calls) ear.silences.length = 0
  await until(async () => (await sql`select from sip_dialogs where node_id = ${heir.id}`).count === calls.length)
  t.comment(`the dialogs were its heir's after ${Math.round(performance.now() - killedAt)} ms`)
  for (const { ear } of calls) await ear.heardMore(60)
  const silent = calls.map(({ ear }) => Math.round(Math.max(0, ...ear.silences)))
  t.comment(`they heard nothing for ${silent.join(' and ')} ms`)
  t.ok(Math.max(...silent) < 8_000)
  t.same(await sql`select outcome from calls where not finished`, [{ outcome: null }, { outcome: null }])

  // It is stopped, and its time to drain passes: who talks there goes on by yet another one.
  const next = await start(true, await freePorts(1))
  for (const { callId } of calls) {
    const isThere = (await sql`select from calls where id = ${callId} and owner = ${other.id}`).count === 1
    if (!isThere) await moveTo(scene, callId, other)
  }
  const stopped = once(heir.child, 'exit')
  for (const { ear } of calls) ear.silences.length = 0
  heir.child.send('close')
  await until(async () => (await sql`select from sip_dialogs where node_id = ${next.id}`).count === calls.length)
  for (const { ear } of calls) await ear.heardMore(60)
  t.comment(`then for ${calls.map(({ ear }) => Math.round(Math.max(0, ...ear.silences))).join(' and ')} ms`)
  t.same(await stopped, [0, null])
  await Promise.all(calls.map(({ line }) => line.hangUp()))
  for (const { callId } of calls) {
    const [call] = await until(async () => {
      const rows = await sql<{ outcome: string; endedBy: string }[]>`
        select outcome, ended_by from calls where id = ${callId} and finished`
      return rows.length > 0 && rows
    })
    t.match(call, { outcome: 'completed', endedBy: 'caller' })
    const turns = await sql<{ text: string }[]>`
      select text from transcript_turns where call_id = ${callId} and role = 'agent' order by turn_index`
    // One that was cut off may have no number.
    const counted = turns.flatMap(({ text }) => /\d+/.exec(text)?.[0] ?? []).map(Number)
    t.same(
      counted,
      [...new Set(counted)].toSorted((a, b) => a - b),
      `in order, and nothing twice: ${counted.join(' ')}`,
    )
    // All three edges that had its telephone recorded a part.
    await isOneRecording(t, { sql, url: next.url, ...scene.worker, callId, processes: 3 })
  }
  await until(async () => (await sql`select from sip_dialogs`).count === 0)
  t.equal(telephone.rings(), rings, 'nobody is called again')
  await Promise.all([next.kill(), other.kill()])
}
