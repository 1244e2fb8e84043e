/**
 * The rules of the SIP stack, over every server that it speaks with: the embedded one, and a drachtio-server where TEST_DRACHTIO_URL names one
 * (`tcp://:<secret>@127.0.0.1:9022`, listening for SIP by UDP on loopback, and by default settings).
 */
import { once } from 'node:events'
import net from 'node:net'
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { readConfig } from '../../app/config.ts'
import type { InvitationResult } from '../../sip/invitation.ts'
import { readCredentials, provesPassword } from '../../sip/server/message/digest.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import type { SipRequest, SipResponse } from '../../sip/server/message/message.ts'
import { createSipServer } from '../../sip/server/sip-server.ts'
import { requestWithin } from '../../sip/request-within.ts'
import { connectStack, type Control, type SipStack, type StackDeps } from '../../sip/stack.ts'
import type { InviteOptions, Reply, RequestIn, SipDialog } from '../../sip/stack-types.ts'
import { openControlRelay } from '../fake/control-relay.ts'
import { createHandClock, type HandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openSipPeer, type SipPeer } from '../fake/sip-peer.ts'
import { sdp } from '../fake/sip-wire.ts'
import { bodyText } from '../scenes/body-text.ts'
import { inTime, until } from '../scenes/in-time.ts'

type Arrived = { readonly request: RequestIn; readonly reply: Reply }

type Stage = {
  readonly stack: SipStack
  /** Of the stack; the server lives in real time. */
  readonly clock: HandClock
  readonly peer: SipPeer
  /** Of the peer. */
  readonly uri: string
  readonly control: Control
  /** The next request that came to a route. */
  arrived(): Promise<Arrived>
  /** The stack loses its connection; the server does not know of it. */
  cut(): void
  /** Another stack at the same server, closed with the test. */
  connect(deps: Partial<StackDeps>): Promise<SipStack>
}

/** Gives where its app connects. */
type OpenServer = (t: Test) => Promise<Control>

const openEmbedded: OpenServer = async (t) => {
  const listen = [{ protocol: 'udp', address: '127.0.0.1', port: 0 } as const]
  const server = await createSipServer({ listen, clock: systemClock, log: createQuietLog() })
  t.teardown(() => server.close())
  return server.control
}

const drachtio = readConfig({ DRACHTIO_URL: process.env['TEST_DRACHTIO_URL'] }).sip?.drachtio ?? null

/** Each with the reason why it cannot be tried here, if there is one. */
const servers: Readonly<Record<string, { readonly open: OpenServer; reasonAgainst(): Promise<string | null> }>> = {
  'the embedded server': { open: openEmbedded, reasonAgainst: async () => null },
  'a drachtio-server': { open: async () => drachtio!, reasonAgainst: async () => reasonAgainst(drachtio) },
}

async function reasonAgainst(control: Control | null): Promise<string | null> {
  if (control === null) return 'TEST_DRACHTIO_URL names none'
  const socket = net.connect(control.port, control.host)
  const isThere = await once(socket, 'connect').then(Boolean, () => false)
  socket.destroy()
  return isThere ? null : `nobody listens at ${control.host} port ${control.port}`
}

async function openStage(t: Test, server: Control): Promise<Stage> {
  const relay = await openControlRelay(server)
  t.teardown(() => relay.close())
  const clock = createHandClock()
  const waiting: Arrived[] = []
  const arrive = (request: RequestIn, reply: Reply): void => void waiting.push({ request, reply })
  const connect = async (deps: Partial<StackDeps>): Promise<SipStack> => {
    const log = createQuietLog()
    const stack = await connectStack({ control: relay.control, routes: {}, clock, log, connectWithin: 10_000, ...deps })
    t.teardown(() => closed(stack, clock))
    return stack
  }
  const stack = await connect({ routes: { invite: arrive, options: arrive, message: arrive } })
  const peer = await openSipPeer(portOf(stack))
  t.teardown(() => peer.close())
  const stage: Stage = {
    stack,
    clock,
    peer,
    uri: `sip:callee@127.0.0.1:${peer.port}`,
    control: relay.control,
    arrived: () => until(() => waiting.shift()),
    cut: relay.cut,
    connect,
  }
  await routed(stage)
  return stage
}

/** Its farewells are given up by the hand clock. */
async function closed(stack: SipStack, clock: HandClock): Promise<void> {
  const closing = stack.close()
  clock.advance(10_000)
  await closing
}

const portOf = (stack: SipStack): number =>
  Number(/udp\/[^,]*:(\d+)$/.exec(stack.listening().find((place) => place.startsWith('udp/')) ?? '')?.[1])

/** Routes are asked for when the connection is there: what is asked for behind them is answered behind them. */
async function routed({ stack, peer, uri }: Stage): Promise<void> {
  const asked = stack.request(uri, { method: 'OPTIONS', headers: {} })
  peer.answer(await peer.request('OPTIONS'), 200)
  await asked
}

/** The next MESSAGE that the peer gets is this one: nothing was sent before it. */
async function nothingWasSent(t: Test, { stack, peer, uri }: Stage): Promise<void> {
  const asked = stack.request(uri, { method: 'MESSAGE', headers: { Subject: 'the first' } })
  const request = await peer.request('MESSAGE')
  t.equal(headerOf(request, 'Subject'), 'the first')
  peer.answer(request, 200)
  await asked
}

/** What is told of one invitation. */
function invite({ stack, uri }: Stage, options: Partial<InviteOptions> = {}) {
  const told: string[] = []
  const { promise: ended, resolve } = Promise.withResolvers<InvitationResult>()
  const invitation = stack.invite(
    uri,
    { headers: {}, localSdp: sdp(), ...options },
    { provisional: (status, reason) => void told.push(`${status} ${reason}`), ended: resolve },
  )
  return { ...invitation, told, ended: inTime('the end of an invitation', ended) }
}

/** A call of ours that the peer took, and the INVITE as it saw it. */
async function placed(t: Test, stage: Stage): Promise<{ dialog: SipDialog; request: SipRequest }> {
  const { ended } = invite(stage)
  const request = await stage.peer.request('INVITE')
  stage.peer.answer(request, 200, { reason: 'OK', body: sdp(4002) })
  await stage.peer.request('ACK')
  const result = await ended
  t.equal(result.kind, 'answered')
  if (result.kind !== 'answered') throw new Error('the peer took it')
  return { dialog: result.dialog, request }
}

/** A call of the peer that we took. */
async function taken(t: Test, stage: Stage, headers: readonly string[] = []) {
  const call = stage.peer.invite({ body: sdp(4004), headers })
  const { request, reply } = await stage.arrived()
  const { promise, resolve } = Promise.withResolvers<{ dialog: SipDialog } | { details: string }>()
  stage.stack.accept(request, reply, sdp(), resolve)
  const answer = await call.answered()
  call.ack()
  const accepted = await inTime('a dialog', promise)
  t.ok('dialog' in accepted)
  if (!('dialog' in accepted)) throw new Error(accepted.details)
  return { call, answer, dialog: accepted.dialog }
}

const rules: Readonly<Record<string, (t: Test, stage: Stage) => Promise<void>>> = {
  'a stack is connected and says where its server listens': async (t, { stack }) => {
    t.ok(stack.isConnected())
    t.ok(portOf(stack) > 0)
    for (const place of stack.listening()) t.match(place, /^(udp|tcp|tls|ws|wss)\/\S+:\d+$/)
  },

  'a wrong secret is refused, and a server that is not there is waited for as long as was said': async (t, stage) => {
    const { control, clock, connect } = stage
    await t.rejects(connect({ control: { ...control, secret: 'wrong' } }), /refused the secret/)
    const nobody = net.createServer().listen(0, '127.0.0.1')
    await once(nobody, 'listening')
    const { port } = nobody.address() as net.AddressInfo
    await new Promise((resolve) => nobody.close(resolve))
    const waiting = t.rejects(connect({ control: { ...control, port } }), /is not there/)
    clock.advance(10_000)
    await waiting
  },

  'a request outside calls is answered with whatever its final answer is': async (t, { stack, peer, uri }) => {
    for (const status of [200, 404, 503]) {
      const asked = stack.request(uri, { method: 'OPTIONS', headers: { Subject: 'a word' } })
      const request = await peer.request('OPTIONS')
      t.equal(request.uri, uri)
      t.equal(headerOf(request, 'Subject'), 'a word')
      peer.answer(request, status, { headers: ['X-Peer: yes'] })
      const answer = await asked
      t.match(answer, { kind: 'answered', response: { status } })
      if (answer.kind === 'answered') t.equal(answer.response.get('x-peer'), 'yes')
    }
  },

  'a request that nobody answers is silence after its time': async (t, { stack, peer, uri, clock }) => {
    const asked = stack.request(uri, { method: 'MESSAGE', headers: {} }, 5_000)
    await peer.request('MESSAGE')
    clock.advance(5_000)
    t.same(await asked, { kind: 'silence', details: 'no answer in time' })
  },

  'what may not be reached is not sent to': async (t, stage) => {
    const { uri } = stage
    const stack = await stage.connect({ mayReach: () => false })
    const details = '127.0.0.1 is a private address; name it in SIP_ALLOW_HOSTS'
    t.same(await stack.request(uri, { method: 'MESSAGE', headers: {} }), { kind: 'silence', details })
    const { ended } = invite({ ...stage, stack })
    t.same(await ended, { kind: 'unreachable', details })
    t.match(await stack.request('sip:x', { method: 'MESSAGE', headers: {}, proxy: uri }), { kind: 'silence', details })
    await nothingWasSent(t, stage)
  },

  'a challenge is answered with the password, of its realm only; a wrong one is not tried again': async (t, stage) => {
    const { stack, peer, uri } = stage
    const challenge = (realm: string, nonce: string) => ({
      headers: [`WWW-Authenticate: Digest realm="${realm}", nonce="${nonce}", qop="auth"`],
    })
    const auth = { username: 'alice', password: 'secret', realm: 'pbx' }
    const ask = () => stack.request(uri, { method: 'MESSAGE', headers: {}, auth })
    const good = ask()
    peer.answer(await peer.request('MESSAGE'), 401, challenge('pbx', 'n1'))
    const proved = await peer.request('MESSAGE')
    const credentials = readCredentials(headerOf(proved, 'Authorization') ?? '')
    t.ok(credentials && provesPassword(credentials, 'MESSAGE', 'secret'))
    peer.answer(proved, 200)
    t.match(await good, { kind: 'answered', response: { status: 200 } })
    const wrong = ask()
    peer.answer(await peer.request('MESSAGE'), 401, challenge('pbx', 'n2'))
    peer.answer(await peer.request('MESSAGE'), 401, challenge('pbx', 'n3'))
    t.match(await wrong, { kind: 'answered', response: { status: 401 } })
    const other = ask()
    peer.answer(await peer.request('MESSAGE'), 401, challenge('another', 'n4'))
    t.match(await other, { kind: 'answered', response: { status: 401 } })
    const { ended } = invite(stage, { auth })
    peer.answer(await peer.request('INVITE'), 401, challenge('pbx', 'n5'))
    const again = await peer.request('INVITE')
    t.match(headerOf(again, 'Authorization'), /username="alice"/)
    peer.answer(again, 486)
    t.match(await ended, { kind: 'refused', status: 486 })
    await nothingWasSent(t, stage)
  },

  'an invitation tells what rings, ends with a dialog, and is hung up by a BYE with its reason': async (t, stage) => {
    const { stack, peer, uri } = stage
    const { told, ended } = invite(stage, { headers: { 'X-Ours': 'yes' } })
    const request = await peer.request('INVITE')
    t.equal(request.uri, uri)
    t.equal(headerOf(request, 'X-Ours'), 'yes')
    t.equal(bodyText(request), sdp())
    peer.answer(request, 180, { reason: 'Ringing' })
    await until(() => told.includes('180 Ringing'))
    peer.answer(request, 200, { reason: 'OK', body: sdp(4002) })
    await peer.request('ACK')
    const result = await ended
    t.match(result, { kind: 'answered', line: '200 OK', sdp: sdp(4002) })
    if (result.kind === 'answered') stack.hangUp(result.dialog, 'completed')
    const bye = await peer.request('BYE')
    t.match(headerOf(bye, 'Reason'), /^SIP *;cause=200 ?;text="completed"$/)
    peer.answer(bye, 200)
  },

  'an INVITE of ours and a 200 of ours say what we can do, and how long a session lasts': async (t, stage) => {
    const can = (message: SipRequest | SipResponse) => [headerOf(message, 'Allow'), headerOf(message, 'Supported')]
    const abilities = ['INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, REFER, NOTIFY, PRACK', 'timer, 100rel']
    const { ended } = invite(stage)
    const request = await stage.peer.request('INVITE')
    t.same([...can(request), headerOf(request, 'Session-Expires')], [...abilities, '1800'])
    stage.peer.answer(request, 422, { headers: ['Min-SE: 2400'] })
    const again = await stage.peer.request('INVITE')
    t.same([...can(again), headerOf(again, 'Session-Expires')], [...abilities, '2400'])
    stage.peer.answer(again, 486)
    t.match(await ended, { kind: 'refused', status: 486 })
    const headers = ['Session-Expires: 600;refresher=uac', 'Supported: timer']
    const { answer, dialog } = await taken(t, stage, headers)
    t.same([...can(answer), headerOf(answer, 'Session-Expires')], [...abilities, '600;refresher=uac'])
    stage.stack.hangUp(dialog, undefined)
    stage.peer.answer(await stage.peer.request('BYE'), 200)
  },

  'an invitation that is refused ends with what the peer said': async (t, stage) => {
    const { ended } = invite(stage)
    const headers = ['Reason: Q.850;cause=17;text="busy"']
    stage.peer.answer(await stage.peer.request('INVITE'), 486, { reason: 'Busy Here', headers })
    t.same(await ended, { kind: 'refused', status: 486, reason: 'Busy Here', cause: 17 })
  },

  'an invitation that is canceled ends by the answer to its CANCEL': async (t, stage) => {
    const { peer } = stage
    const { cancel, told, ended } = invite(stage)
    const request = await peer.request('INVITE')
    peer.answer(request, 180, { reason: 'Ringing' })
    await until(() => told.length > 0)
    cancel()
    cancel()
    peer.answer(await peer.request('CANCEL'), 200)
    peer.answer(request, 487, { reason: 'Request Terminated' })
    t.match(await ended, { kind: 'refused', status: 487 })
  },

  'a 200 that crosses the CANCEL of an abandoned invitation is acknowledged and hung up': async (t, stage) => {
    const { peer } = stage
    const { abandon, told, ended } = invite(stage)
    void ended.then(() => told.push('the end'))
    const request = await peer.request('INVITE')
    peer.answer(request, 180)
    await until(() => told.length > 0)
    abandon()
    const canceled = await peer.request('CANCEL')
    peer.answer(request, 200, { body: sdp(4002) })
    peer.answer(canceled, 200)
    await peer.request('ACK')
    peer.answer(await peer.request('BYE'), 200)
    t.equal(told.length, 1, 'and nothing more is told')
  },

  'a call that arrives says where it came from, and is accepted with our description': async (t, stage) => {
    const call = stage.peer.invite({ body: sdp(4004), headers: ['X-Theirs: yes'] })
    const { request, reply } = await stage.arrived()
    t.match(request, { method: 'INVITE', source_address: '127.0.0.1', protocol: 'udp', source: 'network' })
    t.equal(Number(request.source_port), stage.peer.port)
    t.same([request.get('x-theirs'), request.get('call-id'), request.body], ['yes', call.callId, sdp(4004)])
    const { promise, resolve } = Promise.withResolvers<{ dialog: SipDialog } | { details: string }>()
    stage.stack.accept(request, reply, sdp(), resolve)
    const answer = await call.answered()
    t.same([answer.status, bodyText(answer)], [200, sdp()])
    call.ack()
    const accepted = await promise
    if (!('dialog' in accepted)) throw new Error(accepted.details)
    const over = new Promise((ended) => accepted.dialog.on('destroy', ended))
    t.equal((await call.request('BYE')).status, 200)
    await inTime('the end of the dialog', over)
  },

  'a call that arrives is refused with a status and headers': async (t, { peer, arrived }) => {
    const call = peer.invite({ body: sdp() })
    const { reply } = await arrived()
    t.equal(reply.finalResponseSent, false)
    reply.send(486, 'Not now', { headers: { 'Retry-After': '30' } })
    const answer = await call.answered()
    t.same([answer.status, answer.reason, headerOf(answer, 'Retry-After')], [486, 'Not now', '30'])
    t.equal(reply.finalResponseSent, true)
  },

  'a call that is canceled while it rings is told of, and answered 487': async (t, { peer, arrived }) => {
    const call = peer.invite({ body: sdp() })
    const { request, reply } = await arrived()
    const canceled = new Promise<void>((resolve) => request.on('cancel', () => resolve()))
    reply.send(180, undefined, {})
    t.equal((await call.answered()).status, 180)
    call.cancel()
    await inTime('the cancel', canceled)
    t.equal((await call.answered()).status, 487)
  },

  'other requests come to their routes': async (t, { peer, arrived }) => {
    for (const method of ['OPTIONS', 'MESSAGE']) {
      const asked = peer.ask(method, { headers: ['X-Theirs: yes'] })
      const { request, reply } = await arrived()
      t.same([request.method, request.get('x-theirs')], [method, 'yes'])
      reply.send(202, undefined, { headers: { 'X-Ours': 'yes' } })
      const answer = await asked
      t.same([answer.status, headerOf(answer, 'X-Ours')], [202, 'yes'])
    }
  },

  'within a dialog each side asks and is answered': async (t, stage) => {
    const { call, dialog } = await taken(t, stage)
    dialog.on('modify', (request, reply) => {
      t.equal(request.body, sdp(4006))
      reply.send(200, undefined, { body: sdp(4008), headers: { 'Content-Type': 'application/sdp' } })
    })
    dialog.on('info', (request, reply) => {
      t.equal(request.body, 'Signal=5')
      reply.send(200, undefined, {})
    })
    const answer = await call.reinvite({ body: sdp(4006) })
    t.same([answer.status, bodyText(answer)], [200, sdp(4008)])
    const info = { headers: ['Content-Type: application/dtmf-relay'], body: 'Signal=5' }
    t.equal((await call.request('INFO', info)).status, 200)
    const asked = new Promise<number | undefined>((resolve) =>
      requestWithin(
        dialog,
        { method: 'INFO', headers: { 'Content-Type': 'text/plain' }, body: 'hello' },
        (_error, response) => resolve(response?.status),
      ),
    )
    const request = await stage.peer.request('INFO')
    t.same([headerOf(request, 'Call-ID'), bodyText(request)], [call.callId, 'hello'])
    stage.peer.answer(request, 415)
    t.equal(await inTime('an answer', asked), 415)
    stage.stack.hangUp(dialog, undefined)
    stage.peer.answer(await stage.peer.request('BYE'), 200)
  },

  'all that waits ends when the connection is lost, and it comes back by itself': async (t, stage) => {
    const { stack, peer, uri, cut } = stage
    const lost: string[] = []
    stack.onLost(() => void lost.push('told'))
    stack.onLost(() => void lost.push('not told'))()
    const ringing = invite(stage)
    const request = await peer.request('INVITE')
    const asked = stack.request(uri, { method: 'MESSAGE', headers: {} })
    await peer.request('MESSAGE')
    const call = peer.invite({ body: sdp() })
    const arrived = await stage.arrived()
    const { promise: accepted, resolve } = Promise.withResolvers<object>()
    stack.accept(arrived.request, arrived.reply, sdp(), resolve)
    await call.answered()
    cut()
    const details = 'the connection to the SIP server was lost'
    t.same(await ringing.ended, { kind: 'unreachable', details })
    t.same(await asked, { kind: 'silence', details })
    t.same(await accepted, { details })
    t.same(lost, ['told'])
    await until(() => stack.isConnected())
    peer.answer(request, 486)
    await routed(stage)
  },

  'a dialog that lost its owner with the connection is hung up when it is back': async (t, stage) => {
    const { stack, peer, cut } = stage
    const { dialog, request } = await placed(t, stage)
    stack.onLost(() => stack.orphaned(dialog.id))
    cut()
    const bye = await peer.request('BYE')
    t.equal(headerOf(bye, 'Call-ID'), headerOf(request, 'Call-ID'))
    peer.answer(bye, 200)
    await until(() => stack.isConnected())
  },

  'a dialog that has no owner while the connection is there is hung up at once': async (t, stage) => {
    const { dialog } = await placed(t, stage)
    stage.stack.orphaned(dialog.id)
    stage.peer.answer(await stage.peer.request('BYE'), 200)
  },

  'closing waits a moment for BYEs under way, and is done once': async (t, stage) => {
    const { stack, peer, clock } = stage
    const { dialog } = await placed(t, stage)
    stack.hangUp(dialog, 'over')
    let isClosed = false
    const closing = Promise.all([stack.close(), stack.close()]).then(() => (isClosed = true))
    const bye = await peer.request('BYE')
    t.ok(stack.isConnected() && !isClosed)
    peer.answer(bye, 200)
    await inTime('the end of the stack', closing)
    t.notOk(stack.isConnected())
    await stack.close()
    t.equal(clock.pending(), 0)
  },

  'closing does not wait for a peer that is silent': async (t, stage) => {
    const { stack, peer, clock } = stage
    const { dialog } = await placed(t, stage)
    stack.hangUp(dialog, 'over')
    await peer.request('BYE')
    const closing = stack.close()
    clock.advance(1_500)
    await inTime('the end of the stack', closing)
    t.notOk(stack.isConnected())
  },
}

for (const [name, { open, reasonAgainst }] of Object.entries(servers))
  test(`the SIP stack over ${name}`, async (t) => {
    const reason = await reasonAgainst()
    if (reason) return void t.pass(name, { skip: reason })
    for (const [rule, keeps] of Object.entries(rules))
      await t.test(rule, async (t) => keeps(t, await openStage(t, await open(t))))
  })
