/** Trunks that are looked after: registered, refreshed, asked whether they answer, and reported. RFC 3261 §10, §11. */
import { test, type Test } from 'tap'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import { trunksSubject } from '../../model/telephony.ts'
import { examineSubject, TrunkChecks } from '../../model/trunk-check.ts'
import type { TrunkSettings } from '../../model/trunk.ts'
import { createGate } from '../../sip/trunk/gate.ts'
import { grantedSeconds, longerSeconds, refreshAfter, retryAfter } from '../../sip/trunk/registration-plan.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import type { SipRequest } from '../../sip/server/message/message.ts'
import { readCredentials } from '../../sip/server/message/digest.ts'
import { createTrunkKeeper } from '../../sip/trunk/trunk-keeper.ts'
import type { Answered } from '../../sip/stack.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { until } from '../scenes/in-time.ts'
import { openEdgeScene } from '../scenes/sip-edge-scene.ts'
import { createTelephonyPort, trunkOf } from '../fake/telephony-port.ts'

async function keepTrunk(t: Test, settings: TrunkSettings, password: string | null = null) {
  const scene = await openEdgeScene(t)
  const { peer, telephony, clock, edge } = scene
  const trunk = trunkOf({ gateways: [{ host: '127.0.0.1', port: peer.port }], ...settings }, password)
  telephony.trunks = [trunk]
  // Whose turn it is is asked again after half of the turn.
  clock.advance(31_000)
  await until(() => edge.health().trunks === 1)
  clock.advance(1_000)
  const state = () => telephony.reports.get(trunk.id)
  return { ...scene, trunk, state }
}

const sequenceOf = (request: { headers: Parameters<typeof headerOf>[0]['headers'] }) =>
  Number.parseInt(headerOf(request, 'CSeq') ?? '', 10)

test('a trunk is registered with its password, refreshed in time and taken back at the end', async (t) => {
  const settings = { register: true, qualify: false, username: 'line7', domain: 'pbx.test' }
  const { peer, state, clock, edge } = await keepTrunk(t, settings, 'open sesame')
  const first = await peer.request('REGISTER')
  t.equal(first.uri, 'sip:pbx.test')
  t.match(headerOf(first, 'To'), '<sip:line7@pbx.test>')
  const contact = headerOf(first, 'Contact') ?? ''
  t.match(contact, /^<sip:line7@127\.0\.0\.1:\d+>/, 'the server has put its own address in')
  t.equal(headerOf(first, 'Expires'), '600')
  peer.answer(first, 401, { headers: ['WWW-Authenticate: Digest realm="pbx.test", nonce="n1", qop="auth"'] })
  const proved = await peer.request('REGISTER')
  t.match(readCredentials(headerOf(proved, 'Authorization') ?? ''), { username: 'line7', realm: 'pbx.test' })
  peer.answer(proved, 200, {
    reason: 'OK',
    headers: [`Contact: <sip:other@192.0.2.1>;expires=9, ${contact};expires=120`],
  })
  await until(() => state()?.registration === 'registered')
  t.match(state(), { registrationDetails: '200 OK', registeredUntil: new Date(clock.now() + 120_000).toISOString() })

  clock.advance(93_000)
  const refresh = await peer.request('REGISTER')
  t.equal(headerOf(refresh, 'Call-ID'), headerOf(first, 'Call-ID'))
  t.ok(sequenceOf(refresh) > sequenceOf(proved))
  peer.answer(refresh, 423, { headers: ['Min-Expires: 1800'] })
  const longer = await peer.request('REGISTER')
  t.equal(headerOf(longer, 'Expires'), '1800')
  peer.answer(longer, 200, { headers: ['Expires: 1800'] })
  await until(() => state()?.registeredUntil === new Date(clock.now() + 1_800_000).toISOString())

  const closed = edge.close(0)
  const farewell = await peer.request('REGISTER')
  t.equal(headerOf(farewell, 'Expires'), '0')
  peer.answer(farewell, 200)
  await closed
})

test('whoever asks on the bus has a trunk of their account examined, and learns what mends it, but not where a name leads', async (t) => {
  const settings = { register: true, qualify: false, username: 'line7' }
  const { peer, trunk, bus, state } = await keepTrunk(t, settings, 'open sesame')
  peer.answer(await peer.request('REGISTER'), 200)
  await until(() => state()?.registration === 'registered')
  const examine = async (accountId: string) => {
    const asked = toBytes({ accountId, trunkId: trunk.id })
    return TrunkChecks.parse(fromBytes(await bus.request(examineSubject, asked, { timeout: 30_000 }))).checks
  }
  const examined = examine(trunk.accountId)
  peer.answer(await peer.request('OPTIONS'), 200)
  peer.answer(await peer.request('REGISTER'), 403)
  t.match(await examined, [
    { name: `127.0.0.1:${peer.port} is found`, verdict: 'passed', got: 'yes' },
    { name: `127.0.0.1:${peer.port} answers`, verdict: 'passed', got: /^200/ },
    { name: 'the password is good', verdict: 'failed', got: /^403/, mend: /^see username, password/ },
  ])
  t.equal(await examine('another account'), null)
  t.same(fromBytes(await bus.request(examineSubject, toBytes('no trunk'), { timeout: 30_000 })), { checks: null })
})

test('the realm that took the password first gets it again, no other does, and the change is told with how to accept it', async (t) => {
  const settings = { register: true, qualify: false, username: 'line7' }
  const { peer, telephony, clock, state, trunk, dial, event, log } = await keepTrunk(t, settings, 'open sesame')
  const challenge = (realm: string) => [`WWW-Authenticate: Digest realm="${realm}", nonce="n", qop="auth"`]
  peer.answer(await peer.request('REGISTER'), 401, { headers: challenge('pbx') })
  peer.answer(await peer.request('REGISTER'), 200)
  await until(() => state()?.registration === 'registered')
  t.same(telephony.realms.get(trunk.id), [{ host: '127.0.0.1', proved: ['pbx'], refused: null }])

  const { callId } = await dial()
  const invite = await peer.request('INVITE')
  peer.answer(invite, 401, { headers: challenge('thief') })
  t.match(await event(callId), { type: 'dial_failed', providerStatus: /401/ })
  await peer.request('ACK')
  const refused = /“thief” asks.*belongs to “pbx”.*--accept-realm/
  t.match(telephony.realms.get(trunk.id)?.at(-1), { proved: ['pbx'], refused })
  const told = log.lines.filter(({ message }) => message === 'a challenge to a trunk is not answered')
  t.match(told, [{ fields: { trunkId: trunk.id, host: '127.0.0.1', details: refused } }])

  const own = await dial()
  peer.answer(await peer.request('INVITE'), 401, { headers: challenge('pbx') })
  await peer.request('ACK')
  const proved = await peer.request('INVITE')
  t.match(readCredentials(headerOf(proved, 'Authorization') ?? ''), { realm: 'pbx' })
  peer.answer(proved, 180)
  t.match(await event(own.callId), { type: 'ringing' })
  t.match(telephony.realms.get(trunk.id)?.at(-1), { proved: ['pbx'], refused: null }, 'all is well again')
  peer.answer(proved, 486)
  await event(own.callId)

  // The operator had it forgotten, and the carrier has moved.
  telephony.trunks = [{ ...trunk, realms: {} }]
  const moved = await dial()
  peer.answer(await peer.request('INVITE'), 401, { headers: challenge('new') })
  await peer.request('ACK')
  const accepted = await peer.request('INVITE')
  peer.answer(accepted, 180)
  t.match(await event(moved.callId), { type: 'ringing' })
  t.match(telephony.realms.get(trunk.id)?.at(-1), { proved: ['new'], refused: null })
  peer.answer(accepted, 486)
  await event(moved.callId)
  clock.advance(1_000)
})

test('a registration that is refused is tried again after a growing pause, and reported', async (t) => {
  const settings = { register: true, qualify: false, username: 'line7' }
  const { peer, state, clock, log } = await keepTrunk(t, settings, 'wrong')
  for (const [index, pause] of [30_000, 60_000].entries()) {
    peer.answer(await peer.request('REGISTER'), 403, { reason: 'Forbidden' })
    await until(() => log.lines.some(({ fields }) => fields['failures'] === index + 1))
    await until(() => state()?.registration === 'failed')
    t.equal(state()?.registrationDetails, '403 Forbidden')
    clock.advance(pause)
  }
  t.ok(await peer.request('REGISTER'))
})

test('a trunk that is no longer kept is let go of, another password registers it anew', async (t) => {
  const settings = { register: true, qualify: false, username: 'line7' }
  const { peer, telephony, clock, state, trunk, edge } = await keepTrunk(t, settings, 'one')
  peer.answer(await peer.request('REGISTER'), 200)
  await until(() => state()?.registration === 'registered')
  telephony.trunks = [{ ...trunk, password: 'two' }]
  clock.advance(31_000)
  const farewell = await peer.request('REGISTER')
  t.equal(headerOf(farewell, 'Expires'), '0')
  peer.answer(farewell, 200)
  let anew: SipRequest | null = null
  void peer.request('REGISTER').then((request) => (anew = request))
  const registered = await until<SipRequest>(() => {
    clock.advance(100)
    return anew
  })
  t.not(headerOf(registered, 'Call-ID'), headerOf(farewell, 'Call-ID'))
  peer.answer(registered, 200)
  await until(() => state()?.registration === 'registered')
  telephony.trunks = []
  clock.advance(31_000)
  peer.answer(await peer.request('REGISTER'), 200)
  await until(() => edge.health().trunks === 0)
})

test('gateways are asked whether they answer, and one that does not is tried last', async (t) => {
  const { peer, telephony, clock, trunk, state, dial } = await keepTrunk(t, {})
  const down = { host: '127.0.0.1', port: 9 }
  t.match(state(), { registration: 'none', gateways: [{ port: peer.port, reachable: null }] })
  clock.advance(3_000)
  peer.answer(await peer.request('OPTIONS'), 404, { reason: 'Not Found' })
  await until(() => state()?.gateways[0]?.reachable)
  t.match(state(), { gateways: [{ details: '404 Not Found', checkedAt: new Date(clock.now()).toISOString() }] })
  clock.advance(45_000)
  peer.answer(await peer.request('OPTIONS'), 503, { reason: 'Service Unavailable' })
  await until(() => state()?.gateways[0]?.reachable === false)
  clock.advance(45_000)
  peer.answer(await peer.request('OPTIONS'), 200)
  await until(() => state()?.gateways[0]?.reachable)

  telephony.trunks = [{ ...trunk, settings: { gateways: [down, ...(trunk.settings.gateways ?? [])] } }]
  clock.advance(31_000)
  await new Promise((resolve) => setImmediate(resolve))
  clock.advance(5_000)
  peer.answer(await peer.request('OPTIONS'), 200)
  await until(() => state()?.gateways[1]?.reachable)
  // Nobody answers at the other: the server says so in its place, or time is over.
  clock.advance(10_000)
  await until(() => state()?.gateways[0]?.reachable === false)
  await dial()
  peer.answer(await peer.request('INVITE'), 486)
})

/** A server that answers 200 to everything, at once or when it is let. */
function scriptedStack() {
  const asked: { uri: string; method: string; settle: () => void }[] = []
  const response = { status: 200, reason: 'OK', get: () => undefined }
  return {
    asked,
    request: (uri: string, { method }: { method: string }) =>
      new Promise<Answered>((resolve) => {
        const settle = () =>
          resolve({ kind: 'answered', response, sent: { get: () => undefined, on: () => {}, cancel: () => {} } })
        asked.push({ uri, method, settle })
      }),
  }
}

test('a trunk that is changed is looked after within a second, however many changes there are', async (t) => {
  const { bus, telephony, clock, edge } = await openEdgeScene(t)
  await until(() => clock.pending() > 0)
  let asked = 0
  const { keep } = telephony
  telephony.keep = () => ((asked += 1), keep())
  telephony.trunks = [trunkOf({ gateways: [{ host: '127.0.0.1' }] })]
  for (let change = 0; change < 50; change++) bus.publish(trunksSubject, new Uint8Array())
  await bus.flush()
  t.equal(edge.health().trunks, 0)
  await until(() => (clock.advance(100), edge.health().trunks === 1))
  t.equal(asked, 1)
  telephony.trunks = []
  bus.publish(trunksSubject, new Uint8Array())
  await until(() => (clock.advance(100), edge.health().trunks === 0))
})

const nothing = async () => []
const emptyDns = { naptr: nothing, srv: nothing, addresses: nothing }

test('a thousand trunks are looked after with fifty requests at once, and a shared gateway is asked once', async (t) => {
  const clock = createHandClock()
  const stack = scriptedStack()
  const telephony = createTelephonyPort()
  telephony.trunks = Array.from({ length: 1_000 }, (_, index) =>
    trunkOf(
      { register: true, username: 'u', gateways: [{ host: 'shared.test' }, { host: `gateway${index}.test` }] },
      'p',
    ),
  )
  telephony.keep = async () => ({ trunks: telephony.trunks, until: clock.now() + 60_000 })
  const keeper = createTrunkKeeper({
    telephony,
    stack,
    resolver: emptyDns,
    clock,
    log: createQuietLog(),
    random: () => 0.5,
  })
  keeper.start()
  await until(() => keeper.kept() === 1_000)
  clock.advance(5_000)
  await until(() => stack.asked.length === 50)
  let done = 0
  while (done < stack.asked.length) {
    stack.asked[done++]?.settle()
    await new Promise((resolve) => setImmediate(resolve))
    if (stack.asked.length - done > 50) t.fail('more than fifty requests at once')
  }
  const of = (method: string) => stack.asked.filter((one) => one.method === method)
  t.equal(of('REGISTER').length, 1_000)
  t.equal(of('OPTIONS').filter(({ uri }) => uri === 'sip:shared.test').length, 1)
  t.equal(of('OPTIONS').length, 1_001)
  let isClosed = false
  void keeper.close().then(() => void (isClosed = true))
  while (!isClosed) {
    while (done < stack.asked.length) stack.asked[done++]?.settle()
    await new Promise((resolve) => setImmediate(resolve))
  }
  t.equal(of('REGISTER').length, 2_000, 'all are taken back')
  t.equal(clock.pending(), 0)
})

test('a gate lets as many in as it is wide, in order, also past failures', async (t) => {
  const gate = createGate(2)
  const order: number[] = []
  const enter = (name: number) =>
    gate(async () => {
      order.push(name)
      await new Promise((resolve) => setImmediate(resolve))
      if (name === 1) throw new Error('one')
    })
  const all = Promise.allSettled([0, 1, 2, 3].map(enter))
  t.same(order, [0, 1])
  t.same(
    (await all).map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  )
  t.same(order, [0, 1, 2, 3])
})

test('when to register next follows from the answer', (t) => {
  const message = (fields: Record<string, string>) => ({ get: (name: string) => fields[name] })
  const sent = message({ Contact: '<sip:line7@198.51.100.1:5060>' })
  t.equal(
    grantedSeconds(message({ Contact: '<sip:line7@198.51.100.1:5060>;expires=90, <sip:x@y>;expires=5' }), sent),
    90,
  )
  t.equal(
    grantedSeconds(message({ Contact: '<sip:line7@10.0.0.1>;expires=30', Expires: '77' }), sent),
    30,
    'the only one',
  )
  t.equal(grantedSeconds(message({ Expires: '77' }), sent), 77)
  t.equal(grantedSeconds(message({}), sent), 600)
  t.equal(grantedSeconds(message({ Expires: '99999999' }), sent), 86_400)
  t.equal(longerSeconds(message({ 'Min-Expires': '1800' }), 600), 1800)
  t.equal(longerSeconds(message({ 'Min-Expires': '60' }), 600), null)
  t.ok(refreshAfter(600, () => 1) < 600_000 * 0.9)
  t.equal(
    refreshAfter(5, () => 0),
    15_000,
    'a registrar cannot make us register without pause',
  )
  const pauses = (kind: 'refused' | 'silence') =>
    [1, 2, 3, 20].map((failures) => retryAfter(kind, { failures, asked: null, random: () => 0.5 }))
  t.same(pauses('refused'), [30_000, 60_000, 120_000, 1_800_000])
  t.same(pauses('silence'), [5_000, 10_000, 20_000, 120_000])
  t.equal(retryAfter('refused', { failures: 1, asked: 300, random: () => 0.5 }), 300_000)
  t.equal(retryAfter('refused', { failures: 1, asked: 10 ** 9, random: () => 0.5 }), 1_800_000)
  t.end()
})
