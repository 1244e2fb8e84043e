/** The transaction layer by the figures of RFC 3261 §17 and RFC 6026, on a clock that the test moves. */
import { test } from 'tap'
import { tagOf } from '../../sip/server/message/address.ts'
import { headerOf, headersOf } from '../../sip/server/message/header-fields.ts'
import type { HeaderField, SipMessage, SipRequest, SipResponse } from '../../sip/server/message/message.ts'
import { responseTo } from '../../sip/server/message/response-to.ts'
import type { ServerTransaction, TransactionHandlers, Transactions } from '../../sip/server/transaction/transaction.ts'
import { createTransactions, type TransactionLimits } from '../../sip/server/transaction/transactions.ts'
import { type Flow, type Protocol, type Target, TransportError } from '../../sip/server/transport/transport.ts'
import { withOurVia } from '../../sip/server/transport/via-of-way.ts'
import { createHandClock, type HandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom, type Random } from '../fake/random.ts'

const us = { address: '192.0.2.1', port: 5060 }
const peer = { address: '192.0.2.9', port: 5060 }
const flowBy = (protocol: Protocol): Flow => ({
  protocol,
  remote: peer,
  local: us,
  connection: protocol === 'udp' ? 0 : 7,
})
const targetBy = (protocol: Protocol): Target => ({ protocol, remote: peer, serverName: null })

type SentMessage = { readonly at: number; readonly message: SipMessage }

/** A wire that keeps what is sent, with the ms since the start. */
function createWire(clock: HandClock) {
  const sent: SentMessage[] = []
  const start = clock.now()
  const wire = { sent, isCut: false, deliver: (_message: SipMessage): void => undefined }
  const put = (message: SipMessage): void => {
    if (wire.isCut) throw new TransportError('cut')
    sent.push({ at: clock.now() - start, message })
    wire.deliver(message)
  }
  return {
    wire,
    transports: {
      request: async (request: SipRequest, target: Target, branch: string) => {
        const stamped = withOurVia(request, target.protocol, us, branch)
        put(stamped)
        return { flow: flowBy(target.protocol), sent: stamped }
      },
      again: put,
      respond: async (response: SipResponse) => put(response),
    },
  }
}

type Told = {
  request: ServerTransaction[]
  ack: SipRequest[]
  cancel: ServerTransaction[]
  stray: number[]
  failed: string[]
}

function createLayer(
  limits: Partial<TransactionLimits> = {},
  clock = createHandClock(),
  more: Partial<TransactionHandlers> = {},
) {
  const { wire, transports } = createWire(clock)
  const told: Told = { request: [], ack: [], cancel: [], stray: [], failed: [] }
  let [ids, branches] = [0, 0]
  const log = createQuietLog()
  const transactions = createTransactions({
    clock,
    transports,
    limits,
    log,
    newId: () => `id${++ids}`,
    newBranch: () => `z9hG4bK${++branches}`,
    handlers: {
      request: (transaction) => void told.request.push(transaction),
      ack: (request) => void told.ack.push(request),
      cancel: (transaction) => void told.cancel.push(transaction),
      strayResponse: (response) => void told.stray.push(response.status),
      serverFailed: (_transaction, details) => void told.failed.push(details),
      ...more,
    },
  })
  return { clock, wire, told, log, transactions }
}

const fieldsOf = (method: string, callId: string, toTag = ''): HeaderField[] => [
  { name: 'From', value: '<sip:alice@example.com>;tag=a1' },
  { name: 'To', value: `<sip:bob@example.com>${toTag}` },
  { name: 'Call-ID', value: callId },
  { name: 'CSeq', value: `1 ${method}` },
]
const requestOf = (method: string, more: HeaderField[] = [], callId = 'call1', toTag = ''): SipRequest => ({
  kind: 'request',
  method,
  uri: 'sip:bob@192.0.2.9',
  headers: [...more, ...fieldsOf(method, callId, toTag)],
  body: new Uint8Array(0),
})
const via = (value: string): HeaderField => ({ name: 'Via', value })
/** As it arrives from the peer. */
const arriving = (method: string, branch: string, toTag = '', callId = 'call1'): SipRequest =>
  requestOf(method, [via(`SIP/2.0/UDP 192.0.2.9:5060;branch=${branch}`)], callId, toTag)

const answerTo = (request: SipRequest, status: number, toTag = 'b1'): SipResponse =>
  responseTo(request, { status, reason: 'Whatever', toTag })

/** A request is on its way; what its user hears is kept. */
async function ask(
  layer: ReturnType<typeof createLayer>,
  method: string,
  protocol: Protocol = 'udp',
  more: HeaderField[] = [],
) {
  const heard: string[] = []
  const transaction = await layer.transactions.request(requestOf(method, more), targetBy(protocol), {
    response: (response) => void heard.push(String(response.status)),
    failed: (cause) => void heard.push(cause),
    terminated: () => void heard.push('end'),
  })
  const hear = (status: number, toTag = 'b1'): void =>
    layer.transactions.receive(answerTo(transaction.request, status, toTag), flowBy(protocol))
  return { transaction, heard, hear }
}

const timesOf = (sent: readonly SentMessage[], method: string): number[] =>
  sent.flatMap(({ at, message }) => (message.kind === 'request' && message.method === method ? [at] : []))
const statusesOf = (sent: readonly SentMessage[]): number[] =>
  sent.flatMap(({ message }) => (message.kind === 'response' ? [message.status] : []))
const answerTimes = (sent: readonly SentMessage[], status: number): number[] =>
  sent.flatMap(({ at, message }) => (message.kind === 'response' && message.status === status ? [at] : []))
const requestsOf = (sent: readonly SentMessage[], method: string): SipRequest[] =>
  sent.flatMap(({ message }) => (message.kind === 'request' && message.method === method ? [message] : []))
/** Promises of the layer have gone on. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('an INVITE nobody answers goes out after T1, doubling, and fails after 64*T1 (A, B)', async (t) => {
  const layer = createLayer()
  const { heard } = await ask(layer, 'INVITE')
  layer.clock.advance(31_999)
  t.same(timesOf(layer.wire.sent, 'INVITE'), [0, 500, 1500, 3500, 7500, 15500, 31500])
  t.same(heard, [])
  layer.clock.advance(1)
  t.same(heard, ['timeout', 'end'])
  t.equal(layer.transactions.size(), 0)
  t.equal(layer.clock.pending(), 0, 'no timer is left')
})

test('an INVITE over TCP is sent once and fails after 64*T1', async (t) => {
  const layer = createLayer()
  const { heard } = await ask(layer, 'INVITE', 'tcp')
  layer.clock.advance(31_999)
  t.same(heard, [])
  layer.clock.advance(1)
  t.same(timesOf(layer.wire.sent, 'INVITE'), [0])
  t.same(heard, ['timeout', 'end'])
})

test('a provisional response ends the retransmission, and an INVITE that rings is not given up before its time', async (t) => {
  const layer = createLayer({ ringing: 180_000 })
  const { heard, hear } = await ask(layer, 'INVITE')
  layer.clock.advance(600)
  hear(100)
  layer.clock.advance(100_000)
  t.same(timesOf(layer.wire.sent, 'INVITE'), [0, 500])
  hear(180)
  layer.clock.advance(179_999)
  t.same(heard, ['100', '180'], 'each provisional response starts the time of ringing anew')
  t.equal(requestsOf(layer.wire.sent, 'CANCEL').length, 0)
  layer.clock.advance(1)
  await settled()
  t.equal(requestsOf(layer.wire.sent, 'CANCEL').length, 1, 'then it is canceled, so that nothing rings on')
  layer.clock.advance(32_000)
  t.same(heard, ['100', '180', 'timeout', 'end'])
})

test('a refusal is acknowledged with the branch, Route and CSeq number of the INVITE, as often as it comes, and told once (D)', async (t) => {
  const layer = createLayer()
  const route = [
    { name: 'Route', value: '<sip:p1.example.com;lr>' },
    { name: 'Route', value: '<sip:p2.example.com;lr>' },
  ]
  const { transaction, heard, hear } = await ask(layer, 'INVITE', 'udp', route)
  hear(486)
  hear(486)
  t.same(heard, ['486'])
  const [ack, again] = requestsOf(layer.wire.sent, 'ACK')
  t.same(again, ack)
  t.equal(headerOf(ack!, 'Via'), headerOf(transaction.request, 'Via'))
  t.equal(headersOf(ack!, 'Via').length, 1)
  t.same(headersOf(ack!, 'Route'), ['<sip:p1.example.com;lr>', '<sip:p2.example.com;lr>'])
  t.equal(headerOf(ack!, 'CSeq'), '1 ACK')
  t.equal(tagOf(ack!, 'To'), 'b1', 'To is that of the response')
  t.equal(headerOf(ack!, 'From'), headerOf(transaction.request, 'From'))
  t.equal(ack!.uri, transaction.request.uri)
  layer.clock.advance(31_999)
  hear(486)
  t.equal(requestsOf(layer.wire.sent, 'ACK').length, 3, 'still there just before 32 s')
  layer.clock.advance(1)
  t.same(heard, ['486', 'end'])
  hear(486)
  t.equal(requestsOf(layer.wire.sent, 'ACK').length, 3)
  t.equal(layer.clock.pending(), 0)
})

test('over TCP a refusal ends the transaction at once', async (t) => {
  const layer = createLayer()
  const { heard, hear } = await ask(layer, 'INVITE', 'tcp')
  hear(503)
  t.same(heard, ['503', 'end'])
  t.equal(requestsOf(layer.wire.sent, 'ACK').length, 1)
  t.equal(layer.clock.pending(), 0)
})

test('every 2xx is passed up, of other forks too, none is acknowledged here, and M ends it (RFC 6026)', async (t) => {
  const layer = createLayer()
  const { heard, hear } = await ask(layer, 'INVITE')
  hear(180)
  hear(200)
  hear(200)
  hear(200, 'other-fork')
  hear(486)
  hear(180)
  t.same(heard, ['180', '200', '200', '200'])
  t.equal(requestsOf(layer.wire.sent, 'ACK').length, 0)
  layer.clock.advance(31_999)
  t.equal(layer.transactions.size(), 1)
  layer.clock.advance(1)
  t.same(heard, ['180', '200', '200', '200', 'end'])
  hear(200)
  t.same(layer.told.stray, [200], "a 2xx after its transaction is the core's")
  hear(486)
  t.same(layer.told.stray, [200], 'anything else is dropped')
})

test('a CANCEL waits for a provisional response, and bears branch, Route and CSeq number of its INVITE', async (t) => {
  const layer = createLayer()
  const route = [{ name: 'Route', value: '<sip:p1.example.com;lr>' }]
  const { transaction, heard, hear } = await ask(layer, 'INVITE', 'udp', route)
  const cancel = transaction.cancel([
    { name: 'Reason', value: 'SIP;cause=200' },
    via('SIP/2.0/UDP forged;branch=z9hG4bKx'),
  ])
  layer.clock.advance(500)
  t.equal(requestsOf(layer.wire.sent, 'CANCEL').length, 0)
  hear(100)
  await settled()
  t.same(requestsOf(layer.wire.sent, 'CANCEL'), [cancel], 'it is sent as it was announced')
  t.equal(headerOf(cancel, 'Via'), headerOf(transaction.request, 'Via'))
  t.equal(headerOf(cancel, 'CSeq'), '1 CANCEL')
  t.equal(headerOf(cancel, 'Reason'), 'SIP;cause=200')
  t.same(headersOf(cancel, 'Route'), ['<sip:p1.example.com;lr>'])
  transaction.cancel([])
  layer.transactions.receive(answerTo(cancel, 200), flowBy('udp'))
  t.equal(requestsOf(layer.wire.sent, 'CANCEL').length, 1, 'one is enough')
  t.same(heard, ['100'], "the answer to the CANCEL is nobody's")
  hear(487)
  t.same(heard, ['100', '487'])
})

test('a canceled INVITE that gets no final response ends 64*T1 after the CANCEL', async (t) => {
  const layer = createLayer()
  const { transaction, heard, hear } = await ask(layer, 'INVITE')
  hear(180)
  transaction.cancel([])
  layer.clock.advance(31_000)
  hear(180)
  layer.clock.advance(999)
  t.same(heard, ['180', '180'])
  layer.clock.advance(1)
  t.same(heard, ['180', '180', 'timeout', 'end'])
})

test('no CANCEL is sent when the final response came first', async (t) => {
  const layer = createLayer()
  const { transaction, hear } = await ask(layer, 'INVITE')
  transaction.cancel([])
  hear(200)
  await settled()
  layer.clock.advance(32_000)
  transaction.cancel([])
  await settled()
  t.equal(requestsOf(layer.wire.sent, 'CANCEL').length, 0)
})

test('a request that is no INVITE goes out after T1, doubling up to T2, and fails after 64*T1 (E, F)', async (t) => {
  const layer = createLayer()
  const { heard } = await ask(layer, 'OPTIONS')
  layer.clock.advance(31_999)
  t.same(timesOf(layer.wire.sent, 'OPTIONS'), [0, 500, 1500, 3500, 7500, 11500, 15500, 19500, 23500, 27500, 31500])
  layer.clock.advance(1)
  t.same(heard, ['timeout', 'end'])
  t.equal(layer.clock.pending(), 0)
})

test('after a provisional response it goes out every T2, and still fails after 64*T1', async (t) => {
  const layer = createLayer()
  const { heard, hear } = await ask(layer, 'OPTIONS')
  layer.clock.advance(600)
  hear(100)
  layer.clock.advance(31_400)
  t.same(timesOf(layer.wire.sent, 'OPTIONS'), [0, 500, 1500, 5500, 9500, 13500, 17500, 21500, 25500, 29500])
  t.same(heard, ['100', 'timeout', 'end'])
})

test('its final response is told once, and K ends it after T4; over TCP at once', async (t) => {
  const layer = createLayer()
  const first = await ask(layer, 'OPTIONS')
  first.hear(200)
  first.hear(200)
  first.hear(404)
  layer.clock.advance(4_999)
  t.same(first.heard, ['200'])
  layer.clock.advance(1)
  t.same(first.heard, ['200', 'end'])
  const second = await ask(layer, 'OPTIONS', 'tcp')
  second.hear(200)
  t.same(second.heard, ['200', 'end'])
  t.equal(layer.clock.pending(), 0)
})

test('a request that cannot be sent is refused to its user, and nothing is left of it', async (t) => {
  const layer = createLayer()
  layer.wire.isCut = true
  await t.rejects(ask(layer, 'INVITE'), { name: 'TransportError' })
  t.equal(layer.transactions.size(), 0)
  t.equal(layer.clock.pending(), 0)
})

test('a response that overtakes the news of its request is heard', async (t) => {
  const layer = createLayer()
  layer.wire.deliver = (message) => {
    if (message.kind === 'request' && message.method === 'INVITE')
      for (const status of [100, 200]) layer.transactions.receive(answerTo(message, status), flowBy('udp'))
  }
  const { heard } = await ask(layer, 'INVITE')
  await settled()
  t.same(heard, ['100', '200'])
})

test('a lost connection ends what has no answer at all, and nothing else', async (t) => {
  const layer = createLayer()
  const unheard = await ask(layer, 'INVITE', 'tcp')
  const ringing = await ask(layer, 'INVITE', 'tcp')
  const packet = await ask(layer, 'INVITE', 'udp')
  ringing.hear(180)
  layer.transactions.closed(flowBy('tcp'))
  t.same(unheard.heard, ['transport', 'end'])
  t.same(ringing.heard, ['180'], 'the answer may come by another connection (§18.2.2)')
  t.same(packet.heard, [])
  layer.transactions.close()
  t.equal(layer.clock.pending(), 0)
  t.same(ringing.heard, ['180'], 'after close nobody is told anything')
})

test('an INVITE is answered 100 at once, without a To tag, and its copies get the last response', async (t) => {
  const layer = createLayer()
  const invite = arriving('INVITE', 'z9hG4bKi1')
  layer.transactions.receive(invite, flowBy('udp'))
  t.same(statusesOf(layer.wire.sent), [100])
  t.equal(tagOf(layer.wire.sent[0]!.message, 'To'), null)
  layer.transactions.receive(invite, flowBy('udp'))
  layer.told.request[0]!.respond(answerTo(invite, 180))
  layer.transactions.receive(invite, flowBy('udp'))
  t.same(statusesOf(layer.wire.sent), [100, 100, 180, 180])
  t.equal(layer.told.request.length, 1, 'the core hears of it once')
})

test('a refusal is repeated from T1 up to T2 until the ACK and not beyond, and I absorbs ACKs for T4 (G, I)', async (t) => {
  const layer = createLayer()
  const invite = arriving('INVITE', 'z9hG4bKi1')
  layer.transactions.receive(invite, flowBy('udp'))
  const [transaction] = layer.told.request
  t.ok(transaction!.respond(answerTo(invite, 486)))
  t.notOk(transaction!.respond(answerTo(invite, 200)), 'after a final response there is no other')
  layer.clock.advance(12_000)
  t.same(answerTimes(layer.wire.sent, 486), [0, 500, 1500, 3500, 7500], 'a spoofed sender gets no more')
  const ack = arriving('ACK', 'z9hG4bKi1', ';tag=b1')
  layer.transactions.receive(ack, flowBy('udp'))
  layer.transactions.receive(ack, flowBy('udp'))
  layer.transactions.receive(invite, flowBy('udp'))
  layer.clock.advance(4_999)
  t.equal(answerTimes(layer.wire.sent, 486).length, 5)
  t.equal(layer.transactions.size(), 1)
  layer.clock.advance(1)
  t.equal(layer.transactions.size(), 0)
  t.same(layer.told.ack, [], 'this ACK is no business of the core')
  t.same(layer.told.failed, [])
  t.equal(layer.clock.pending(), 0)
})

test('a refusal without an ACK is given up after 64*T1, and the core is told (H)', async (t) => {
  const layer = createLayer()
  for (const protocol of ['udp', 'tcp'] as const) {
    const invite = arriving('INVITE', `z9hG4bK${protocol}`, '', protocol)
    layer.transactions.receive(invite, flowBy(protocol))
    layer.told.request.at(-1)!.respond(answerTo(invite, 404))
    layer.clock.advance(31_999)
    t.equal(layer.transactions.size(), 1)
    layer.clock.advance(1)
    t.equal(layer.transactions.size(), 0)
  }
  t.same(layer.told.failed, ['no ACK came', 'no ACK came'])
  t.equal(answerTimes(layer.wire.sent, 404).length, 5 + 1, 'over TCP it was sent once')
})

test('over TCP the ACK of a refusal ends the transaction at once', async (t) => {
  const layer = createLayer()
  const invite = arriving('INVITE', 'z9hG4bKi1')
  layer.transactions.receive(invite, flowBy('tcp'))
  layer.told.request[0]!.respond(answerTo(invite, 486))
  layer.transactions.receive(arriving('ACK', 'z9hG4bKi1', ';tag=b1'), flowBy('tcp'))
  t.equal(layer.transactions.size(), 0)
  t.equal(layer.clock.pending(), 0)
})

test('after a 2xx copies of the INVITE are absorbed, the 2xx may be repeated, ACKs are passed up, and L ends it (RFC 6026)', async (t) => {
  const layer = createLayer()
  const invite = arriving('INVITE', 'z9hG4bKi1')
  layer.transactions.receive(invite, flowBy('udp'))
  const [transaction] = layer.told.request
  t.ok(transaction!.respond(answerTo(invite, 200)))
  layer.transactions.receive(invite, flowBy('udp'))
  t.same(statusesOf(layer.wire.sent), [100, 200])
  t.ok(transaction!.respond(answerTo(invite, 200)))
  t.notOk(transaction!.respond(answerTo(invite, 180)))
  t.notOk(transaction!.respond(answerTo(invite, 500)))
  t.same(statusesOf(layer.wire.sent), [100, 200, 200])
  layer.transactions.receive(arriving('ACK', 'z9hG4bKi1', ';tag=b1'), flowBy('udp'))
  layer.transactions.receive(arriving('ACK', 'z9hG4bKof-its-own', ';tag=b1'), flowBy('udp'))
  t.equal(layer.told.ack.length, 2)
  layer.clock.advance(32_000)
  t.equal(layer.transactions.size(), 0)
  t.notOk(transaction!.respond(answerTo(invite, 200)))
})

test('an INVITE the core never answers does not stay for ever', async (t) => {
  const layer = createLayer({ ringing: 60_000 })
  layer.transactions.receive(arriving('INVITE', 'z9hG4bKi1'), flowBy('udp'))
  layer.clock.advance(60_000)
  t.same(layer.told.failed, ['the INVITE was not answered'])
  t.equal(layer.transactions.size(), 0)
})

test('copies of another request are absorbed until it is answered, then get the last response for 64*T1 (J)', async (t) => {
  const layer = createLayer()
  const options = arriving('OPTIONS', 'z9hG4bKo1')
  layer.transactions.receive(options, flowBy('udp'))
  layer.transactions.receive(options, flowBy('udp'))
  t.same(statusesOf(layer.wire.sent), [])
  const [transaction] = layer.told.request
  transaction!.respond(answerTo(options, 100))
  layer.transactions.receive(options, flowBy('udp'))
  t.ok(transaction!.respond(answerTo(options, 200)))
  t.notOk(transaction!.respond(answerTo(options, 404)))
  layer.transactions.receive(options, flowBy('udp'))
  t.same(statusesOf(layer.wire.sent), [100, 100, 200, 200])
  layer.clock.advance(31_999)
  t.equal(layer.transactions.size(), 1)
  layer.clock.advance(1)
  t.equal(layer.transactions.size(), 0)
  t.equal(layer.clock.pending(), 0)
})

test('over TCP the final response ends it at once; never answered, it ends when its sender has given up', async (t) => {
  const layer = createLayer()
  const options = arriving('OPTIONS', 'z9hG4bKo1')
  layer.transactions.receive(options, flowBy('tcp'))
  layer.told.request[0]!.respond(answerTo(options, 200))
  t.equal(layer.transactions.size(), 0)
  layer.transactions.receive(arriving('INFO', 'z9hG4bKo2', ';tag=b1'), flowBy('udp'))
  layer.clock.advance(32_000)
  t.equal(layer.transactions.size(), 0)
  t.same(layer.told.failed, ['the request was not answered'])
})

test('a response that cannot be sent ends the transaction, and the core is told', async (t) => {
  const layer = createLayer()
  const invite = arriving('INVITE', 'z9hG4bKi1')
  layer.transactions.receive(invite, flowBy('tcp'))
  layer.wire.isCut = true
  layer.told.request[0]!.respond(answerTo(invite, 486))
  await settled()
  t.equal(layer.told.failed.length, 1)
  t.equal(layer.transactions.size(), 0)
})

test('CANCEL is answered 200 and told when its INVITE waits for an answer; 481 without one; 200 alone after the answer', async (t) => {
  const layer = createLayer()
  const flow = flowBy('udp')
  const invite = arriving('INVITE', 'z9hG4bKi1')
  layer.transactions.receive(invite, flow)
  layer.transactions.receive(arriving('CANCEL', 'z9hG4bKi1'), flow)
  layer.transactions.receive(arriving('CANCEL', 'z9hG4bKi1'), flow)
  t.same(statusesOf(layer.wire.sent), [100, 200, 200], 'a copy gets the same answer')
  t.same(layer.told.cancel, [layer.told.request[0]], 'and is told once')
  const [, toCancel] = layer.wire.sent
  t.equal(
    tagOf(toCancel!.message, 'To'),
    layer.told.request[0]!.toTag,
    'with the tag the answer to the INVITE may bear',
  )
  layer.transactions.receive(arriving('CANCEL', 'z9hG4bKnone', '', 'call2'), flow)
  t.equal(statusesOf(layer.wire.sent).at(-1), 481)
  const taken = arriving('INVITE', 'z9hG4bKi2', '', 'call3')
  layer.transactions.receive(taken, flow)
  layer.told.request[1]!.respond(answerTo(taken, 200, 'chosen-by-the-core'))
  layer.transactions.receive(arriving('CANCEL', 'z9hG4bKi2', '', 'call3'), flow)
  t.equal(statusesOf(layer.wire.sent).at(-1), 200)
  t.equal(tagOf(layer.wire.sent.at(-1)!.message, 'To'), 'chosen-by-the-core')
  t.equal(layer.told.cancel.length, 1)
})

test('the same branch from another sender, and another method, are other transactions', async (t) => {
  const layer = createLayer()
  const other = requestOf('OPTIONS', [via('SIP/2.0/UDP 192.0.2.9:5070;branch=z9hG4bKo1')], 'call2')
  layer.transactions.receive(arriving('OPTIONS', 'z9hG4bKo1'), flowBy('udp'))
  layer.transactions.receive(other, flowBy('udp'))
  layer.transactions.receive(arriving('INFO', 'z9hG4bKo1'), flowBy('udp'))
  t.equal(layer.told.request.length, 3)
})

test('without the magic cookie a request is matched by its URI, tags, Call-ID, CSeq and Via (§17.2.3)', async (t) => {
  const layer = createLayer()
  const flow = flowBy('udp')
  const old = (method: string, toTag = '', callId = 'old'): SipRequest =>
    requestOf(method, [via('SIP/2.0/UDP 192.0.2.9')], callId, toTag)
  layer.transactions.receive(old('INVITE'), flow)
  layer.transactions.receive(old('INVITE'), flow)
  layer.transactions.receive(old('INVITE', '', 'another'), flow)
  t.equal(layer.told.request.length, 2)
  layer.told.request[0]!.respond(answerTo(old('INVITE'), 486))
  layer.transactions.receive(old('ACK', ';tag=of-somebody-else'), flow)
  t.equal(layer.told.ack.length, 1, 'an ACK of another response')
  layer.transactions.receive(old('ACK', ';tag=b1'), flow)
  layer.clock.advance(5_000)
  t.equal(layer.told.ack.length, 1)
  t.equal(layer.transactions.size(), 1)
  layer.transactions.receive(old('CANCEL', '', 'another'), flow)
  t.same(layer.told.cancel, [layer.told.request[1]])
})

test('a request that comes by two ways is answered 482 the second time (§8.2.2.2)', async (t) => {
  const layer = createLayer()
  const flow = flowBy('udp')
  layer.transactions.receive(arriving('INVITE', 'z9hG4bKway1'), flow)
  layer.transactions.receive(arriving('INVITE', 'z9hG4bKway2'), flow)
  t.same(statusesOf(layer.wire.sent), [100, 482])
  t.equal(layer.told.request.length, 1)
  layer.transactions.receive(arriving('INVITE', 'z9hG4bKway3', ';tag=b1'), flow)
  t.equal(layer.told.request.length, 2, 'within a dialog it is none')
})

test('beyond the limit new requests are answered 503 with Retry-After; those within dialogs have a reserve', async (t) => {
  const layer = createLayer({ maxServers: 4, maxClients: 1 })
  const flow = flowBy('udp')
  for (let index = 0; index < 6; index += 1)
    layer.transactions.receive(arriving('INVITE', `z9hG4bK${index}`, '', `call${index}`), flow)
  t.equal(layer.told.request.length, 4)
  t.equal(layer.transactions.size(), 4)
  t.same(answerTimes(layer.wire.sent, 503).length, 2)
  t.equal(headerOf(layer.wire.sent.at(-1)!.message, 'Retry-After'), '5')
  layer.transactions.receive(arriving('BYE', 'z9hG4bKbye', ';tag=b1', 'call0'), flow)
  t.equal(layer.told.request.length, 5)
  layer.transactions.receive(arriving('BYE', 'z9hG4bKbye2', ';tag=b1', 'call1'), flow)
  t.equal(layer.told.request.length, 5, 'the reserve is bounded too')
  await ask(layer, 'OPTIONS')
  await t.rejects(ask(layer, 'OPTIONS'), { name: 'TransportError' })
})

test('requests that are kept are bounded by their bytes as well', async (t) => {
  const request = (index: number) => arriving('INVITE', `z9hG4bK${index}`, '', `call${index}`)
  const { headers, body } = request(0)
  const bytes = headers.reduce((sum, { name, value }) => sum + name.length + value.length, body.length)
  const layer = createLayer({ maxServerBytes: 3 * bytes })
  for (let index = 0; index < 5; index += 1) layer.transactions.receive(request(index), flowBy('tcp'))
  t.equal(layer.told.request.length, 3)
  t.same(answerTimes(layer.wire.sent, 503).length, 2)
  // Of who was refused nothing but the wait for an ACK is left: it makes room.
  for (const transaction of layer.told.request)
    transaction.respond(responseTo(transaction.request, { status: 486, reason: 'Busy Here', toTag: 'busy' }))
  layer.transactions.receive(request(5), flowBy('tcp'))
  layer.transactions.receive({ ...request(6), body: new Uint8Array(2 * bytes) }, flowBy('tcp'))
  t.equal(layer.told.request.length, 4, 'what is larger than all the room there is is refused')
})

test('a core that throws harms nobody', async (t) => {
  const clock = createHandClock()
  const more = {
    request: () => {
      throw new Error('bug')
    },
  }
  const layer = createLayer({}, clock, more)
  layer.transactions.receive(arriving('OPTIONS', 'z9hG4bKo1'), flowBy('udp'))
  t.same(
    layer.log.lines.map(({ message }) => message),
    ['a SIP transaction failed'],
  )
  clock.advance(32_000)
  t.equal(layer.transactions.size(), 0)
})

/** Two layers on one clock, and a network between them that loses, delays and so reorders. */
function createLossyPair(random: Random, loss: number) {
  const clock = createHandClock()
  const sides: { receive: Transactions['receive'] }[] = []
  const carry = (to: number, message: SipMessage): void => {
    if (random.next() < loss) return
    clock.after(random.below(120), () => sides[to]?.receive(message, flowBy('udp')))
  }
  const transportsOf = (to: number) => ({
    request: async (request: SipRequest, _target: Target, branch: string) => {
      const stamped = withOurVia(request, 'udp', us, branch)
      carry(to, stamped)
      return { flow: flowBy('udp'), sent: stamped }
    },
    again: (request: SipRequest) => carry(to, request),
    respond: async (response: SipResponse) => carry(to, response),
  })
  let count = 0
  const layer = (self: number, handlers: Partial<TransactionHandlers>): Transactions => {
    const none = { request: () => undefined, ack: () => undefined, cancel: () => undefined }
    const deaf = { ...none, strayResponse: () => undefined, serverFailed: () => undefined }
    const transactions = createTransactions({
      clock,
      transports: transportsOf(1 - self),
      log: createQuietLog(),
      newId: () => `id${++count}`,
      newBranch: () => `z9hG4bK${++count}`,
      handlers: { ...deaf, ...handlers },
    })
    sides[self] = transactions
    return transactions
  }
  return { clock, layer }
}

for (const loss of [0.15, 0.3, 0.5])
  test(`at ${loss * 100} % loss every exchange ends, and each final response is heard once`, async (t) => {
    const random = createRandom(loss * 1000)
    const { clock, layer } = createLossyPair(random, loss)
    const asked = new Set<string>()
    const server = layer(1, {
      request(transaction) {
        const { request } = transaction
        const exchange = headerOf(request, 'Call-ID') ?? ''
        t.notOk(asked.has(exchange), 'the core hears of each request once')
        asked.add(exchange)
        if (request.method === 'INVITE') transaction.respond(answerTo(request, 180, transaction.toTag))
        const status = random.pick([200, 302, 404, 486, 603])
        clock.after(random.below(8_000), () => transaction.respond(answerTo(request, status, transaction.toTag)))
      },
    })
    const client = layer(0, {})
    const ends: { method: string; finals: number[]; failed: number; ended: number }[] = []
    for (let index = 0; index < 80; index += 1) {
      const end = { method: random.pick(['INVITE', 'OPTIONS']), finals: [] as number[], failed: 0, ended: 0 }
      ends.push(end)
      await client.request(requestOf(end.method, [], `exchange${index}`), targetBy('udp'), {
        response: ({ status }) => void (status >= 200 && end.finals.push(status)),
        failed: () => void (end.failed += 1),
        terminated: () => void (end.ended += 1),
      })
      clock.advance(random.below(100))
    }
    // The 2xx of an INVITE is repeated by dialogs, of which there are none here: one that is lost ends by the time of ringing.
    for (let turn = 0; turn < 700; turn += 1) {
      clock.advance(1_000)
      await Promise.resolve()
    }
    const finals = ends.filter(({ finals: heard }) => heard.length === 1)
    t.same(
      ends.filter(({ ended, finals: heard, failed }) => ended !== 1 || heard.length + failed !== 1),
      [],
      'each ended once, by one final response or one failure',
    )
    const unheard = ends.filter(({ method, failed }) => method === 'OPTIONS' && failed > 0)
    t.ok(unheard.length <= (loss < 0.4 ? 0 : 4), `${unheard.length} of the repeated kind were never heard`)
    t.ok(finals.length > ends.length * (0.95 - loss), `${finals.length} of ${ends.length} heard their answer`)
    t.same([client.size(), server.size(), clock.pending()], [0, 0, 0], 'nothing is left')
  })
