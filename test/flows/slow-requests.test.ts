/** Whoever asks for what takes long keeps no call waiting: requests have connections of their own, and a time by which each has its answer. */
import { test } from 'tap'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { createRtpPeer } from '../fake/rtp-peer.ts'
import { openSipPeer } from '../fake/sip-peer.ts'
import { sdp } from '../fake/sip-wire.ts'
import { blockedQueries } from '../scenes/blocked-queries.ts'
import { until } from '../scenes/in-time.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { newId } from '../scenes/tenant.ts'

const slowRequests = 10
const calls = 5

test('ten slow requests of one key, and calls that come meanwhile', { timeout: 60_000 }, async (t) => {
  const stage = await openPhoneStage(t, createHearingEngine({ tone: null }))
  const { service, accountId } = stage
  const line = await stage.addLine()
  const peer = await openSipPeer(stage.port)
  t.teardown(() => peer.close())
  const rtp = await createRtpPeer()
  t.teardown(() => rtp.close())
  const { key } = await createApiKey(service.sql, { accountId, name: 'slow', newId, now: Date.now() })
  const ask = (what: string) =>
    fetch(`${service.url}/v1/accounts/${accountId}/${what}`, { headers: { 'x-api-key': key } })

  // What no call reads cannot be read by anybody.
  const [release, locked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = service.sql
    .begin(async (tx) => {
      await tx`lock table call_refusals in access exclusive mode`
      locked.resolve()
      await release.promise
    })
    .catch(() => undefined)
  await locked.promise
  let answered = 0
  const began = performance.now()
  const slow = Array.from({ length: slowRequests }, async () => {
    const { status } = await ask('call-refusals')
    answered += 1
    return { status, ms: performance.now() - began }
  })
  await blockedQueries(service.sql, 6)

  const talks = []
  for (let at = 0; at < calls; at += 1) {
    const call = peer.invite({ to: `sip:${line.number}@127.0.0.1`, body: sdp(rtp.local.port) })
    while ((await call.answered()).status !== 200) continue
    call.ack()
    talks.push(call)
  }
  t.equal(answered, 0, `${calls} calls were answered while all ten still waited`)
  t.equal(service.running(), calls)
  const node = await service.sql`select from nodes where lease_until > clock_timestamp()`
  t.equal(node.length, 1, 'and the node is alive')
  for (const call of talks) t.equal((await call.request('BYE')).status, 200)
  for (const _ of talks) await line.event('call.ended')

  const answers = await Promise.all(slow)
  t.ok(
    answers.every(({ status }) => status === 503),
    'and each request has its answer',
  )
  t.ok(Math.max(...answers.map(({ ms }) => ms)) < 12_000, 'in its time')
  release.resolve()
  await holding
  await until(async () => (await ask('call-refusals')).status === 200)
})
