/** SIP headers on their way through the whole service: to call.worker_request and the script, and from POST phone-calls to the INVITE. */
import { test } from 'tap'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import type { SipRequest } from '../../sip/server/message/message.ts'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { openSipPeer } from '../fake/sip-peer.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'
import { until } from '../scenes/in-time.ts'

const sdp = 'v=0\r\no=- 7 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n'

test('SIP headers reach the hook and the engine, and those of a request the wire', { timeout: 60_000 }, async (t) => {
  const engine = createHearingEngine({ tone: null })
  const stage = await openPhoneStage(t, engine)
  const peer = await openSipPeer(stage.port)
  t.teardown(() => peer.close())
  const gateways = [{ host: '127.0.0.1', port: peer.port }]

  await t.test('an inbound call tells its hook what its INVITE said, and the log marks it as personal', async (t) => {
    const line = await stage.addLine()
    const headers = ['X-Account: 4711', 'User-to-User: 00c0ffee;encoding=hex', 'Diversion: <sip:+4989555@c.test>']
    const call = peer.invite({ to: `sip:${line.number}@127.0.0.1`, body: sdp, headers })
    const asked = await line.event('call.worker_request')
    t.match(asked, {
      direction: 'inbound',
      transport: 'sip_trunk',
      sip: {
        callId: call.callId,
        called: line.number,
        requestUri: `sip:${line.number}@127.0.0.1`,
        trusted: false,
        headers: { 'X-Account': '4711', 'User-to-User': '00c0ffee;encoding=hex', Diversion: '<sip:+4989555@c.test>' },
      },
    })
    await call.answered()
    if ((await call.answered()).status === 200) call.ack()
    const { config } = await engine.of(line.number)
    t.match(config.sip, { headers: { 'X-Account': '4711' } })
    const logged = await until(() => stage.log.lines.find(({ message }) => message === 'a call arrived'))
    t.equal((logged.fields['personal'] as Record<string, unknown>)['sipCallId'], call.callId)
    const { personal: _, ...plain } = logged.fields
    t.notMatch(JSON.stringify(plain), call.callId)
    await call.request('BYE')
    await line.ended()
  })

  await t.test('an outbound call shows the number that was asked for, and takes its headers along', async (t) => {
    const line = await stage.addLine({ trunk: { gateways } })
    const other = await stage.addLine()
    const request = { workerId: line.workerId, phoneNumber: '+12025550199', from: other.number }
    await stage.rest('POST', '/phone-calls', { ...request, headers: { 'X-Order': '4711' } })
    const invite = await peer.request('INVITE')
    t.equal(headerOf(invite, 'X-Order'), '4711')
    t.match(headerOf(invite, 'From'), `<sip:${other.number}@`)
    t.notOk('sip' in (await line.event('call.worker_request')))
    peer.answer(invite, 486)
    t.match((await line.ended()).row, { outcome: 'busy', fromNumber: other.number })
  })

  await t.test('a PBX calls a registered line by its extension', async (t) => {
    const line = await stage.addLine({ trunk: { username: '1002', register: true, gateways } })
    const call = peer.invite({ to: 'sip:1002@127.0.0.1', from: 'sip:201@127.0.0.1', body: sdp })
    t.match((await line.event('call.worker_request'))['sip'], { called: '1002' })
    await call.answered()
    if ((await call.answered()).status === 200) call.ack()
    await call.request('BYE')
    t.match((await line.ended()).row, { outcome: 'completed', toNumber: '1002' })
  })

  await t.test('a trunk that is made over REST is registered within seconds', async (t) => {
    const trunk = { name: 'PBX', username: '1003', register: true, qualify: false, gateways }
    const { id } = await stage.rest('POST', '/trunks', trunk)
    const register = await until(() => peer.request('REGISTER').then(of1003))
    peer.answer(register, 200)
    const state = () => stage.rest('GET', `/trunks/${String(id)}/state`)
    t.match(await until(async () => isRegistered(await state())), { registration: 'registered' })
  })
})

/** The line of the test before is registered, too. */
const of1003 = (register: SipRequest) => headerOf(register, 'To')?.includes('1003') && register
const isRegistered = (state: Record<string, unknown>) => state['registration'] === 'registered' && state
