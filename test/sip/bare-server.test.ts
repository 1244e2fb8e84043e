/** Calls over a SIP server that adds nothing to what we say and polices nothing that comes: as much of a drachtio-server as can be relied on. */
import { test, type Test } from 'tap'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import { openBareServer, type Told } from '../fake/bare-sip-server.ts'
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
