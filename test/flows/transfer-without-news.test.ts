/** A transfer to an exchange that says nothing after its 202 and only stops its sound (Asterisk into an application), over the whole service in real time. */
import { test } from 'tap'
import { tagOf } from '../../sip/server/message/address.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { createRtpPeer } from '../fake/rtp-peer.ts'
import { openSipWire, sdp } from '../fake/sip-wire.ts'
import { bodyText } from '../scenes/body-text.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'

const callee = '+4930111222'

/** RFC 3550 §6.4.2: an empty receiver report, as an exchange goes on sending while its sound has stopped. */
const report = Buffer.from([0x80, 201, 0, 1, 0, 0, 0, 7])

test(
  'a callee who is passed on without a word is hung up 15 s after the sound stops, and the call is completed',
  {
    timeout: 100_000,
  },
  async (t) => {
    const scene = await openPhoneStage(t, createHearingEngine({ tone: null }))
    const { addLine, rest, service, accountId } = scene
    const wire = await openSipWire(scene.port)
    const rtp = await createRtpPeer()
    t.teardown(async () => {
      await wire.close()
      await rtp.close()
    })
    const line = await addLine({ trunk: { gateways: [{ host: '127.0.0.1', port: wire.port }], qualify: false } })
    await service.sql`update accounts set config = config || '{"allowedTransferNumbers":["+4930777"]}' where id = ${accountId}`
    const phoneCallId = await line.dial(callee)
    const invite = await wire.request('INVITE')
    const there = { address: '127.0.0.1', port: Number(/m=audio (\d+)/.exec(bodyText(invite))?.[1]) }
    wire.answer(invite, 200, 'callee', [], sdp(rtp.local.port))
    await wire.request('ACK')
    await line.status('in_progress')
    for (let sequenceNumber = 1; sequenceNumber <= 5; sequenceNumber += 1)
      await rtp.send(there, { sequenceNumber, payload: new Uint8Array(160).fill(0xff) })
    const reporting = setInterval(() => void rtp.sendRtcp({ ...there, port: there.port + 1 }, report), 1_000)
    t.teardown(() => clearInterval(reporting))
    const asked = { toolName: 'transfer', provider: 'call', arguments: { to: '+4930777' }, phoneCallId }
    const answer = rest('POST', `/workers/${line.workerId}/mcp/tools/call`, asked)
    const refer = await wire.request('REFER')
    t.equal(headerOf(refer, 'Refer-To'), `<sip:+4930777@127.0.0.1:${wire.port}>`)
    t.equal(tagOf(refer, 'To'), 'callee')
    wire.answer(refer, 202)
    const accepted = Date.now()
    t.match(await answer, { result: { status: 'success' } })
    wire.answer(await wire.request('BYE'), 200)
    const waited = Date.now() - accepted
    t.ok(waited > 14_000 && waited < 19_000, `${waited} ms`)
    t.match((await line.ended()).row, { outcome: 'completed', providerStatus: '202 Accepted' })
  },
)
