/** Dialogs by the words of RFC 3261 §12 to §15, RFC 3262, RFC 3311 and RFC 4028: the machine alone, on a clock that the test moves. */
import { test } from 'tap'
import { stateOfPlaced, stateOfReceived, type DialogState } from '../../sip/server/dialog/dialog-state.ts'
import type { Deed, DialogEvent, Timer } from '../../sip/server/dialog/machine.ts'
import { stepDialog } from '../../sip/server/dialog/step-dialog.ts'
import { tagOf } from '../../sip/server/message/address.ts'
import { headerOf, headersOf } from '../../sip/server/message/header-fields.ts'
import type { HeaderField, SipRequest, SipResponse } from '../../sip/server/message/message.ts'
import { cseqOf } from '../../sip/server/message/numbered-fields.ts'
import { responseTo } from '../../sip/server/message/response-to.ts'
import { createRun } from '../../sip/server/run-machine.ts'
import type { Flow } from '../../sip/server/transport/transport.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createRandom, type Random } from '../fake/random.ts'

const flow: Flow = {
  protocol: 'udp',
  remote: { address: '192.0.2.9', port: 5060 },
  local: { address: '192.0.2.1', port: 5060 },
  connection: 0,
}
const timing = { t1: 500, t2: 4_000 }
const noBody = new Uint8Array(0)
const sdp = (version: number): Uint8Array => Buffer.from(`v=0\r\no=- 1 ${version} IN IP4 192.0.2.1\r\n`)
const isSdp: HeaderField = { name: 'Content-Type', value: 'application/sdp' }

type Deeds = { readonly [Name in Deed['do']]: Extract<Deed, { do: Name }> }

/** A dialog that runs; what it wants done is kept, with the ms since the start. */
function stage(first: DialogState, chance: () => number = () => 0) {
  const clock = createHandClock()
  const start = clock.now()
  const done: (Deed & { readonly at: number })[] = []
  let watch = (_deed: Deed): void => undefined
  let ended = 0
  const run = createRun<DialogState, DialogEvent, Deed, Timer, never>({
    clock,
    first: { state: first, actions: [] },
    step: (state, event) => stepDialog(state, event, { ...timing, chance: chance() }),
    perform(deed) {
      done.push({ ...deed, at: clock.now() - start })
      watch(deed)
    },
    ended: () => void (ended += 1),
    guarded: (action) => action(),
  })
  let commands = 0
  return {
    clock,
    state: run.state,
    feed: (event: DialogEvent) => run.feed(event, null),
    watch: (watcher: typeof watch) => void (watch = watcher),
    ended: () => ended,
    all: <Name extends Deed['do']>(name: Name): (Deeds[Name] & { readonly at: number })[] =>
      done.flatMap((deed) => (deed.do === name ? [deed as Deeds[Name] & { readonly at: number }] : [])),
    command: (): string => `command${++commands}`,
  }
}

type Stage = ReturnType<typeof stage>

const ids = (method: string, cseq: number, toTag = ''): HeaderField[] => [
  { name: 'From', value: '<sip:peer@example.com>;tag=peer' },
  { name: 'To', value: `<sip:us@example.com>${toTag}` },
  { name: 'Call-ID', value: 'call' },
  { name: 'CSeq', value: `${cseq} ${method}` },
]
type More = { readonly headers?: readonly HeaderField[]; readonly body?: Uint8Array }
const contact = (uri: string): HeaderField => ({ name: 'Contact', value: `<${uri}>` })
const field = (name: string, value: string): HeaderField => ({ name, value })

/** A request of the peer. */
const fromPeer = (method: string, cseq: number, { headers = [], body = noBody }: More = {}): SipRequest => ({
  kind: 'request',
  method,
  uri: 'sip:us@192.0.2.1',
  headers: [...ids(method, cseq, ';tag=us'), ...headers],
  body,
})
/** A request as an app drafts it. */
const draft = (method: string, { headers = [], body = noBody }: More = {}): SipRequest => ({
  kind: 'request',
  method,
  uri: 'sip:placeholder',
  headers,
  body,
})
const answerTo = (request: SipRequest, status: number, { headers = [], body = noBody }: More = {}): SipResponse =>
  responseTo(request, { status, reason: 'Whatever', toTag: 'us', headers, body })

const inviteOfPeer = (headers: readonly HeaderField[] = []): SipRequest => ({
  kind: 'request',
  method: 'INVITE',
  uri: 'sip:us@192.0.2.1',
  headers: [...ids('INVITE', 1), contact('sip:peer@192.0.2.9'), ...headers],
  body: sdp(1),
})

/** The INVITE came, and the app has just begun to ring. */
function called(headers: readonly HeaderField[] = [], chance?: () => number) {
  const invite = inviteOfPeer(headers)
  const ringing = answerTo(invite, 180)
  const state = stateOfReceived({ transactionId: 'invite', invite, response: ringing, flow, firstRSeq: 100 })
  if (!state) throw new Error('the INVITE has no Contact')
  const dialog = stage(state, chance)
  const answer = (status: number, more: More = {}): string => {
    const command = dialog.command()
    const response = answerTo(invite, status, more)
    dialog.feed({ type: 'answer', command, transactionId: 'invite', request: invite, response })
    return command
  }
  return { ...dialog, invite, answer }
}

/** The INVITE came and was answered and acknowledged. */
function calledAndAnswered(headers: readonly HeaderField[] = [], chance?: () => number) {
  const dialog = called(headers, chance)
  dialog.answer(200, { headers: [isSdp], body: sdp(1) })
  dialog.feed({ type: 'ack', request: fromPeer('ACK', 1), flow })
  return dialog
}

const ourInvite = (headers: readonly HeaderField[] = []): SipRequest => ({
  kind: 'request',
  method: 'INVITE',
  uri: 'sip:peer@example.com',
  headers: [
    field('From', '<sip:us@example.com>;tag=us'),
    field('To', '<sip:peer@example.com>'),
    field('Call-ID', 'call'),
    field('CSeq', '10 INVITE'),
    isSdp,
    ...headers,
  ],
  body: sdp(1),
})

const toUs = (request: SipRequest, status: number, headers: readonly HeaderField[] = []): SipResponse =>
  responseTo(request, { status, reason: 'Whatever', toTag: 'peer', headers })

/** Our INVITE went, and it rings. */
function calling(headers: readonly HeaderField[] = [], chance?: () => number) {
  const invite = ourInvite()
  const dialog = stage(stateOfPlaced(invite, toUs(invite, 180, [contact('sip:early@192.0.2.9')]), flow), chance)
  const success = toUs(invite, 200, [contact('sip:peer@192.0.2.9'), ...headers])
  const succeed = (): void => dialog.feed({ type: 'success', response: success, flow })
  return { ...dialog, invite, succeed }
}

/** Our INVITE went, was answered, and the app has acknowledged. */
function callingAndAnswered(headers: readonly HeaderField[] = [], chance?: () => number) {
  const dialog = calling(headers, chance)
  dialog.succeed()
  dialog.feed({ type: 'acknowledge', command: dialog.command(), draft: draft('ACK') })
  return dialog
}

/** The app sends. */
function send(dialog: Stage, method: string, more: More = {}): string {
  const command = dialog.command()
  dialog.feed({ type: 'send', command, draft: draft(method, more) })
  return command
}

/** The last request that was sent is answered. */
function hear(dialog: Stage, status: number, headers: readonly HeaderField[] = []): void {
  const { sequence, request } = dialog.all('send').at(-1)!
  dialog.feed({ type: 'response', sequence, response: toUs(request, status, headers), flow })
}

let arrivals = 0
/** A request of the peer comes; answers its transaction. */
function arrive(dialog: Stage, method: string, cseq: number, more: More = {}): string {
  const transactionId = `arrival${++arrivals}`
  dialog.feed({ type: 'request', transactionId, request: fromPeer(method, cseq, more), flow })
  return transactionId
}

/** The app answers a request that came. */
function answerArrived(dialog: Stage, transactionId: string, request: SipRequest, status: number): string {
  const command = dialog.command()
  dialog.feed({ type: 'answer', command, transactionId, request, response: answerTo(request, status) })
  return command
}

const statusOf = (dialog: Stage, transactionId: string): number | null => {
  const refused = dialog.all('refuse').find((deed) => deed.transactionId === transactionId)
  const answered = dialog.all('respond').find((deed) => deed.transactionId === transactionId)
  return refused?.status ?? answered?.response.status ?? null
}
const isAsked = (dialog: Stage, transactionId: string): boolean =>
  dialog.all('ask').some((deed) => deed.transactionId === transactionId)
const cseqsOf = (dialog: Stage): (string | null)[] => dialog.all('send').map(({ request }) => headerOf(request, 'CSeq'))
const lastSent = (dialog: Stage): SipRequest => dialog.all('send').at(-1)!.request
const refusalsOf = (dialog: Stage): string[] =>
  dialog.all('reply').flatMap(({ reply }) => (reply.kind === 'refused' ? [reply.reason] : []))

test('who is called sends along Record-Route as it came, who calls along it in reverse (§12.1)', async (t) => {
  const routes = [field('Record-Route', '<sip:p1.example.com;lr>'), field('Record-Route', '<sip:p2.example.com;lr>')]
  const came = calledAndAnswered(routes)
  send(came, 'INFO')
  t.same(headersOf(lastSent(came), 'Route'), ['<sip:p1.example.com;lr>', '<sip:p2.example.com;lr>'])
  t.equal(lastSent(came).uri, 'sip:peer@192.0.2.9')
  t.same([tagOf(lastSent(came), 'From'), tagOf(lastSent(came), 'To')], ['us', 'peer'])
  const went = callingAndAnswered(routes)
  send(went, 'INFO')
  t.same(headersOf(lastSent(went), 'Route'), ['<sip:p2.example.com;lr>', '<sip:p1.example.com;lr>'])
  t.same([tagOf(lastSent(went), 'From'), tagOf(lastSent(went), 'To')], ['us', 'peer'])
})

test('a strict router stands in the Request-URI, and the target behind the other routes (§12.2.1.1)', async (t) => {
  const dialog = calledAndAnswered([field('Record-Route', '<sip:old.example.com>, <sip:p2.example.com;lr>')])
  send(dialog, 'INFO')
  t.equal(lastSent(dialog).uri, 'sip:old.example.com')
  t.same(headersOf(lastSent(dialog), 'Route'), ['<sip:p2.example.com;lr>', '<sip:peer@192.0.2.9>'])
})

test('the 2xx makes an early dialog a confirmed one, with its Contact and its routes (§12.1.2, §13.2.2.4)', async (t) => {
  const dialog = calling([field('Record-Route', '<sip:p1.example.com;lr>')])
  send(dialog, 'PRACK')
  t.equal(lastSent(dialog).uri, 'sip:early@192.0.2.9')
  dialog.succeed()
  t.equal(dialog.state().name, 'confirmed')
  send(dialog, 'INFO')
  t.equal(lastSent(dialog).uri, 'sip:peer@192.0.2.9')
  t.same(headersOf(lastSent(dialog), 'Route'), ['<sip:p1.example.com;lr>'])
})

test('CSeq grows by one with each request, or to what the app wants (§12.2.1.1)', async (t) => {
  const dialog = callingAndAnswered()
  send(dialog, 'INFO')
  send(dialog, 'OPTIONS')
  send(dialog, 'INFO', { headers: [field('CSeq', '20 INFO')] })
  send(dialog, 'INFO', { headers: [field('CSeq', '7 INFO')] })
  t.same(cseqsOf(dialog), ['11 INFO', '12 OPTIONS', '20 INFO', '21 INFO'])
})

test('a request whose CSeq is not higher is not told: an older one is refused with 500 (§12.2.2), the same by another way with 482 (§8.2.2.2)', async (t) => {
  const dialog = calledAndAnswered()
  const looped = arrive(dialog, 'INVITE', 1, { headers: [contact('sip:peer@192.0.2.9')] })
  const first = arrive(dialog, 'INFO', 5)
  const again = arrive(dialog, 'INFO', 5)
  const other = arrive(dialog, 'OPTIONS', 5)
  const older = arrive(dialog, 'BYE', 4)
  const next = arrive(dialog, 'INFO', 9)
  t.same(
    [looped, first, again, other, older, next].map((id) => isAsked(dialog, id)),
    [false, true, false, false, false, true],
  )
  t.same(
    [looped, again, other, older].map((id) => statusOf(dialog, id)),
    [482, 482, 500, 500],
  )
  t.equal(dialog.state().name, 'confirmed', 'an old BYE ends nothing')
})

test('INVITE and UPDATE and their 2xx move the peer, other requests do not (§12.2, RFC 3311 §5)', async (t) => {
  const dialog = calledAndAnswered()
  const target = (): string => dialog.state().remoteTarget
  arrive(dialog, 'INFO', 2, { headers: [contact('sip:wrong@192.0.2.9')] })
  t.equal(target(), 'sip:peer@192.0.2.9')
  const update = arrive(dialog, 'UPDATE', 3, { headers: [contact('sip:two@192.0.2.9')] })
  t.equal(target(), 'sip:two@192.0.2.9')
  answerArrived(dialog, update, fromPeer('UPDATE', 3), 200)
  send(dialog, 'INVITE', { headers: [isSdp], body: sdp(2) })
  hear(dialog, 200, [contact('sip:three@192.0.2.9')])
  t.equal(target(), 'sip:three@192.0.2.9')
  send(dialog, 'INFO')
  hear(dialog, 200, [contact('sip:wrong@192.0.2.9')])
  t.equal(target(), 'sip:three@192.0.2.9')
})

test('our 2xx goes out again after T1, doubling up to T2, until its ACK comes (§13.3.1.4)', async (t) => {
  const dialog = called()
  dialog.answer(200)
  dialog.clock.advance(12_000)
  t.same(
    dialog.all('respondAgain').map(({ at }) => at),
    [500, 1_500, 3_500, 7_500, 11_500],
  )
  dialog.feed({ type: 'ack', request: fromPeer('ACK', 2), flow })
  dialog.clock.advance(4_000)
  t.equal(dialog.all('respondAgain').length, 6, 'the ACK of another INVITE is none')
  dialog.feed({ type: 'ack', request: fromPeer('ACK', 1), flow })
  dialog.feed({ type: 'ack', request: fromPeer('ACK', 1), flow })
  dialog.clock.advance(60_000)
  t.equal(dialog.all('respondAgain').length, 6)
  t.same(
    dialog.all('tell').map(({ message }) => message),
    [fromPeer('ACK', 1)],
    'the app hears of it once',
  )
})

test('without an ACK in 64*T1 the call is ended, and the app hears of it as of a BYE (§13.3.1.4)', async (t) => {
  const dialog = called()
  dialog.answer(200)
  dialog.clock.advance(31_999)
  t.same(cseqsOf(dialog), [])
  dialog.clock.advance(1)
  t.same(cseqsOf(dialog), ['1 BYE'])
  t.match(headerOf(lastSent(dialog), 'Reason'), /ACK timeout/)
  const [told] = dialog.all('tell')
  t.same(told?.passage, { source: 'application', transactionId: 'unsolicited', flow })
  t.match(told?.message, { method: 'BYE' })
  hear(dialog, 200)
  t.equal(dialog.state().name, 'terminated')
  t.equal(dialog.clock.pending(), 0)
})

test('where our 2xx cannot be sent at all nobody is waited for: the call is ended, and the app hears of it (§17.2.4)', async (t) => {
  const dialog = called()
  dialog.answer(200)
  dialog.feed({ type: 'answerLost', transactionId: 'another' })
  t.same(cseqsOf(dialog), [], 'an answer to something else is none of this')
  dialog.feed({ type: 'answerLost', transactionId: 'invite' })
  t.same(cseqsOf(dialog), ['1 BYE'])
  t.match(headerOf(lastSent(dialog), 'Reason'), /the answer could not be sent/)
  t.match(dialog.all('tell')[0]?.message, { method: 'BYE' })
  dialog.feed({ type: 'answerLost', transactionId: 'invite' })
  dialog.clock.advance(40_000)
  t.same([cseqsOf(dialog).length, dialog.all('tell').length, dialog.all('respondAgain').length], [1, 1, 0])
  const held = called()
  held.answer(200)
  send(held, 'BYE')
  held.feed({ type: 'answerLost', transactionId: 'invite' })
  t.same(cseqsOf(held), ['1 BYE'], 'one BYE, that of the app')
})

test('who was called says BYE behind the ACK, or when it is clear that none comes (§15)', async (t) => {
  const acknowledged = called()
  acknowledged.answer(200)
  const bye = send(acknowledged, 'BYE')
  t.same(cseqsOf(acknowledged), [])
  acknowledged.feed({ type: 'ack', request: fromPeer('ACK', 1), flow })
  t.same(
    acknowledged.all('send').map(({ command }) => command),
    [bye],
  )
  const lost = called()
  lost.answer(200)
  send(lost, 'BYE')
  lost.clock.advance(32_000)
  t.same(cseqsOf(lost), ['1 BYE'], 'one BYE, that of the app')
  t.equal(headerOf(lastSent(lost), 'Reason'), null)
})

test('a BYE that waits for the ACK is dropped when the peer says BYE first', async (t) => {
  const dialog = called()
  dialog.answer(200)
  send(dialog, 'BYE')
  dialog.feed({ type: 'end', reason: 'the app is gone', told: false })
  t.ok(isAsked(dialog, arrive(dialog, 'BYE', 2)))
  t.same(refusalsOf(dialog), ['unable to find dialog'])
  dialog.clock.advance(200_000)
  t.same(cseqsOf(dialog), [])
})

test('each repetition of their 2xx gets the same ACK, with the CSeq of the INVITE and its credentials (§13.2.2.4)', async (t) => {
  const dialog = callingAndAnswered()
  t.equal(headerOf(dialog.all('sendAck')[0]!.request, 'CSeq'), '10 ACK')
  dialog.succeed()
  dialog.succeed()
  t.equal(dialog.all('sendAckAgain').length, 2)
  send(dialog, 'INVITE', { headers: [field('Proxy-Authorization', 'Digest x'), isSdp], body: sdp(2) })
  hear(dialog, 200)
  dialog.feed({ type: 'acknowledge', command: dialog.command(), draft: draft('ACK') })
  const second = dialog.all('sendAck')[1]!.request
  t.equal(headerOf(second, 'CSeq'), '11 ACK')
  t.equal(headerOf(second, 'Proxy-Authorization'), 'Digest x')
  dialog.succeed()
  t.equal(dialog.all('sendAckAgain').length, 2, 'of an INVITE before it: nothing')
  hear(dialog, 200)
  t.equal(dialog.all('sendAckAgain').length, 3)
  t.equal(dialog.all('tell').length, 1, 'and the app hears of one 2xx')
})

test('a 2xx that the app does not acknowledge in 64*T1 is acknowledged and hung up', async (t) => {
  const dialog = calling()
  dialog.succeed()
  dialog.clock.advance(31_999)
  t.equal(dialog.all('sendAck').length, 0)
  dialog.clock.advance(1)
  t.equal(dialog.all('sendAck').length, 1)
  t.same(cseqsOf(dialog), ['11 BYE'])
})

test('glare: no second offer while one waits for its answer, in whichever direction (§14.1, §14.2, RFC 3311 §5)', async (t) => {
  const ours = callingAndAnswered()
  send(ours, 'INVITE', { headers: [isSdp], body: sdp(2) })
  t.equal(statusOf(ours, arrive(ours, 'INVITE', 1)), 491)
  t.equal(statusOf(ours, arrive(ours, 'UPDATE', 2, { body: sdp(2) })), 491)
  t.ok(isAsked(ours, arrive(ours, 'UPDATE', 3)), 'one without an offer is none')
  send(ours, 'UPDATE')
  t.same(
    ours.all('answerHere').map(({ response }) => response.status),
    [491],
  )
  t.same(cseqsOf(ours), ['11 INVITE'])

  const theirs = calledAndAnswered([], () => 0.99)
  const invite = arrive(theirs, 'INVITE', 2)
  send(theirs, 'INVITE', { body: sdp(2) })
  send(theirs, 'UPDATE', { body: sdp(2) })
  t.equal(theirs.all('answerHere').length, 2)
  send(theirs, 'UPDATE')
  t.same(cseqsOf(theirs), ['1 UPDATE'], 'it changes nothing of the session description')
  const soon = arrive(theirs, 'INVITE', 3)
  t.equal(statusOf(theirs, soon), 500)
  const refusal = theirs.all('refuse').find(({ transactionId }) => transactionId === soon)
  t.same(refusal?.headers, [field('Retry-After', '10')])
  answerArrived(theirs, invite, fromPeer('INVITE', 2), 200)
  t.equal(statusOf(theirs, arrive(theirs, 'INVITE', 4)), 500, 'its 2xx waits for the ACK')
})

test('an UPDATE without an offer does not hide the INVITE that is asked', async (t) => {
  const dialog = calledAndAnswered()
  const invite = arrive(dialog, 'INVITE', 2)
  const update = arrive(dialog, 'UPDATE', 3)
  answerArrived(dialog, update, fromPeer('UPDATE', 3), 200)
  send(dialog, 'INVITE', { body: sdp(2) })
  t.equal(dialog.all('answerHere').length, 1)
  answerArrived(dialog, invite, fromPeer('INVITE', 2), 200)
  t.equal(statusOf(dialog, invite), 200)
})

test('before the offer of the INVITE is answered the peer may make no other (RFC 3311 §5.2)', async (t) => {
  const dialog = called()
  t.equal(statusOf(dialog, arrive(dialog, 'UPDATE', 2, { body: sdp(2) })), 500)
  dialog.answer(183, { headers: [field('Require', '100rel'), isSdp], body: sdp(1) })
  t.ok(isAsked(dialog, arrive(dialog, 'UPDATE', 3, { body: sdp(2) })), 'a reliable answer is one')
})

test('481 to INVITE, UPDATE and INFO ends the call, 408 to INVITE and UPDATE (§12.2.1.2, RFC 5057 §5.1)', async (t) => {
  const after = (method: string, status: number): string => {
    const dialog = callingAndAnswered()
    send(dialog, method)
    hear(dialog, status)
    return dialog.state().name
  }
  for (const method of ['INVITE', 'UPDATE', 'INFO']) t.equal(after(method, 481), 'ending', method)
  t.same([after('INVITE', 408), after('UPDATE', 408), after('INFO', 408)], ['ending', 'ending', 'confirmed'])
  t.same([after('REFER', 481), after('INFO', 500)], ['confirmed', 'confirmed'])
})

test('a BYE that is challenged is sent again; without an end it is over after 2*64*T1 (§15.1.1)', async (t) => {
  const dialog = callingAndAnswered()
  send(dialog, 'BYE')
  hear(dialog, 407)
  t.equal(dialog.state().name, 'ending')
  const info = send(dialog, 'INFO')
  t.ok(dialog.all('reply').some(({ command, reply }) => command === info && reply.kind === 'refused'))
  t.equal(statusOf(dialog, arrive(dialog, 'INFO', 1)), 481)
  send(dialog, 'BYE')
  t.same(cseqsOf(dialog), ['11 BYE', '12 BYE'])
  dialog.clock.advance(63_999)
  t.equal(dialog.state().name, 'ending')
  dialog.clock.advance(1)
  t.equal(dialog.state().name, 'terminated')
  t.equal(dialog.ended(), 1)
})

test('their BYE ends the dialog whatever the app says, and what is asked gets 487 (§15.1.2)', async (t) => {
  const dialog = calledAndAnswered()
  const invite = arrive(dialog, 'INVITE', 2)
  const bye = arrive(dialog, 'BYE', 3)
  t.equal(dialog.state().name, 'terminated')
  t.equal(statusOf(dialog, invite), 487)
  t.ok(isAsked(dialog, bye))
  answerArrived(dialog, bye, fromPeer('BYE', 3), 200)
  t.equal(statusOf(dialog, bye), 200)
  t.equal(dialog.clock.pending(), 0)
})

test('their BYE before our answer is as good as a CANCEL (§15)', async (t) => {
  const dialog = called()
  dialog.answer(180)
  const bye = arrive(dialog, 'BYE', 2)
  t.equal(statusOf(dialog, bye), 200)
  t.same(dialog.all('refuse').find(({ transactionId }) => transactionId === 'invite')?.status, 487)
  t.equal(dialog.state().name, 'terminated')
})

test('who was called may not say BYE before its answer', async (t) => {
  const dialog = called()
  send(dialog, 'BYE')
  t.same(refusalsOf(dialog), ['unable to find dialog'])
})

test('a reliable response is numbered, and goes out again from T1, doubling, until its PRACK comes (RFC 3262 §3)', async (t) => {
  const dialog = called()
  dialog.answer(183, { headers: [field('Require', '100rel')] })
  const second = dialog.answer(180, { headers: [field('Require', '100rel')] })
  const accepted = dialog.answer(200)
  dialog.clock.advance(4_000)
  const sent = (): string[] =>
    dialog.all('respond').map(({ at, response }) => `${response.status} ${headerOf(response, 'RSeq')} ${at}`)
  t.same(sent(), ['183 100 0', '183 100 500', '183 100 1500', '183 100 3500'], 'one is on its way at a time')
  t.ok(
    dialog.all('reply').some(({ command }) => command === second),
    'the app knows already how it will go',
  )
  t.equal(statusOf(dialog, arrive(dialog, 'PRACK', 2, { headers: [field('RAck', '100 2 INVITE')] })), 481)
  t.equal(statusOf(dialog, arrive(dialog, 'PRACK', 3, { headers: [field('RAck', '101 1 INVITE')] })), 481)
  t.ok(isAsked(dialog, arrive(dialog, 'PRACK', 4, { headers: [field('RAck', '100 1 INVITE')] })))
  t.same(sent().slice(4), ['180 101 4000'])
  t.equal(dialog.state().name, 'early', 'the 2xx waits for every PRACK')
  t.notOk(dialog.all('reply').some(({ command }) => command === accepted))
  arrive(dialog, 'PRACK', 5, { headers: [field('RAck', '101 1 INVITE')] })
  t.same(sent().slice(5), ['200 null 4000'])
  t.equal(dialog.state().name, 'confirmed')
  t.ok(dialog.all('reply').some(({ command }) => command === accepted))
})

test('an INVITE whose reliable response gets no PRACK in 64*T1 is refused with 504 (RFC 3262 §3)', async (t) => {
  const dialog = called()
  dialog.answer(183, { headers: [field('Require', '100rel')] })
  dialog.answer(200)
  dialog.clock.advance(32_000)
  t.same(
    dialog.all('refuse').map(({ transactionId, status }) => [transactionId, status]),
    [['invite', 504]],
  )
  t.same(refusalsOf(dialog), ['the request has been answered already'])
  t.equal(dialog.state().name, 'terminated')
  t.equal(dialog.clock.pending(), 0)
})

test('an INVITE is accepted once', async (t) => {
  const dialog = called()
  dialog.answer(200)
  dialog.answer(200)
  t.equal(dialog.all('respond').length, 1)
  t.same(refusalsOf(dialog), ['the request has been answered already'])
})

test('reliable responses to our INVITE are heard in their order, each once (RFC 3262 §4)', async (t) => {
  const dialog = calling()
  const heard = [7, 7, 9, 8, 8, 9].map((rseq) => {
    const before = dialog.state().remoteRSeq
    dialog.feed({ type: 'provisional', rseq })
    return dialog.state().remoteRSeq !== before
  })
  t.same(heard, [true, false, false, true, false, true])
})

const expires = (value: string): HeaderField => field('Session-Expires', value)

test('who refreshes does so at half time: by UPDATE where the peer takes it, else by INVITE with the last description (RFC 4028 §7.4, §10)', async (t) => {
  const update = callingAndAnswered([expires('200;refresher=uac'), field('Allow', 'INVITE, UPDATE')])
  update.clock.advance(99_999)
  t.same(cseqsOf(update), [])
  update.clock.advance(1)
  t.same(cseqsOf(update), ['11 UPDATE'])
  t.equal(headerOf(lastSent(update), 'Session-Expires'), '200;refresher=uac')
  hear(update, 200, [expires('200;refresher=uac')])
  update.clock.advance(100_000)
  t.same(cseqsOf(update), ['11 UPDATE', '12 UPDATE'])

  const invite = callingAndAnswered([expires('200;refresher=uac')])
  invite.clock.advance(100_000)
  t.same(cseqsOf(invite), ['11 INVITE'])
  t.same(Buffer.from(lastSent(invite).body), sdp(1))
  hear(invite, 200, [expires('200;refresher=uac')])
  t.equal(headerOf(invite.all('sendAck').at(-1)!.request, 'CSeq'), '11 ACK', 'the app does not hear of it')
  t.equal(invite.all('tell').length, 0)
  t.equal(invite.all('followRefresh').length, 0, 'nothing was described')
  invite.clock.advance(100_000)
  const { sequence, request } = invite.all('send').at(-1)!
  const moved = { ...toUs(request, 200, [expires('200;refresher=uac'), isSdp]), body: sdp(2) }
  invite.feed({ type: 'response', sequence, response: moved, flow })
  t.same(
    invite.all('followRefresh').map(({ description }) => description),
    [Buffer.from(sdp(2)).toString()],
    'what the peer describes anew is followed (§14.1)',
  )
})

test('a refresh of ours that the caller asks proof for is tried again without one, and the call ends with its session (RFC 4028 §10)', async (t) => {
  const asked = [field('WWW-Authenticate', 'Digest realm="carrier", nonce="n1", qop="auth"')]
  const begun = (allow: readonly HeaderField[] = []) =>
    calledAndAnswered([expires('90;refresher=uas'), field('Supported', 'timer'), ...allow])
  const dialog = begun([field('Allow', 'INVITE, UPDATE')])
  dialog.clock.advance(45_000)
  hear(dialog, 401, asked)
  dialog.clock.advance(10_000)
  t.same(cseqsOf(dialog), ['1 UPDATE', '2 INVITE'], 'by the other way, too')
  hear(dialog, 407, asked)
  const told = dialog.all('tell').length
  dialog.clock.advance(5_000)
  t.same(cseqsOf(dialog).slice(2), ['3 BYE'])
  t.match(headerOf(lastSent(dialog), 'Reason'), /session expired/)
  const heard = dialog.all('tell').slice(told)
  t.match(
    heard.map(({ message }) => message),
    [{ method: 'BYE' }],
    'which the app hears of, and of nothing that it did not ask',
  )
  t.notOk(dialog.all('tell').some(({ message }) => message.kind === 'response'))

  const taken = begun()
  taken.clock.advance(45_000)
  hear(taken, 401, asked)
  taken.clock.advance(10_000)
  hear(taken, 200, [expires('90;refresher=uac')])
  taken.clock.advance(44_000)
  t.same([cseqsOf(taken), taken.state().name], [['1 INVITE', '2 INVITE'], 'confirmed'], 'one that is taken then counts')
})

test('a session that the peer does not refresh is ended a little before its time (RFC 4028 §10)', async (t) => {
  const dialog = calledAndAnswered([expires('90;refresher=uac'), field('Supported', 'timer')])
  const [answer] = dialog.all('respond')
  t.equal(headerOf(answer!.response, 'Session-Expires'), '90;refresher=uac')
  t.equal(headerOf(answer!.response, 'Require'), 'timer')
  dialog.clock.advance(59_999)
  t.same(cseqsOf(dialog), [])
  dialog.clock.advance(1)
  t.same(cseqsOf(dialog), ['1 BYE'])
  t.match(headerOf(lastSent(dialog), 'Reason'), /session expired/)
})

test('an UPDATE of the peer refreshes the session, and one below 90 s is refused with 422 (RFC 4028 §5, §9)', async (t) => {
  const dialog = calledAndAnswered([expires('90;refresher=uac'), field('Supported', 'timer')])
  dialog.clock.advance(50_000)
  const refreshing = { headers: [expires('90;refresher=uac'), field('Supported', 'timer')] }
  const update = arrive(dialog, 'UPDATE', 2, refreshing)
  answerArrived(dialog, update, fromPeer('UPDATE', 2, refreshing), 200)
  dialog.clock.advance(59_999)
  t.equal(dialog.state().name, 'confirmed')
  t.equal(statusOf(dialog, arrive(dialog, 'UPDATE', 3, { headers: [expires('60')] })), 422)
  dialog.clock.advance(1)
  t.equal(dialog.state().name, 'ending')
})

test('a refresh that meets another offer waits 2.1 to 4 s where the Call-ID is ours, else up to 2 s (§14.1)', async (t) => {
  const waits = (role: 'uac' | 'uas', chance: number): number => {
    const refreshing = role === 'uac' ? callingAndAnswered : calledAndAnswered
    const dialog = refreshing([expires(`200;refresher=${role}`), field('Supported', 'timer')], () => chance)
    dialog.clock.advance(100_000)
    hear(dialog, 491)
    dialog.clock.advance(5_000)
    const [first, second] = dialog.all('send')
    return (second?.at ?? 0) - (first?.at ?? 0)
  }
  t.same([waits('uac', 0), waits('uac', 0.999)], [2_100, 3_990])
  t.same([waits('uas', 0), waits('uas', 0.999)], [0, 1_990])
})

test('a peer that takes no UPDATE after all is refreshed by INVITE, one that wants more time gets it (RFC 4028 §7.3)', async (t) => {
  const dialog = callingAndAnswered([expires('200;refresher=uac'), field('Allow', 'UPDATE')])
  dialog.clock.advance(100_000)
  hear(dialog, 405)
  dialog.clock.advance(0)
  t.same(cseqsOf(dialog), ['11 UPDATE', '12 INVITE'])
  hear(dialog, 422, [field('Min-SE', '300')])
  dialog.clock.advance(0)
  t.equal(headerOf(lastSent(dialog), 'Session-Expires'), '300;refresher=uac')
  hear(dialog, 500)
  dialog.clock.advance(10_000)
  t.same(cseqsOf(dialog).slice(2), ['13 INVITE', '14 INVITE'], 'and what fails otherwise is tried again')
})

test('what was under way is told when the dialog is over, and nothing else happens to it', async (t) => {
  const dialog = callingAndAnswered()
  const info = send(dialog, 'INFO')
  dialog.feed({ type: 'forget' })
  t.equal(dialog.clock.pending(), 0)
  hear(dialog, 200)
  hear(dialog, 200)
  t.same(
    dialog.all('tell').map(({ passage }) => passage.transactionId),
    [info],
    'once',
  )
  dialog.succeed()
  t.equal(dialog.all('sendAckAgain').length, 1, 'their 2xx is acknowledged as often as it comes')
  t.equal(statusOf(dialog, arrive(dialog, 'INFO', 1)), 481)
  send(dialog, 'BYE')
  t.same(cseqsOf(dialog), ['11 INFO'])
  dialog.feed({ type: 'forget' })
  t.equal(dialog.ended(), 1)
})

test('a dialog can be written down, and who reads it can go on with it', async (t) => {
  const dialog = calledAndAnswered([expires('90;refresher=uac'), field('Supported', 'timer')])
  send(dialog, 'INFO')
  arrive(dialog, 'INVITE', 2)
  const written = JSON.stringify(dialog.state())
  t.same(JSON.parse(written), dialog.state())
  const other = stage(JSON.parse(written) as DialogState)
  other.feed({ type: 'end', reason: 'the node is gone', told: false })
  const bye = lastSent(other)
  t.same([headerOf(bye, 'CSeq'), headerOf(bye, 'Call-ID'), tagOf(bye, 'To')], ['2 BYE', 'call', 'peer'])
  t.equal(bye.uri, 'sip:peer@192.0.2.9')
})

/** A peer, an app and a network that do anything in any order, and what may be said of a dialog all the same. */
function createWorld(dialog: Stage, random: Random) {
  const faults: string[] = []
  const arrived = new Map<string, SipRequest>()
  /** Of those the app may still answer. */
  const open = new Set<string>()
  const finals = new Map<string, number>()
  const replies = new Map<string, number>()
  const told = new Map<string, number>()
  const commands: string[] = []
  let [theirs, askedLast, sentLast] = [10, -1, dialog.state().localSequence]
  const count = (counts: Map<string, number>, key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1)
  const hold = (claim: boolean, fault: string): void => void (claim || faults.push(fault))

  function watch(deed: Deed): void {
    if (deed.do === 'ask') {
      const cseq = cseqOf(arrived.get(deed.transactionId)!)!.number
      hold(cseq > askedLast, `CSeq ${cseq} came behind ${askedLast}`)
      askedLast = cseq
      open.add(deed.transactionId)
    }
    if (deed.do === 'refuse') {
      count(finals, deed.transactionId)
      // As the server does it: whoever asked is told that it is over.
      if (open.delete(deed.transactionId)) dialog.feed({ type: 'answered', transactionId: deed.transactionId })
    }
    if (deed.do === 'respond') {
      hold(!finals.has(deed.transactionId), `${deed.response.status} behind the final answer`)
      if (deed.response.status < 200) return
      count(finals, deed.transactionId)
      open.delete(deed.transactionId)
    }
    if (deed.do === 'send') {
      hold(deed.sequence > sentLast, `CSeq ${deed.sequence} was sent behind ${sentLast}`)
      hold(cseqOf(deed.request)!.number === deed.sequence, 'CSeq is not that of the request')
      hold(dialog.state().name !== 'terminated', `${deed.request.method} of a dialog that is over`)
      const offers = dialog.state().underWay.filter(({ method }) => method === 'INVITE' || method === 'UPDATE')
      hold(offers.length <= 1, 'two offers at once')
      sentLast = deed.sequence
    }
    if (deed.do === 'sendAck') hold(cseqOf(deed.request)!.number === dialog.state().answer?.sequence, 'a foreign ACK')
    const replied = deed.do === 'send' || deed.do === 'sendAck' || deed.do === 'reply' || deed.do === 'answerHere'
    if (replied && deed.command !== null) count(replies, deed.command)
    if (deed.do === 'tell' && deed.message.kind === 'response' && deed.message.status >= 200)
      count(told, deed.passage.transactionId)
  }

  const command = (): string => {
    commands.push(dialog.command())
    return commands.at(-1)!
  }
  const statusFrom = (statuses: readonly number[]) => random.pick(statuses)
  const sent = () => dialog.all('send')
  const more = (): More => ({
    body: random.below(2) === 0 ? noBody : sdp(theirs),
    headers: [isSdp, expires('90;refresher=uas'), field('Allow', random.pick(['UPDATE', 'BYE']))],
  })

  function request(): void {
    const isNew = random.below(4) > 0
    if (isNew) theirs += 1 + random.below(3)
    const method = random.pick(['INFO', 'INVITE', 'INVITE', 'UPDATE', 'UPDATE', 'PRACK', 'BYE'])
    const rack = field('RAck', `${dialog.state().ringing?.pending?.rseq ?? 1} 1 INVITE`)
    const { headers = [], body = noBody } = more()
    const coming = fromPeer(method, isNew ? theirs : random.below(theirs), { headers: [...headers, rack], body })
    const transactionId = `arrival${++arrivals}`
    arrived.set(transactionId, coming)
    dialog.feed({ type: 'request', transactionId, request: coming, flow })
  }

  function answer(): void {
    if (open.size === 0) return
    const transactionId = random.pick([...open])
    const asked = arrived.get(transactionId)!
    const response = answerTo(asked, statusFrom([100, 183, 200, 200, 488]), {
      headers: random.below(2) === 0 ? [] : [field('Require', '100rel'), isSdp],
      body: random.below(2) === 0 ? noBody : sdp(1),
    })
    // A final refusal of the first INVITE is none of the dialog's business.
    const isFirst = dialog.state().ringing?.transactionId === transactionId
    if (isFirst && response.status >= 300) return
    dialog.feed({ type: 'answer', command: command(), transactionId, request: asked, response })
    if (!isFirst && response.status >= 200) dialog.feed({ type: 'answered', transactionId })
  }

  function response(): void {
    if (sent().length === 0) return
    const { sequence, request: asking } = random.pick(sent().slice(-4))
    const status = statusFrom([100, 183, 200, 200, 200, 401, 405, 422, 481, 491, 500])
    const headers = [contact('sip:moved@192.0.2.9'), expires('90'), field('Min-SE', '120')]
    dialog.feed({ type: 'response', sequence, response: toUs(asking, status, headers), flow })
  }

  const steps: readonly (() => void)[] = [
    request,
    request,
    answer,
    answer,
    response,
    response,
    () => {
      const draftOf = draft(random.pick(['INFO', 'INVITE', 'UPDATE', 'REFER', 'BYE']), more())
      dialog.feed({ type: 'send', command: command(), draft: draftOf })
    },
    () => dialog.feed({ type: 'acknowledge', command: command(), draft: draft('ACK', more()) }),
    () => {
      const sequence = dialog.state().accepted?.sequence ?? 1
      dialog.feed({ type: 'ack', request: fromPeer('ACK', random.pick([sequence, sequence, 1, theirs])), flow })
    },
    () => dialog.feed({ type: 'success', response: toUs(ourInvite(), 200, [expires('90;refresher=uac')]), flow }),
    () => dialog.feed({ type: 'provisional', rseq: random.below(5) }),
    () => dialog.feed({ type: 'sent', flow }),
    () => dialog.clock.advance(random.pick([1, 400, 3_000, 40_000])),
    () => void (random.below(20) === 0 && dialog.feed({ type: 'end', reason: 'enough', told: true })),
    () => void (random.below(60) === 0 && dialog.feed({ type: 'forget' })),
  ]

  return {
    begin(): void {
      dialog.watch(watch)
      if (dialog.state().role !== 'uas') return
      arrived.set('invite', inviteOfPeer())
      open.add('invite')
    },
    step: (): void => random.pick(steps)(),
    /** The dialog ends, and the app answers what it was asked. */
    end(): void {
      dialog.feed({ type: 'end', reason: 'the end', told: false })
      dialog.clock.advance(200_000)
      dialog.feed({ type: 'forget' })
      for (const transactionId of open) {
        if (finals.has(transactionId)) continue
        const asked = arrived.get(transactionId)!
        dialog.feed({
          type: 'answer',
          command: command(),
          transactionId,
          request: asked,
          response: answerTo(asked, 487),
        })
      }
    },
    faults: (): string[] => [
      ...faults,
      ...[...arrived.keys()]
        .filter((id) => finals.get(id) !== 1)
        .map((id) => `${id} has ${finals.get(id) ?? 0} answers`),
      ...commands.filter((id) => replies.get(id) !== 1).map((id) => `${id} has ${replies.get(id) ?? 0} replies`),
      ...[...told].filter(([, times]) => times > 1).map(([id]) => `the answer to ${id} was told twice`),
      ...(dialog.state().name === 'terminated' ? [] : ['it goes on']),
      ...(dialog.ended() === 1 ? [] : [`it ended ${dialog.ended()} times`]),
      ...(dialog.clock.pending() === 0 ? [] : ['a timer is left']),
    ],
  }
}

for (const role of ['uas', 'uac'] as const)
  test(`whatever comes in whatever order, a dialog of the ${role} counts upwards, answers once, and ends with nothing left`, async (t) => {
    const wrong: string[] = []
    const names = new Set<string>()
    for (let seed = 1; seed <= 400; seed += 1) {
      const random = createRandom(seed)
      const dialog = role === 'uas' ? called([], random.next) : calling([], random.next)
      const world = createWorld(dialog, random)
      world.begin()
      for (let turn = 0; turn < 120; turn += 1) {
        world.step()
        names.add(dialog.state().name)
      }
      world.end()
      wrong.push(...world.faults().map((fault) => `seed ${seed}: ${fault}`))
    }
    t.same(wrong.slice(0, 10), [])
    t.same([...names].toSorted(), ['confirmed', 'early', 'ending', 'terminated'], 'it has been everywhere')
  })
