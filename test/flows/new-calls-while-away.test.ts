/** The whole service while its database is away: what becomes of telephone calls that arrive. */
import { test } from 'tap'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { createRtpPeer } from '../fake/rtp-peer.ts'
import { openSipPeer } from '../fake/sip-peer.ts'
import { sdp } from '../fake/sip-wire.ts'
import { freezePostgres } from '../scenes/frozen-postgres.ts'
import { until } from '../scenes/in-time.ts'
import { openPhoneStage, type ServedLine } from '../scenes/phone-stage.ts'

const elsewhere = { serviceDownRedirectEnabled: true, serviceDownRedirectNumber: '+12025550199' } as const

test(
  'while the database stands still who calls a number that was called before talks, or is sent elsewhere; anybody else is told when to come again',
  { timeout: 90_000 },
  async (t) => {
    const engine = createHearingEngine({ tone: null })
    const stage = await openPhoneStage(t, engine)
    const [line, stranger] = [await stage.addLine(), await stage.addLine()]
    const full = await stage.addLine({ worker: elsewhere })
    await stage.rest('PATCH', `/workers/${full.workerId}`, { maxConcurrentCalls: 1 })
    const peer = await openSipPeer(stage.port)
    const rtp = await createRtpPeer()
    t.teardown(() => Promise.all([peer.close(), rtp.close()]))
    const call = async ({ number }: ServedLine) => {
      const dialog = peer.invite({ to: `sip:${number}@127.0.0.1`, body: sdp(rtp.local.port) })
      for (;;) {
        const answer = await dialog.answered()
        if (answer.status < 200) continue
        if (answer.status === 200) dialog.ack()
        return { answer, bye: () => dialog.request('BYE') }
      }
    }
    for (const known of [line, full]) {
      const { answer, bye } = await call(known)
      t.equal(answer.status, 200)
      await engine.of(known.number)
      await bye()
      await known.ended()
    }
    const goOn = freezePostgres(stage.dataDir)
    t.teardown(goOn)

    const talking = await call(line)
    t.equal(talking.answer.status, 200)
    const { emit } = await engine.of(line.number)
    emit({ type: 'user_text', text: 'is anybody there', isFinal: true, confidence: 1, from: 0, to: 50 })
    const first = await call(full)
    t.equal(first.answer.status, 200)
    const second = await call(full)
    t.equal(second.answer.status, 302)
    t.match(headerOf(second.answer, 'Contact'), '12025550199')
    const refused = await call(stranger)
    t.equal(refused.answer.status, 503)
    t.ok(Number(headerOf(refused.answer, 'Retry-After')) > 0)
    await talking.bye()
    await first.bye()
    goOn()

    const { row, told, statuses } = await line.ended()
    t.match(row, { status: 'completed', endedBy: 'caller', warnings: [{ type: 'DATABASE_WAS_AWAY' }] })
    t.match(told['transcript'], [{ text: 'is anybody there' }])
    t.same(statuses, ['ringing', 'in_progress 200 OK', 'completed 200 OK'])
    const after = await call(stranger)
    t.equal(after.answer.status, 200, 'when it is back')
    await after.bye()
    await stranger.ended()
    await until(() => stage.service.running() === 0)
  },
)
