/** Readers of the API share connections of their own: however many of them wait for the database, calls are answered and the service is well. */
import { test } from 'tap'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { createRtpPeer } from '../fake/rtp-peer.ts'
import { openSipPeer } from '../fake/sip-peer.ts'
import { sdp } from '../fake/sip-wire.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'

/** More than the service has connections. */
const readerCount = 40

test('a call is answered while readers wait for a table that is locked', { timeout: 60_000 }, async (t) => {
  const settings = { LOAD_GATE: 'off' }
  const stage = await openPhoneStage(t, createHearingEngine({ tone: null }), { settings })
  const line = await stage.addLine({ events: false })
  const peer = await openSipPeer(stage.port)
  t.teardown(() => peer.close())
  const rtp = await createRtpPeer()
  t.teardown(() => rtp.close())
  const { service, rest } = stage
  await rest('GET', '/call-refusals')

  let areBack = 0
  const locked = Promise.withResolvers<void>()
  const free = Promise.withResolvers<void>()
  const holding = service.sql.begin(async (tx) => {
    await tx`lock table call_refusals in access exclusive mode`
    locked.resolve()
    await free.promise
  })
  await locked.promise
  const readers = Array.from({ length: readerCount }, () => rest('GET', '/call-refusals').finally(() => areBack++))
  const call = peer.invite({ to: `sip:${line.number}@127.0.0.1`, body: sdp(rtp.local.port) })
  while ((await call.answered()).status !== 200) continue
  call.ack()
  t.equal((await fetch(`${service.url}/health`)).status, 200)
  t.equal(areBack, 0, 'all readers wait')
  free.resolve()
  await holding
  await Promise.all(readers)
  t.equal((await call.request('BYE')).status, 200)
})
