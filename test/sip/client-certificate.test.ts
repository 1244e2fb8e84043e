/** The certificate that a trunk shows to a peer that asks for one: on the wire, at the API, at rest. */
import { createSecretKey, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import tls from 'node:tls'
import { test, type Test } from 'tap'
import { tlsKeyPlace } from '../../store/trunks.ts'
import { accessOf } from '../../actors/telephony/trunk-access.ts'
import type { TrunkId } from '../../model/ids.ts'
import type { TrunkAccess } from '../../model/telephony.ts'
import type { TrunkChange, TrunkRequest } from '../../model/trunk.ts'
import type { SipRequest } from '../../sip/server/message/message.ts'
import { parseMessage } from '../../sip/server/message/parse-message.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import { responseTo } from '../../sip/server/message/response-to.ts'
import { writeMessage } from '../../sip/server/message/write-message.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import { findTrunkRow } from '../../store/telephony.ts'
import { createTrunks } from '../../store/trunks.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { trunkOf } from '../fake/telephony-port.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { until } from '../scenes/in-time.ts'
import { refusalOf } from '../scenes/refusal.ts'
import { openEdgeScene } from '../scenes/sip-edge-scene.ts'
import { createTenant, newId } from '../scenes/tenant.ts'
import { carrierTls, fakeTls } from '../scenes/tls.ts'

const sdp = 'v=0\r\no=- 7 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n'

type Seen = {
  readonly method: string
  readonly name: string | undefined
  readonly connection: number
  readonly via: string
}

/** Takes calls from who shows a certificate that it knows, and tells whose each request was. It answers an INVITE by `answer`. */
async function openMutualPeer(t: Test, answer: (invite: SipRequest) => number) {
  const seen: Seen[] = []
  const sockets = new Set<tls.TLSSocket>()
  let connections = 0
  const strict = { requestCert: true, rejectUnauthorized: true, ca: [fakeTls.cert, carrierTls.cert] }
  const server = tls.createServer({ ...carrierTls, ...strict }, (socket) => {
    const connection = ++connections
    const { subject } = socket.getPeerCertificate()
    const name = subject?.CN
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      const parsed = parseMessage(bytes)
      if (parsed.kind !== 'message' || parsed.message.kind !== 'request') return
      const { message } = parsed
      seen.push({ method: message.method, name: String(name), connection, via: headerOf(message, 'Via') ?? '' })
      if (message.method === 'ACK') return
      const status = message.method === 'INVITE' ? answer(message) : 200
      const { port } = server.address() as AddressInfo
      const described = status === 200 && message.method === 'INVITE'
      const contact = { name: 'Contact', value: `<sip:127.0.0.1:${port};transport=tls>` }
      const headers = [contact, ...(described ? [{ name: 'Content-Type', value: 'application/sdp' }] : [])]
      const body = Buffer.from(described ? sdp : '')
      socket.write(writeMessage(responseTo(message, { status, reason: 'Answer', toTag: 'peer', headers, body })))
    })
  })
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, seen }
}

async function openScene(t: Test, answer: (invite: SipRequest) => number) {
  const peer = await openMutualPeer(t, answer)
  const tlsClient = { ca: carrierTls.cert, verify: true }
  const resolver = { naptr: async () => [], srv: async () => [], addresses: async () => ['127.0.0.1'] }
  const scene = await openEdgeScene(t, { server: { tlsClient, resolver } })
  const gateways = [{ host: 'carrier.test', port: peer.port, transport: 'tls' as const }]
  const trunk = (shown: { cert: string; key: string } | null): TrunkAccess => ({
    ...trunkOf({ gateways, qualify: false, encryption: 'none' }),
    tls: shown,
  })
  return { ...scene, wire: peer, trunk }
}

test('a trunk shows its own certificate, each its own on a connection of its own, and none where it has none', async (t) => {
  const { wire, trunk, telephony, dial, event } = await openScene(t, () => 486)
  const invited = async (shown: TrunkAccess) => {
    telephony.trunks = [shown]
    const { callId } = await dial()
    return event(callId)
  }
  const [first, second] = [trunk(fakeTls), trunk(carrierTls)]
  for (const shown of [first, second, first]) t.match(await invited(shown), { outcome: { status: 'busy' } })
  const invites = wire.seen.filter(({ method }) => method === 'INVITE')
  t.same(
    invites.map(({ name }) => name),
    ['localhost', 'carrier.test', 'localhost'],
  )
  t.equal(invites[0]?.connection, invites[2]?.connection, 'one connection for one certificate')
  t.not(invites[0]?.connection, invites[1]?.connection)
  t.notMatch(JSON.stringify(wire.seen), 'client=', 'the id of the certificate stays here')
  t.match(await invited(trunk(null)), { type: 'dial_failed', outcome: { reason: 'sip_call_failed' } })
})

test('a call goes on by the certificate that it began with', async (t) => {
  const { wire, trunk, telephony, dial, event, command } = await openScene(t, () => 200)
  telephony.trunks = [trunk(carrierTls)]
  const other = await dial()
  t.match(await event(other.callId), { type: 'connected' })
  telephony.trunks = [trunk(fakeTls)]
  const { callId } = await dial()
  t.match(await event(callId), { type: 'connected' })
  await command(callId, { type: 'close', reason: 'completed' })
  await until(() => wire.seen.some(({ method }) => method === 'BYE'))
  const [bye] = wire.seen.filter(({ method }) => method === 'BYE')
  t.equal(bye?.name, 'localhost')
  const acknowledged = new Set(wire.seen.flatMap(({ method, name }) => (method === 'ACK' ? [name] : [])))
  t.same(acknowledged, new Set(['carrier.test', 'localhost']))
  await command(other.callId, { type: 'close', reason: 'completed' })
})

test('a trunk without a certificate shows that of the service', async (t) => {
  const peer = await openMutualPeer(t, () => 486)
  const tlsClient = { ca: carrierTls.cert, verify: false, identity: fakeTls }
  const { telephony, dial, event } = await openEdgeScene(t, { server: { tlsClient } })
  const gateways = [{ host: '127.0.0.1', port: peer.port, transport: 'tls' as const }]
  telephony.trunks = [trunkOf({ gateways, qualify: false })]
  const { callId } = await dial()
  t.match(await event(callId), { outcome: { status: 'busy' } })
  t.equal(peer.seen[0]?.name, 'localhost')
})

test('a server that has no such certificates says so, and sends nothing', async (t) => {
  const peer = await openMutualPeer(t, () => 486)
  const scene = await openEdgeScene(t, { identities: undefined as never })
  const gateways = [{ host: '127.0.0.1', port: peer.port, transport: 'tls' as const }]
  scene.telephony.trunks = [{ ...trunkOf({ gateways, qualify: false }), tls: fakeTls }]
  const { callId } = await scene.dial()
  t.match(await scene.event(callId), { type: 'dial_failed', outcome: { reason: 'sip_call_failed' } })
  t.same(peer.seen, [])
  const told = scene.log.lines.find(({ message }) => message === 'a gateway did not take a call')
  t.match(told?.fields['details'], /drachtio-server shows its own certificate/)
})

test('the key is sealed and never told; a pair that does not belong together is refused', async (t) => {
  const { sql } = await openTestDatabase(t)
  const box = createSecretBox(createSecretKey(randomBytes(32)))
  const clock = createHandClock(Date.UTC(2027, 0, 1))
  const trunks = createTrunks({ sql, box, clock, newId })
  const { accountId } = await createTenant(sql)
  const { cert: tlsCertificate, key: tlsKey } = fakeTls
  const made = await trunks.create(accountId, { name: 'Teams', tlsCertificate, tlsKey })
  t.match(made, { tlsCertificate, tlsKeySet: true })
  const [row] = await sql<{ tlsKey: string; text: string }[]>`select tls_key, trunks::text as text from trunks`
  t.equal(box.open(row?.tlsKey ?? '', tlsKeyPlace({ accountId, id: made.id as TrunkId })), tlsKey)
  const body = tlsKey.split('\n')[1] ?? ''
  t.notMatch(row?.text, body)
  t.notMatch(JSON.stringify([made, await trunks.list(accountId)]), body)

  const id = made.id as TrunkId
  const stored = await findTrunkRow(sql, accountId, id)
  t.same(stored && accessOf({ box }, stored).tls, fakeTls, 'the edge gets both')
  const refused = (request: Partial<TrunkRequest>) => refusalOf(trunks.create(accountId, { name: 'x', ...request }))
  const changed = (change: TrunkChange) => refusalOf(trunks.change(accountId, id, change))
  t.same(await refused({ tlsCertificate }), ['VALIDATION_FAILED', 'tlsKey'])
  t.same(await refused({ tlsKey }), ['VALIDATION_FAILED', 'tlsCertificate'])
  t.same(await refused({ tlsCertificate: 'no PEM', tlsKey }), ['VALIDATION_FAILED', 'tlsCertificate'])
  t.same(await refused({ tlsCertificate, tlsKey: 'no PEM' }), ['VALIDATION_FAILED', 'tlsKey'])
  t.same(await refused({ tlsCertificate, tlsKey: carrierTls.key }), ['VALIDATION_FAILED', 'tlsKey'])
  t.same(await changed({ tlsCertificate: carrierTls.cert }), ['VALIDATION_FAILED', 'tlsKey'])
  t.same(await changed({ tlsKey: null }), ['VALIDATION_FAILED', 'tlsKey'])
  clock.advance(200 * 366 * 24 * 3_600_000)
  t.same(await refused({ tlsCertificate, tlsKey }), ['VALIDATION_FAILED', 'tlsCertificate'], 'it has ended')
  clock.advance(-200 * 366 * 24 * 3_600_000)
  t.equal(await changed({ name: 'Renamed' }), null)
  t.match(await trunks.find(accountId, id), { name: 'Renamed', tlsKeySet: true })
  t.equal(await changed({ tlsCertificate: carrierTls.cert, tlsKey: carrierTls.key }), null)
  t.equal(await changed({ tlsCertificate: null }), null)
  const without = await trunks.find(accountId, id)
  t.notOk(without && ('tlsKeySet' in without || 'tlsCertificate' in without))
  t.same(await sql`select tls_key from trunks where id = ${id}`, [{ tlsKey: null }])
})
