/** An address that no trunk names gets few answers and then none; who belongs here is answered always. On the wire, against the whole edge. */
import dgram from 'node:dgram'
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { digestResponseOf, readChallenge, writeCredentials } from '../../sip/server/message/digest.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import type { SipResponse } from '../../sip/server/message/message.ts'
import { openSipPeer, type SipPeer } from '../fake/sip-peer.ts'
import { trunkOf } from '../fake/telephony-port.ts'
import { until } from '../scenes/in-time.ts'
import { openEdgeScene, type EdgeScene } from '../scenes/sip-edge-scene.ts'

const minute = 60_000
const bothProtocols = (['udp', 'tcp'] as const).map((protocol) => ({ protocol, address: '127.0.0.1', port: 0 }))

type Raw = {
  /** So many at once; how many of these got a final answer: at least so many are waited for, and, where fewer than all are, a while for more. */
  blast(method: string, count: number, wanted: number, words?: RawWords): Promise<number>
}
type RawWords = { readonly toTag?: string; readonly user?: string }

/** A socket that repeats nothing. */
async function openStranger(t: Test, scene: EdgeScene): Promise<Raw> {
  const socket = dgram.createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  const answered = new Set<string>()
  socket.on('message', (bytes) => {
    const text = String(bytes)
    const [, callId] = /^Call-ID: (\S+)/im.exec(text) ?? []
    if (callId && /^SIP\/2\.0 [2-6]/.test(text)) answered.add(callId)
  })
  let made = 0
  const { port } = socket.address()
  return {
    async blast(method, times, wanted, { toTag, user = '+4930123456' } = {}) {
      const callIds = Array.from({ length: times }, () => `s${port}-${(made += 1)}`)
      for (const callId of callIds)
        socket.send(requestOf(method, { callId, port, toTag, user }), scene.serverPort, '127.0.0.1')
      const count = () => callIds.filter((callId) => answered.has(callId)).length
      await until(() => count() >= wanted, count)
      if (wanted < times) await pause(100)
      return count()
    },
  }
}

type Request = {
  readonly callId: string
  readonly port: number
  readonly toTag: string | undefined
  readonly user: string
}

const requestOf = (method: string, { callId, port, toTag, user }: Request): string =>
  [
    `${method} sip:${user}@127.0.0.1 SIP/2.0`,
    `Via: SIP/2.0/UDP 127.0.0.1:${port};rport;branch=z9hG4bK${callId}`,
    'Max-Forwards: 70',
    `From: <sip:scan@127.0.0.1>;tag=${callId}`,
    `To: <sip:${user}@127.0.0.1>${toTag === undefined ? '' : `;tag=${toTag}`}`,
    `Call-ID: ${callId}`,
    `CSeq: 1 ${method}`,
    `Contact: <sip:scan@127.0.0.1:${port}>`,
    'Content-Length: 0',
    '',
    '',
  ].join('\r\n')

test('an unknown peer gets no answer to OPTIONS and REGISTER after the first few, however fast they come, and is banned once', async (t) => {
  for (const method of ['OPTIONS', 'REGISTER', 'INVITE', 'SUBSCRIBE', 'FOO']) {
    const scene = await openEdgeScene(t)
    scene.telephony.knowsAll = false
    const stranger = await openStranger(t, scene)
    t.equal(await stranger.blast(method, 100, 5), 5, method)
    t.equal(scene.banned.length, 1)
    t.match(scene.banned[0], { group: '127.0.0.1', isProven: false, failure: 'unknown_peer' })
    t.equal(await stranger.blast('OPTIONS', 20, 0), 0, 'whatever it asks')
    t.equal(await stranger.blast('BYE', 5, 0, { toTag: 'guess' }), 0, 'also of calls that are none')
    t.equal(await stranger.blast('CANCEL', 5, 0), 0)
    scene.clock.advance(10 * minute)
    t.equal(await stranger.blast('OPTIONS', 5, 5), 5, 'after the ban it is heard')
    t.equal(scene.server.sizes().open, 0, 'nothing is left open')
  }
})

test('slowly is no way around it', async (t) => {
  const scene = await openEdgeScene(t)
  scene.telephony.knowsAll = false
  let answers = 0
  for (let count = 0; count < 30; count += 1) {
    answers += Number(await stepOf(scene))
    scene.clock.advance(minute / 2)
  }
  t.ok(answers < 12, `${answers} of 30 in a quarter of an hour`)
})

async function stepOf({ guard }: EdgeScene): Promise<boolean> {
  return guard.hears({ address: '127.0.0.1', isProven: false }, false)
}

test('a trunk is answered however often it asks, and when strangers use its address', async (t) => {
  const scene = await openEdgeScene(t)
  scene.telephony.trunks = [trunkOf({})]
  const carrier = await openStranger(t, scene)
  t.equal(await carrier.blast('OPTIONS', 60, 60), 60)
  t.equal(await carrier.blast('INVITE', 40, 40, { user: '+4930999' }), 40, 'numbers of nobody are told')
  t.same(scene.banned, [])
})

test('an address that a trunk is given is heard again, without waiting for the end of its ban', async (t) => {
  const scene = await openEdgeScene(t)
  scene.telephony.knowsAll = false
  const peer = await openStranger(t, scene)
  await peer.blast('OPTIONS', 100, 5)
  scene.telephony.knowsAll = true
  scene.clock.advance(minute)
  await peer.blast('OPTIONS', 1, 0)
  t.equal(await peer.blast('OPTIONS', 10, 10), 10)
})

test('who answers our requests is known: a gateway by name may ask whether we are there', async (t) => {
  const scene = await openEdgeScene(t)
  scene.telephony.knowsAll = false
  scene.telephony.trunks = [trunkOf({ gateways: [{ host: '127.0.0.1', port: scene.peer.port }] })]
  // Whose turn it is is asked again after half of the turn.
  scene.clock.advance(31_000)
  await until(() => scene.edge.health().trunks === 1)
  scene.clock.advance(3_000)
  scene.peer.answer(await scene.peer.request('OPTIONS'), 200)
  await until(() => [...scene.telephony.reports.values()].some(({ gateways }) => gateways[0]?.reachable === true))
  const gateway = await openStranger(t, scene)
  t.equal(await gateway.blast('OPTIONS', 50, 50), 50)
})

test('while the database is away nobody is taken for a stranger', async (t) => {
  const scene = await openEdgeScene(t)
  scene.telephony.knows = () => Promise.reject(new Error('no database'))
  const peer = await openStranger(t, scene)
  t.equal(await peer.blast('OPTIONS', 30, 30), 30)
})

const login = { username: 'ada', realm: 'carrier.test' } as const

/** An INVITE of a peer and, to its challenge, one with this password: what it was answered. Null: nothing. */
async function answerTo(peer: SipPeer, password: string): Promise<SipResponse | null> {
  const call = peer.invite()
  const first = await Promise.race([call.answered(), pause(1_500, null)])
  if (first?.status !== 401) return first
  const { realm, nonce } = readChallenge(headerOf(first, 'WWW-Authenticate') ?? '')!
  const proof = { ...login, realm, nonce, uri: 'sip:x', algorithm: 'MD5', nc: '00000001', cnonce: 'c' } as const
  const response = digestResponseOf(proof, 'INVITE', password)
  call.again([`Authorization: ${writeCredentials({ ...proof, opaque: null, response })}`])
  return call.answered()
}

const callWith = async ({ peer }: Pick<EdgeScene, 'peer'>, password: string): Promise<number | null> =>
  (await answerTo(peer, password))?.status ?? null

function asksPassword({ telephony }: EdgeScene): void {
  telephony.knowsAll = false
  telephony.mustAuthenticate = true
  telephony.trunks = [trunkOf(login, 'secret')]
}

test('wrong passwords are told a few times, and then their address is not heard', async (t) => {
  const scene = await openEdgeScene(t)
  asksPassword(scene)
  const statuses: (number | null)[] = []
  while (statuses.at(-1) !== null && statuses.length < 8) statuses.push(await callWith(scene, 'guess'))
  const told = statuses.filter((status) => status === 403).length
  t.ok(told >= 3 && told <= 5, `${statuses.join(' ')}`)
  t.equal(statuses.at(-1), null)
})

test('four hundred guesses from an address that belongs here: five are looked at, and the true phone calls all the while', async (t) => {
  const scene = await openEdgeScene(t)
  asksPassword(scene)
  scene.telephony.knowsAll = true
  t.equal(await callWith(scene, 'secret'), 180)
  const guesser = await openSipPeer(scene.serverPort)
  t.teardown(() => guesser.close())
  const guesses: (SipResponse | null)[] = []
  // No more at once than a socket holds.
  while (guesses.length < 400)
    guesses.push(...(await Promise.all(Array.from({ length: 20 }, () => answerTo(guesser, 'guess')))))
  const count = (status: number) => guesses.filter((answer) => answer?.status === status).length
  t.equal(count(403), 5)
  t.equal(count(503), 395)
  t.ok(
    Number(
      headerOf(
        guesses.find((answer) => answer?.status === 503)!,
        'Retry-After',
      ),
    ) > 0,
  )
  t.equal(await callWith({ peer: guesser }, 'secret'), 503, 'nor is the right one looked at there')
  t.equal(await callWith(scene, 'secret'), 180, 'who proved it is heard behind the same address')
  t.match(scene.telephony.refusals.at(-1), { reason: 'wrong_credentials', sipStatus: 503 })
  scene.clock.advance(minute / 2)
  t.equal(await callWith({ peer: guesser }, 'secret'), 180, 'later it is')
})

test('behind one NAT the right password is answered while another client has a wrong one', async (t) => {
  const scene = await openEdgeScene(t)
  asksPassword(scene)
  t.equal(await callWith(scene, 'secret'), 180)
  for (let count = 0; count < 12; count += 1) {
    await callWith(scene, 'guess')
    scene.clock.advance(1_000)
  }
  t.match(scene.banned, [{ isProven: true, failure: 'wrong_password' }])
  scene.clock.advance(5_000)
  t.equal(await callWith(scene, 'secret'), 180)
})

test('an exchange that asks every minute whether we are there may call by its password', async (t) => {
  const scene = await openEdgeScene(t)
  asksPassword(scene)
  const exchange = await openStranger(t, scene)
  t.equal(await exchange.blast('OPTIONS', 100, 5), 5)
  t.equal(await callWith(scene, 'secret'), 180)
  t.equal(await exchange.blast('OPTIONS', 20, 20), 20, 'and is answered from then on')
})

test('a caller with a password is no stranger: its next calls are not counted', async (t) => {
  const scene = await openEdgeScene(t)
  asksPassword(scene)
  for (let count = 0; count < 30; count += 1) t.equal(await callWith(scene, 'secret'), 180)
  t.same(scene.banned, [])
})

test('packets in the name of an address do not silence what comes from it over TCP', async (t) => {
  const scene = await openEdgeScene(t, { listen: bothProtocols })
  scene.telephony.knowsAll = false
  const forger = await openStranger(t, scene)
  t.equal(await forger.blast('OPTIONS', 100, 5), 5)
  const { port } = scene.server.listening.find(({ protocol }) => protocol === 'tcp')!.local
  const socket = net.connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  socket.write(requestOf('OPTIONS', { callId: 'tcp', port: 1, toTag: undefined, user: 'x' }).replace('/UDP', '/TCP'))
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  t.match(String(bytes), /^SIP\/2\.0 200/)
})

test('the connections of an address that is banned are closed at once, and it opens no other until it is heard again', async (t) => {
  const scene = await openEdgeScene(t, { listen: bothProtocols })
  scene.telephony.knowsAll = false
  const to = scene.server.listening.find(({ protocol }) => protocol === 'tcp')!.local
  const connect = async () => {
    const socket = net.connect(to.port, '127.0.0.1').on('error', () => undefined)
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    return socket
  }
  const [idle, guessing] = [await connect(), await connect()]
  const closed = Promise.all([idle, guessing].map((socket) => once(socket.resume(), 'close')))
  for (let count = 0; count < 30; count += 1)
    guessing.write(
      requestOf('INVITE', { callId: `tcp${count}`, port: 1, toTag: undefined, user: 'x' }).replace('/UDP', '/TCP'),
    )
  await closed
  t.match(scene.banned, [{ isProven: true, covers: 'all' }])
  await once((await connect()).resume(), 'close')
  t.equal(scene.server.sizes().connections, 0)
  scene.clock.advance(10 * minute)
  const again = await connect()
  again.write('\r\n\r\n')
  t.equal(String((await once(again, 'data'))[0]), '\r\n')
})

test('behind a server that does not ask itself, strangers whom nobody hears are refused without a question to the database', async (t) => {
  const scene = await openEdgeScene(t, { refusesStrangers: true })
  scene.telephony.knowsAll = false
  const statuses: number[] = []
  for (let count = 0; count < 8; count += 1) statuses.push((await scene.peer.ask('OPTIONS')).status)
  t.same(statuses, [200, 200, 200, 200, 200, 403, 403, 403])
})
