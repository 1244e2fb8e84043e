/** A service that cannot keep up says so to those who call now, before anything is done for them, and goes on with who talks already. */
import { setTimeout as pause } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { createRtpPeer } from '../fake/rtp-peer.ts'
import { openSipPeer } from '../fake/sip-peer.ts'
import { until } from '../scenes/in-time.ts'
import { openPhoneStage, type PhoneStage } from '../scenes/phone-stage.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { newId } from '../scenes/tenant.ts'
import { sdp } from '../fake/sip-wire.ts'

type Health = { readonly status: string; readonly newCalls?: string }

async function openLoaded(t: Test) {
  const stage = await openPhoneStage(t, createHearingEngine({ tone: null }))
  const line = await stage.addLine({ events: false })
  const peer = await openSipPeer(stage.port)
  t.teardown(() => peer.close())
  const rtp = await createRtpPeer()
  t.teardown(() => rtp.close())
  const invite = ({ number } = line) => peer.invite({ to: `sip:${number}@127.0.0.1`, body: sdp(rtp.local.port) })
  const { key } = await createApiKey(stage.service.sql, { ...stage, name: 'second', newId, now: Date.now() })
  const call = invite()
  while ((await call.answered()).status !== 200) continue
  call.ack()
  const ask = (what: string, request: object) =>
    fetch(`${stage.service.url}/v1/accounts/${stage.accountId}/${what}`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ workerId: line.workerId, ...request }),
    })
  return { ...stage, call, invite, ask, askWebCall: () => ask('web-calls', {}) }
}

type Loaded = Awaited<ReturnType<typeof openLoaded>>

const healthOf = async ({ service }: Pick<PhoneStage, 'service'>): Promise<Health> =>
  (await (await fetch(`${service.url}/health`)).json()) as Health

test('a thread that is at its limit', { timeout: 60_000 }, async (t) => {
  const loaded = await openLoaded(t)
  const { call, invite, askWebCall, service } = loaded
  // The call is to have been there for a while: who has just begun is not what is protected.
  await pause(5_500)
  const stop = block(97)
  await until(() => service.newCalls() === 'refused')
  const [web, phone] = [await askWebCall(), await invite().answered()]
  const body = (await web.json()) as Record<string, unknown>
  stop()
  t.same([web.status, web.headers.get('retry-after'), body['type']], [503, '5', 'WEB_CALL_CAPACITY_EXCEEDED'])
  t.same([phone.status, headerOf(phone, 'Retry-After')], [503, '5'])
  t.equal(service.running(), 1, 'nothing was begun, and the call goes on')
  t.equal((await healthOf(loaded)).newCalls, 'refused')
  await until(() => service.newCalls() === 'taken')
  t.equal((await askWebCall()).status, 200, 'calls are taken again')
  t.equal((await call.request('BYE')).status, 200)
})

test('a database that answers nothing', { timeout: 60_000 }, async (t) => {
  const loaded = await openLoaded(t)
  const { call, invite, ask, askWebCall, service } = loaded
  // Of a number that was called before the service knows enough to begin (test/flows/new-calls-while-away.test.ts).
  const uncalled = await loaded.addLine({ events: false })
  const release = Promise.withResolvers<void>()
  // All of its connections are taken.
  const taken = Array.from({ length: 10 }, () => service.sql.begin(() => release.promise).catch(() => undefined))
  const began = performance.now()
  const phone = await until(async () => {
    const answer = await Promise.race([finalOf(invite(uncalled)), pause(5_000, null)])
    return answer?.status === 503 && answer
  })
  const asked = performance.now()
  const web = await askWebCall()
  t.ok(performance.now() - asked < 1_500, 'who asks is told at once')
  t.ok(performance.now() - began < 20_000)
  t.same([web.status, web.headers.get('retry-after')], [503, '10'])
  t.match(await web.json(), { type: 'SERVICE_UNAVAILABLE' })
  t.equal(headerOf(phone, 'Retry-After'), '10')
  const placed = await ask('phone-calls', { phoneNumber: '+4930123456' })
  t.equal(placed.status, 503, 'a telephone call that is placed could not be written')
  release.resolve()
  await Promise.all(taken)
  await until(async () => (await askWebCall()).status === 200)
  t.equal((await call.request('BYE')).status, 200, 'the call went on')
})

async function finalOf(invite: ReturnType<Loaded['invite']>) {
  for (;;) {
    const answer = await invite.answered()
    if (answer.status >= 200) return answer
  }
}

/** Takes so many of every 100 ms. */
function block(ms: number): () => void {
  const timer = setInterval(() => {
    const until = performance.now() + ms
    while (performance.now() < until) continue
  }, 100 - ms)
  return () => clearInterval(timer)
}
