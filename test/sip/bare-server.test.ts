/** Calls over a SIP server that adds nothing to what we say and polices nothing that comes: as much of a drachtio-server as can be relied on. */
import { test, type Test } from 'tap'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import type { SipMessage } from '../../sip/server/message/message.ts'
import { nobody, openBareServer, type Drafted, type Told } from '../fake/bare-sip-server.ts'
import { trunkOf } from '../fake/telephony-port.ts'
import { bodyText } from '../scenes/body-text.ts'
import { openEdgeScene } from '../scenes/sip-edge-scene.ts'

const sdp = (port = 40_000, version = 1): string =>
  `v=0\r\no=- 7 ${version} IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio ${port} RTP/AVP 0\r\n`

type Words = { readonly body?: string; readonly headers?: readonly string[] }

let calls = 0

async function openScene(t: Test) {
  const bare = await openBareServer(t)
  const scene = await openEdgeScene(t, { via: async () => bare.control })
  scene.telephony.trunks = [trunkOf({})]
  const callId = `theirs-${++calls}`
  const dialogId = `${callId};from-tag=them`
  let toTag = ''
  const write = (method: string, cseq: number, { body = '', headers = [] }: Words = {}): Told => {
    const lines = [
      `${method} sip:+4930123456@service.test SIP/2.0`,
      `Via: SIP/2.0/UDP 127.0.0.1:5070;branch=z9hG4bK${method}${cseq}`,
      'Max-Forwards: 70',
      'From: <sip:+4915112345678@carrier.test>;tag=them',
      `To: <sip:+4930123456@service.test>${toTag}`,
      `Call-ID: ${callId}`,
      `CSeq: ${cseq} ${method}`,
      'Contact: <sip:peer@127.0.0.1:5070>',
      ...headers,
      ...(body && !headers.some((line) => line.startsWith('Content-Type:')) ? ['Content-Type: application/sdp'] : []),
      `Content-Length: ${Buffer.byteLength(body, 'latin1')}`,
    ]
    const named = toTag === '' ? { isNew: true } : { dialogId, transactionId: `${method}${cseq}` }
    return { text: `${lines.join('\r\n')}\r\n\r\n${body}`, ...named }
  }
  /** The next final answer to a request of ours. */
  const answered = async (method: string, cseq: number) => {
    const { draft } = await bare.next(
      (draft) => draft.kind === 'response' && draft.status >= 200 && headerOf(draft, 'CSeq') === `${cseq} ${method}`,
    )
    if (draft.kind !== 'response') throw new Error('a request is no answer')
    return draft
  }
  /** Rings, and is answered by the actor. */
  const taken = async (words: Words = {}) => {
    bare.tell(write('INVITE', 1, words))
    const id = await scene.begun()
    await scene.command(id, { type: 'answer' })
    toTag = ';tag=us'
    return { id, answer: await answered('INVITE', 1) }
  }
  return { ...scene, bare, write, answered, taken }
}

test('an INVITE right behind the ACK of the one before is answered by its own ACK, with and without an offer', async (t) => {
  for (const first of [{}, { body: sdp() }]) {
    const { taken, write, answered, bare, event } = await openScene(t)
    const { id, answer } = await taken(first)
    t.equal(answer.status, 200)
    const answers = 'body' in first ? {} : { body: sdp() }
    bare.tell(write('ACK', 1, answers), write('INVITE', 2))
    t.same(await event(id), { type: 'connected', providerStatus: '200 OK' })
    const offered = await answered('INVITE', 2)
    t.equal(offered.status, 200)
    t.match(bodyText(offered), /m=audio \d+ RTP\/AVP 0 8 9 /)
    bare.tell(write('ACK', 1, answers), write('ACK', 2, { body: sdp(40_002, 2) }), write('ACK', 2), write('INFO', 3))
    t.equal((await answered('INFO', 3)).status, 200)
    bare.tell(write('BYE', 4))
    t.match(await event(id), { type: 'disconnected', cause: 'hung_up' }, 'nothing ended it before')
  }
})

test('an ACK without an answer to our offer ends the call', async (t) => {
  const { taken, write, answered, bare, event } = await openScene(t)
  const { id } = await taken({ body: sdp() })
  bare.tell(write('ACK', 1), write('INVITE', 2))
  await event(id)
  await answered('INVITE', 2)
  bare.tell(write('ACK', 2))
  t.match(await event(id), { type: 'disconnected', cause: 'failed' })
})

test('while our offer waits for its answer no other one is answered: 491', async (t) => {
  const { taken, write, answered, bare, event } = await openScene(t)
  const { id } = await taken()
  bare.tell(write('UPDATE', 2, { body: sdp(40_002) }), write('INVITE', 3), write('INVITE', 4, { body: sdp(40_004) }))
  t.same(
    [await answered('UPDATE', 2), await answered('INVITE', 3), await answered('INVITE', 4)].map(({ status }) => status),
    [491, 491, 491],
  )
  bare.tell(write('UPDATE', 5))
  t.equal((await answered('UPDATE', 5)).status, 200, 'one without an offer refreshes the session')
  bare.tell(write('ACK', 1, { body: sdp() }), write('UPDATE', 6, { body: sdp(40_006) }))
  t.same(await event(id), { type: 'connected', providerStatus: '200 OK' })
  t.equal((await answered('UPDATE', 6)).status, 200)
})

test('an offer before the ACK of our answer is taken: that INVITE has both', async (t) => {
  const { taken, write, answered, bare, event } = await openScene(t)
  const { id } = await taken({ body: sdp() })
  bare.tell(write('UPDATE', 2, { body: sdp(40_002, 2) }))
  t.equal((await answered('UPDATE', 2)).status, 200)
  bare.tell(write('ACK', 1))
  t.same(await event(id), { type: 'connected', providerStatus: '200 OK' })
})

test('a BYE right behind the ACK ends a call that was connected', async (t) => {
  for (const first of [{}, { body: sdp() }]) {
    const { taken, write, bare, event } = await openScene(t)
    const { id } = await taken(first)
    bare.tell(write('ACK', 1, 'body' in first ? {} : { body: sdp() }), write('BYE', 2))
    t.same(await event(id), { type: 'connected', providerStatus: '200 OK' })
    t.match(await event(id), { type: 'disconnected', cause: 'hung_up' })
  }
})

// ——— What we say by ourselves, because such a server says nothing ———

const fieldsOf = ({ headers }: SipMessage, ...names: readonly string[]) =>
  names.map((name) => headers.find((field) => field.name === name)?.value ?? null)

const abilities = ['INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, REFER, NOTIFY, PRACK', 'timer, 100rel']

/** A call of ours, as it was drafted, and how it is answered. */
async function openDialing(t: Test) {
  const scene = await openScene(t)
  const { telephony, dial, bare } = scene
  telephony.trunks = [trunkOf({ gateways: [{ host: '127.0.0.1', port: 5070 }], qualify: false })]
  const { callId } = await dial()
  const invited = () => bare.next((draft) => draft.kind === 'request' && draft.method === 'INVITE')
  const respond = (invite: Drafted, line: string, { body = '', headers = [] }: Words = {}, dialogId = '') => {
    const { draft } = invite
    const [callIdOf, from, cseq] = fieldsOf(draft, 'Call-ID', 'From', 'CSeq')
    const lines = [
      `SIP/2.0 ${line}`,
      'Via: SIP/2.0/UDP 127.0.0.1:5060;branch=z9hG4bK1',
      `From: ${from ?? '<sip:us@127.0.0.1>;tag=us'}`,
      'To: <sip:them@127.0.0.1>;tag=them',
      `Call-ID: ${callIdOf ?? ''}`,
      `CSeq: ${cseq ?? '1 INVITE'}`,
      'Contact: <sip:them@127.0.0.1:5070>',
      ...headers,
      ...(body ? ['Content-Type: application/sdp'] : []),
      `Content-Length: ${body.length}`,
    ]
    bare.tell({ text: `${lines.join('\r\n')}\r\n\r\n${body}`, transactionId: invite.transactionId, dialogId })
  }
  return { ...scene, callId, invited, respond }
}

test('our INVITE says what we can do and asks for a session timer', async (t) => {
  const { invited } = await openDialing(t)
  const { draft } = await invited()
  t.same(fieldsOf(draft, 'Allow', 'Supported', 'Session-Expires', 'Min-SE'), [...abilities, '1800', '90'])
})

test('a 422 gets the interval that it wants, in the same call, until it wants no more than was offered', async (t) => {
  const { invited, respond, event, callId } = await openDialing(t)
  const first = await invited()
  respond(first, '422 Session Interval Too Small', { headers: ['Min-SE: 3600'] })
  const second = await invited()
  t.same(fieldsOf(second.draft, 'Session-Expires', 'Min-SE'), ['3600', '3600'])
  t.same(fieldsOf(second.draft, 'Call-ID', 'From'), fieldsOf(first.draft, 'Call-ID', 'From'))
  const numbers = [first, second].map(({ draft }) => Number.parseInt(fieldsOf(draft, 'CSeq')[0] ?? ''))
  t.equal(numbers[1], numbers[0]! + 1)
  respond(second, '422 Session Interval Too Small', { headers: ['Min-SE: 60'] })
  t.match(await event(callId), { type: 'dial_failed', providerStatus: '422 Session Interval Too Small' })
})

test('a reliable ringing of the callee is acknowledged', async (t) => {
  const { invited, respond, bare } = await openDialing(t)
  const invite = await invited()
  respond(invite, '183 Session Progress', { headers: ['Require: 100rel', 'RSeq: 7'], body: sdp() }, 'theirs')
  const { draft, dialogId } = await bare.next((one) => one.kind === 'request' && one.method === 'PRACK')
  t.equal(dialogId, 'theirs')
  t.match(fieldsOf(draft, 'RAck')[0], /^7 \d+ INVITE$/)
})

test('what the server itself says in the place of a gateway is no status of the provider', async (t) => {
  const { invited, bare, event, callId } = await openDialing(t)
  const { draft, transactionId } = await invited()
  const text = `SIP/2.0 408 Request Timeout\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK1\r\nFrom: <sip:us@h>;tag=us\r\nTo: <sip:x@h>;tag=y\r\nCall-ID: ${fieldsOf(draft, 'Call-ID')[0]}\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n`
  bare.tell({ text, transactionId, flow: nobody })
  t.match(await event(callId), { type: 'dial_failed', outcome: { reason: 'sip_call_failed' }, providerStatus: null })
})

test('our 200 says what we can do, and agrees on the session timer that was asked for', async (t) => {
  const session = ['Session-Expires: 1800;refresher=uac', 'Supported: timer']
  const { taken, write, answered, bare, event } = await openScene(t)
  const { id, answer } = await taken({ body: sdp(), headers: session })
  const agreed = ['1800;refresher=uac', 'timer']
  t.same(fieldsOf(answer, 'Allow', 'Supported', 'Session-Expires', 'Require'), [...abilities, ...agreed])
  bare.tell(write('ACK', 1))
  await event(id)
  for (const [method, cseq, body] of [
    ['INVITE', 2, sdp(40_002)],
    ['UPDATE', 3, ''],
    ['UPDATE', 4, sdp(40_004)],
  ] as const) {
    bare.tell(write(method, cseq, { body, headers: session }))
    const fresh = await answered(method, cseq)
    t.same(fieldsOf(fresh, 'Allow', 'Supported', 'Session-Expires', 'Require'), [...abilities, ...agreed], method)
    if (method === 'INVITE') bare.tell(write('ACK', cseq))
  }
})

test('we refresh a session for a caller who cannot, and nobody does where none asks', async (t) => {
  const one = await openScene(t)
  const { answer } = await one.taken({ body: sdp(), headers: ['x: 600'] })
  t.same(fieldsOf(answer, 'Session-Expires', 'Require'), ['600;refresher=uas', null])
  const other = await openScene(t)
  t.same(fieldsOf((await other.taken({ body: sdp() })).answer, 'Session-Expires', 'Require'), [null, null])
})

test('a session of less than 90 s is refused with 422 and what would be taken', async (t) => {
  const { bare, write, answered, telephony } = await openScene(t)
  bare.tell(write('INVITE', 1, { body: sdp(), headers: ['Session-Expires: 60', 'Supported: timer'] }))
  const refused = await answered('INVITE', 1)
  t.same([refused.status, ...fieldsOf(refused, 'Min-SE')], [422, '90'])
  t.equal(telephony.received.length, 0)
})

test('the signaling of a telephone network beside the description hurts nobody, NUL and all (SIP-I)', async (t) => {
  const isup = '\x01\x00\x49\x00\x00\x03\x02\x00\x07\x04\x10\x00\x33\x63\x21\x43\x00\x00\xff\x80'
  const body = [
    '--unique-boundary-1',
    'Content-Type: application/sdp',
    '',
    sdp(),
    '--unique-boundary-1',
    'Content-Type: application/ISUP;version=itu-t92+;base=itu-t92+',
    'Content-Disposition: signal;handling=optional',
    '',
    isup,
    '--unique-boundary-1--',
    '',
  ].join('\r\n')
  for (const type of ['multipart/mixed;boundary=unique-boundary-1', 'multipart/mixed; boundary="unique-boundary-1"']) {
    const { taken } = await openScene(t)
    const { answer } = await taken({ body, headers: [`Content-Type: ${type}`, 'MIME-Version: 1.0'] })
    t.equal(answer.status, 200)
    t.match(bodyText(answer), /m=audio \d+ RTP\/AVP 0/)
  }
})

test('where a 100 is not told the last gateway may be silent until the ringing is over', async (t) => {
  const bare = await openBareServer(t)
  const { telephony, dial, clock, event } = await openEdgeScene(t, {
    via: async () => bare.control,
    tellsTrying: false,
  })
  telephony.trunks = [trunkOf({ gateways: [{ host: '127.0.0.1', port: 5070 }], qualify: false })]
  const { callId } = await dial({ ringTimeout: 30_000 })
  await bare.next((draft) => draft.kind === 'request' && draft.method === 'INVITE')
  clock.advance(30_000)
  await bare.next((draft) => draft.kind === 'request' && draft.method === 'CANCEL')
  clock.advance(5_000)
  t.match(await event(callId), { type: 'dial_failed', outcome: { reason: 'sip_call_failed' }, providerStatus: null })
})

test('an UPDATE of the caller is answered while a request of ours waits for its answer', async (t) => {
  const { taken, write, answered, bare, command, telephony } = await openScene(t)
  telephony.trunks = [trunkOf({ transferTo: 'tel' })]
  const { id } = await taken({ body: sdp() })
  bare.tell(write('ACK', 1))
  const asked = command(id, { type: 'transfer', to: '+4989555' })
  const refer = await bare.next((draft) => draft.kind === 'request' && draft.method === 'REFER')
  bare.tell(write('UPDATE', 2), write('UPDATE', 3, { body: sdp(40_002, 2) }))
  t.equal((await answered('UPDATE', 2)).status, 200)
  t.match(bodyText(await answered('UPDATE', 3)), /m=audio/)
  const [callId, from, to, cseq] = fieldsOf(refer.draft, 'Call-ID', 'From', 'To', 'CSeq')
  const head = `SIP/2.0 603 Decline\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK1\r\nFrom: ${from}\r\nTo: ${to};tag=them`
  const text = `${head}\r\nCall-ID: ${callId}\r\nCSeq: ${cseq}\r\nContent-Length: 0\r\n\r\n`
  bare.tell({ text, transactionId: refer.transactionId, dialogId: refer.dialogId })
  t.match(await asked, { type: 'refused', details: /603/ })
})
