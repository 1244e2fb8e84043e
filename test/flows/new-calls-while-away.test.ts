/** The whole service while its database is away: what becomes of telephone calls that arrive. */
import { test } from 'tap'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { createRtpPeer } from '../fake/rtp-peer.ts'
import { openSipPeer } from '../fake/sip-peer.ts'
import { sdp } from '../fake/sip-wire.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import { freezePostgres } from '../scenes/frozen-postgres.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'

const elsewhere = { serviceDownRedirectEnabled: true, serviceDownRedirectNumber: '+12025550199' } as const

test(
  'who calls a number that was called before is sent to its serviceDownRedirectNumber while the database stands still, anybody else is told when to come again',
  { timeout: 90_000 },
  async (t) => {
    const stage = await openPhoneStage(t, createHearingEngine({ tone: null }))
    const [line, stranger] = [await stage.addLine({ worker: elsewhere }), await stage.addLine({ worker: elsewhere })]
    const peer = await openSipPeer(stage.port)
    const rtp = await createRtpPeer()
    t.teardown(() => Promise.all([peer.close(), rtp.close()]))
    const call = async (number: string) => {
      const dialog = peer.invite({ to: `sip:${number}@127.0.0.1`, body: sdp(rtp.local.port) })
      for (;;) {
        const answer = await dialog.answered()
        if (answer.status >= 200) return { dialog, answer }
      }
    }
    const before = await call(line.number)
    t.equal(before.answer.status, 200)
    before.dialog.ack()
    await before.dialog.request('BYE')
    await line.ended()
    const goOn = freezePostgres(stage.dataDir)
    t.teardown(goOn)
    const sent = await call(line.number)
    t.equal(sent.answer.status, 302)
    t.match(headerOf(sent.answer, 'Contact'), '12025550199')
    const refused = await call(stranger.number)
    t.equal(refused.answer.status, 503)
    t.ok(Number(headerOf(refused.answer, 'Retry-After')) > 0)
    goOn()
    const { answer, dialog } = await call(stranger.number)
    t.equal(answer.status, 200, 'when it is back')
    dialog.ack()
    await dialog.request('BYE')
    await stranger.ended()
  },
)
