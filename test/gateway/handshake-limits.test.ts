/** What a peer may do to a DTLS association: before it is connected a bounded handshake, afterwards only the Finished again. */
import { test, type Test } from 'tap'
import { ProtectionProfileAes128CmHmacSha1_80, type DtlsClient } from 'werift'
import { announcesAtMost, recordsOf } from '../../gateway/werift/dtls-record.ts'
import { loadIdentity } from '../../gateway/werift/identity.ts'
import { createSecureChannel } from '../../gateway/werift/secure-channel.ts'
import { srtpProfiles, type SrtpKeys } from '../../gateway/werift/dtls-keys.ts'
import { createDtlsClient } from '../scenes/dtls-client.ts'

const headOf = (type: number, epoch: number, sequenceNumber: number, length: number): Buffer => {
  const head = Buffer.from([type, 254, 253, 0, epoch, 0, 0, 0, 0, 0, 0, 0, 0])
  head.writeUIntBE(sequenceNumber, 5, 6)
  head.writeUInt16BE(length, 11)
  return head
}

const handshake = (fragment: Buffer): Buffer => Buffer.concat([headOf(22, 0, 9, fragment.length), fragment])

/** A message of which only `fragment` is there. */
function messageOf(type: number, length: number, offset: number, fragment: Buffer): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt8(type, 0)
  head.writeUIntBE(length, 1, 3)
  head.writeUIntBE(offset, 6, 3)
  head.writeUIntBE(fragment.length, 9, 3)
  return Buffer.concat([head, fragment])
}

/** A server channel and a client that is werift itself, so that a test holds its keys. */
async function createAssociation(t: Test, { sendFails = false, profiles = srtpProfiles } = {}) {
  const { certificate, fingerprint } = await loadIdentity()
  const connected = Promise.withResolvers<SrtpKeys>()
  const clientConnected = Promise.withResolvers<void>()
  const sent: Buffer[] = []
  const server = createSecureChannel({
    role: 'server',
    certificate,
    fingerprints: [fingerprint],
    send(datagram) {
      if (sendFails && datagram[0] === 21) throw new Error('no route')
      sent.push(datagram)
      setImmediate(() => hear(datagram))
    },
    connected: connected.resolve,
    ended: (_cause, details) => connected.reject(new Error(details)),
  })
  const toServer = (datagram: Buffer): void => void setImmediate(() => server.receive(datagram))
  const { client, hear } = createDtlsClient(t, certificate, toServer, profiles)
  client.onConnect.subscribe(() => clientConnected.resolve())
  return {
    server,
    client,
    sent,
    connected: Promise.all([connected.promise, clientConnected.promise]).then(([srtp]) => srtp),
  }
}

function encrypted(client: DtlsClient, plain: Buffer, sequenceNumber: number): Buffer {
  const header = { type: 22, version: 0xfefd, epoch: 1, sequenceNumber }
  const fragment = client.cipher.cipher.encrypt(client.sessionType, plain, header)
  return Buffer.concat([headOf(22, 1, sequenceNumber, fragment.length), fragment])
}

const alertsOf = (sent: readonly Buffer[]): number => sent.filter((datagram) => datagram[0] === 21).length

test('the keys of both ends are the same, for AES-GCM and for a client that knows AES-CM only', async (t) => {
  for (const [profiles, suite, saltBytes] of [
    [srtpProfiles, 'AEAD_AES_128_GCM', 12],
    [srtpProfiles.toReversed(), 'AEAD_AES_128_GCM', 12],
    [[ProtectionProfileAes128CmHmacSha1_80], 'AES_CM_128_HMAC_SHA1_80', 14],
  ] as const) {
    const { server, client, connected } = await createAssociation(t, { profiles: [...profiles] })
    void client.connect()
    const { ours, theirs } = await connected
    const atClient = client.extractSessionKeys(16, saltBytes)
    t.same(theirs, { suite, keyAndSalt: Buffer.concat([atClient.localKey, atClient.localSalt]) })
    t.same(ours, { suite, keyAndSalt: Buffer.concat([atClient.remoteKey, atClient.remoteSalt]) })
    server.close()
  }
})

test('a handshake has an end: after 300 records nothing is taken any more, with fewer it succeeds', async (t) => {
  const piece = handshake(messageOf(11, 1000, 0, Buffer.alloc(10)))
  const patient = await createAssociation(t)
  for (let count = 0; count < 250; count += 1) patient.server.receive(piece)
  void patient.client.connect()
  await patient.connected
  patient.server.close()

  const flooded = await createAssociation(t)
  for (let count = 0; count < 300; count += 1) flooded.server.receive(piece)
  void flooded.client.connect().catch(() => undefined)
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  t.equal(flooded.sent.length, 0, 'the hello is not answered')
  flooded.client.dtls.flight = 99
})

test('a message that announces megabytes is refused wherever it stands in its record, and so is a cut-off one', (t) => {
  const small = messageOf(11, 10, 0, Buffer.alloc(10))
  const judge = (...messages: Buffer[]): boolean[] =>
    recordsOf(handshake(Buffer.concat(messages))).map((record) => announcesAtMost(record, 16_384))
  t.same(judge(small, small), [true])
  t.same(judge(small, messageOf(11, 2 ** 24 - 1, 0, Buffer.alloc(10))), [false])
  t.same(judge(small, small.subarray(0, 11)), [false])
  t.end()
})

test('datagrams larger than any network carries are dropped, and do not use the handshake up', async (t) => {
  const { server, client, connected } = await createAssociation(t)
  const huge = handshake(messageOf(11, 16_000, 0, Buffer.alloc(15_000)))
  for (let count = 0; count < 350; count += 1) server.receive(huge)
  void client.connect()
  await connected
  server.close()
  t.pass('connected')
})

test('no encrypted hello makes a connected association forget its keys, not even behind an empty Finished', async (t) => {
  const { server, client, sent, connected } = await createAssociation(t)
  void client.connect()
  await connected
  const hello = messageOf(1, 0, 0, Buffer.alloc(0))
  const emptyFinished = messageOf(20, 0, 0, Buffer.alloc(0))
  server.receive(encrypted(client, hello, 50))
  server.receive(encrypted(client, Buffer.concat([emptyFinished, hello]), 51))
  server.receive(handshake(Buffer.concat([messageOf(0, 0, 0, Buffer.alloc(0)), hello])))
  server.close()
  t.equal(alertsOf(sent), 1, 'the goodbye is still said')
})

test('a lost last flight is sent again when the Finished comes again', async (t) => {
  const { server, client, sent, connected } = await createAssociation(t)
  void client.connect()
  await connected
  const before = sent.length
  server.receive(encrypted(client, messageOf(20, 12, 0, Buffer.alloc(12)), 60))
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  t.ok(sent.length > before)
  server.close()
})

test('closing never throws and is over even when the goodbye cannot be sent', async (t) => {
  const { server, client, connected } = await createAssociation(t, { sendFails: true })
  void client.connect()
  await connected
  t.doesNotThrow(() => server.close())
})
