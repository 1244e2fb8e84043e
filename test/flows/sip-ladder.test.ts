/** SIP messages of a call, from the socket to its diagnosis: what came and was sent, in order, and none of its secrets. */
import { test } from 'tap'
import { CallDiagnostics, type DiagnosedMessage } from '../../model/call-diagnostics.ts'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { openSipPeer } from '../fake/sip-peer.ts'
import { until } from '../scenes/in-time.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'

const sdp = `v=0
o=- 7 1 IN IP4 127.0.0.1
s=-
c=IN IP4 127.0.0.1
t=0 0
m=audio 40000 RTP/AVP 0
a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:c2VjcmV0LWtleS1vZi10aGUtc291bmQtMTIzNDU2
`.replaceAll('\n', '\r\n')

test('the ladder of a telephone call is kept', { timeout: 60_000 }, async (t) => {
  const stage = await openPhoneStage(t, createHearingEngine({ tone: null }))
  const peer = await openSipPeer(stage.port)
  t.teardown(() => peer.close())
  const gateways = [{ host: '127.0.0.1', port: peer.port }]
  const messagesOf = (callId: string): Promise<DiagnosedMessage[]> =>
    until(async () => {
      const { messages } = CallDiagnostics.parse(await stage.rest('GET', `/phone-calls/${callId}/diagnostics`))
      return messages.data.length > 0 && messages.data
    })
  const startOf = ({ direction, text }: DiagnosedMessage): string =>
    `${direction} ${text.split(' ').slice(0, 2).join(' ')}`

  await t.test('of a call that came, with what was sent for it', async (t) => {
    const line = await stage.addLine()
    const headers = ['Authorization: Digest username="u", response="d00df00d"', 'X-Auth-Token: t0p', 'X-Order: 4711']
    const call = peer.invite({ to: `sip:${line.number}@127.0.0.1`, body: sdp, headers })
    const { callId } = await line.event('call.worker_request')
    for (;;) if ((await call.answered()).status === 200) break
    call.ack()
    await call.request('BYE')
    await line.ended()
    const messages = await messagesOf(String(callId))
    t.match(
      messages.map(startOf).filter((start) => !start.startsWith('out SIP/2.0 1')),
      [/^in INVITE sip:/, 'out SIP/2.0 200', /^in ACK sip:/, /^in BYE sip:/, 'out SIP/2.0 200'],
    )
    const [invite] = messages
    t.match(invite, { direction: 'in', protocol: 'udp', remote: `127.0.0.1:${peer.port}` })
    t.match(invite?.text, /X-Order: 4711\r\n/)
    t.match(invite?.text, /m=audio 40000/)
    t.match(invite?.text, /a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:\[masked\]/)
    t.notMatch(JSON.stringify(messages), /d00df00d|t0p|c2VjcmV0/)
    t.same(
      messages.map(({ at }) => at),
      messages.map(({ at }) => at).toSorted(),
    )
  })

  await t.test('of a call that was placed and declined', async (t) => {
    const line = await stage.addLine({ trunk: { gateways } })
    const { id } = await stage.rest('POST', '/phone-calls', { workerId: line.workerId, phoneNumber: '+12025550199' })
    const invite = await peer.request('INVITE')
    peer.answer(invite, 486)
    await line.ended()
    const starts = (await messagesOf(String(id))).map(startOf)
    t.match(starts[0], /^out INVITE sip:/)
    t.ok(starts.includes('in SIP/2.0 486'))
    t.match(starts.at(-1), /^out ACK/)
  })
})
