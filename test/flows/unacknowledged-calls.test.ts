/** A peer that never acknowledges our answers takes part of an account's places only, and gives them back by its ACK. Against the whole service. */
import { test } from 'tap'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { openSipPeer, type PeerCall } from '../fake/sip-peer.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'
import { until } from '../scenes/in-time.ts'

const places = 8

const sdp = [
  'v=0',
  'o=- 7 1 IN IP4 127.0.0.1',
  's=-',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=audio 40000 RTP/AVP 8',
  'a=sendrecv',
  '',
].join('\r\n')

test('calls that nobody acknowledges do not fill an account', { timeout: 100_000 }, async (t) => {
  const scene = await openPhoneStage(t, createHearingEngine({ tone: null }), { lines: [{ events: false }] })
  const [line] = scene.lines
  if (!line) throw new Error('the stage has no line')
  const { sql } = scene.service
  await sql`update accounts set config = ${sql.json({ maxConcurrentCalls: places })}`
  const peer = await openSipPeer(scene.port)
  t.teardown(() => peer.close())

  /** The last answer to an INVITE that is never acknowledged when it is taken. */
  const call = async () => {
    const placed = peer.invite({ to: `sip:${line.number}@127.0.0.1`, body: sdp })
    for (;;) {
      const answer = await placed.answered()
      if (answer.status >= 200) return { placed, answer }
    }
  }
  const taken: PeerCall[] = []
  for (let count = 0; count < places - places / 4; count += 1) {
    const { placed, answer } = await call()
    t.equal(answer.status, 200, `call ${count}`)
    taken.push(placed)
  }
  const { answer } = await call()
  t.equal(answer.status, 503)
  t.match(headerOf(answer, 'Retry-After'), /^\d+$/)
  t.equal((await scene.rest('POST', '/web-calls', { workerId: line.workerId }))['callId'] !== undefined, true)

  taken[0]?.ack()
  await until(async () => {
    const [row] = await sql<
      { count: number }[]
    >`select count(*)::int as count from calls where progress = 'in_progress'`
    return row?.count === 1
  })
  t.equal((await call()).answer.status, 200, 'the place is free again')
})
