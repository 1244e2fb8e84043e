/** A client that gets another address in mid-call: NAT gives it one, or it changes networks and restarts ICE. Strangers move nothing. */
import { once } from 'node:events'
import { test, type Test } from 'tap'
import { createAddressBook } from '../../gateway/werift/address-book.ts'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { readSdp } from '../../gateway/read-sdp.ts'
import { createPathAim } from '../../gateway/werift/path-aim.ts'
import { createSeenChecks } from '../../gateway/werift/seen-checks.ts'
import { isStun, makeCheck } from '../../gateway/werift/stun.ts'
import { isRtcp } from '../../media/rtp/rtp-wire.ts'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'
import type { RtpPacket, WebPeer } from '../../model/rtp-transport.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createDtlsClient, newCertificate } from '../scenes/dtls-client.ts'
import { until } from '../scenes/in-time.ts'
import { openNat } from '../scenes/rebinding-nat.ts'
import { openWebPeers } from '../scenes/web-peers.ts'

const isSound = (datagram: Buffer): boolean => datagram[0]! >> 6 === 2 && !isRtcp(datagram)
const isReport = (datagram: Buffer): boolean => datagram[0]! >> 6 === 2 && isRtcp(datagram)

async function setUp(t: Test) {
  const log = createQuietLog()
  const peers = openWebPeers(log)
  t.teardown(() => peers.close())
  await peers.warmUp()
  const events: string[] = []
  const packets: RtpPacket[] = []
  const silent = () => undefined
  /** Of another caller. */
  const other = peers.createPeer({ negotiated: silent, connected: silent, packet: silent, disconnected: silent })
  const peer: WebPeer = peers.createPeer({
    negotiated: ({ codec }) => void events.push(`negotiated ${codec}`),
    connected: () => void events.push('connected'),
    packet: (packet) => void packets.push(packet),
    alive: () => void events.push('alive'),
    consented: () => void events.push('consented'),
    disconnected: (cause) => void events.push(`disconnected ${cause}`),
  })
  const caller = createWeriftCaller()
  const heard: string[] = []
  caller.onPacket(({ payload }) => void heard.push(Buffer.from(payload).toString()))
  t.teardown(() => Promise.all([caller.close(), peer.close(), other.close()]))
  const nat = await openNat(t)
  return { peer, other, caller, nat, heard, packets, events, log }
}

type Stage = Awaited<ReturnType<typeof setUp>>

async function connect({ caller, peer, nat }: Stage): Promise<void> {
  await caller.accept(nat.through(await peer.accept(await caller.offer())))
  await caller.connected
}

const packetOf = (sequenceNumber: number, text: string): RtpPacket => ({
  payloadType: 111,
  marker: false,
  sequenceNumber,
  timestamp: sequenceNumber * 960,
  payload: Buffer.from(text),
})

/** The caller says something, and it arrives. */
async function say({ caller, packets }: Stage, sequenceNumber: number): Promise<void> {
  caller.send(packetOf(sequenceNumber, 'up'))
  await until(() => packets.some((packet) => packet.sequenceNumber === sequenceNumber))
}

/** The agent's words reach the caller, wherever it is. */
async function hears({ peer, heard }: Stage, sequenceNumber: number): Promise<void> {
  peer.send(packetOf(sequenceNumber, `down ${sequenceNumber}`))
  await until(() => heard.includes(`down ${sequenceNumber}`))
}

test('sound follows a client whose NAT gave it another port at its first packet, without any check', async (t) => {
  const stage = await setUp(t)
  await connect(stage)
  await say(stage, 1)
  await hears(stage, 1)
  stage.nat.only((datagram) => !isStun(datagram))
  for (const sequenceNumber of [2, 3, 4]) {
    await stage.nat.rebind()
    await say(stage, sequenceNumber)
    await hears(stage, sequenceNumber)
  }
  t.match(stage.peer.stats().dropped, { strangers: 0, flood: 0, unusable: 0 })
})

test('a report leads sound to a muted client that was moved', async (t) => {
  const stage = await setUp(t)
  await connect(stage)
  await say(stage, 1)
  await hears(stage, 1)
  stage.nat.only(isReport)
  await stage.nat.rebind()
  const { length } = stage.events
  // The first one may still come on the heels of sound, which then says where the client is.
  await until(() => stage.events.slice(length).filter((event) => event === 'alive').length > 1)
  await hears(stage, 2)
  t.notOk(stage.events.some((event) => event.startsWith('disconnected')))
})

test('nothing that a stranger sends moves the sound: packets, reports and checks of the client once more, altered ones, noise', async (t) => {
  const stage = await setUp(t)
  const { nat, peer, heard } = stage
  await connect(stage)
  nat.only((datagram) => !isSound(datagram))
  // The stranger is quicker with none of them: the last ones never arrive but from the stranger, altered.
  stage.caller.send(packetOf(1, 'kept back'))
  await until(() => nat.passed.some(isSound))
  nat.only(() => true)
  for (const sequenceNumber of [2, 3]) await say(stage, sequenceNumber)
  await until(() => stage.events.includes('alive'))
  const recorded = [...nat.passed]
  t.ok(recorded.some(isStun) && recorded.some(isReport) && recorded.some(isSound))
  for (const datagram of recorded) {
    nat.stranger.send(datagram)
    const altered = Buffer.from(datagram)
    altered[altered.length - 12]! ^= 1
    nat.stranger.send(altered)
  }
  await say(stage, 4)
  for (const datagram of recorded) nat.stranger.send(datagram)
  peer.send(packetOf(9, 'for the client'))
  await until(() => heard.includes('for the client'))
  t.same(
    nat.stranger.got.filter((datagram) => !isStun(datagram)),
    [],
  )
  t.notOk(nat.stranger.got.some(isStun), 'not even an answer')
  await say(stage, 5)
  await hears(stage, 10)
})

test('a packet that comes late from where the client was moves nothing back', async (t) => {
  const stage = await setUp(t)
  const { nat } = stage
  await connect(stage)
  await say(stage, 1)
  nat.only((datagram) => !isSound(datagram))
  stage.caller.send(packetOf(2, 'late'))
  const late = await until(() => nat.passed.filter(isSound)[1])
  nat.only(() => true)
  await nat.rebind()
  await say(stage, 3)
  nat.stranger.send(late)
  await until(() => stage.packets.some(({ sequenceNumber }) => sequenceNumber === 2))
  await hears(stage, 4)
  t.same(nat.stranger.got, [])
})

test('where sound goes: before the association to the latest check, then to where DTLS and authentic media come from, and to no check', async (t) => {
  const aim = createPathAim()
  const at = (port: number) => ({ address: '192.0.2.1', port })
  t.equal(aim.target(), null)
  aim.checked(at(1))
  aim.checked(at(2))
  t.same(aim.target(), at(2), 'the latest check')
  aim.secured(at(1))
  t.same(aim.target(), at(1), 'where the client proved itself')
  aim.checked(at(3))
  t.same(aim.target(), at(1))
  aim.heard(at(4))
  t.same(aim.target(), at(4), 'heard')
  t.ok(aim.isTarget(at(4)) && aim.isSecured())
})

test('an address belongs to the call that lives there; a better proof takes it, and silence gives it up', async (t) => {
  const book = createAddressBook<string>()
  t.ok(book.claim('a', 'victim', 'checked', 0))
  t.notOk(book.claim('a', 'attacker', 'checked', 10), 'another call under the same address')
  t.notOk(book.claim('a', 'attacker', 'hint', 10))
  t.ok(book.claim('a', 'victim', 'checked', 4_000), 'a check of its own keeps it')
  t.notOk(book.claim('a', 'attacker', 'checked', 9_000))
  t.ok(book.claim('a', 'victim', 'authentic', 9_000))
  t.ok(book.claim('a', 'victim', 'hint', 20_000), 'what is proved stays proved')
  t.notOk(book.claim('a', 'attacker', 'checked', 50_000))
  book.release('a', 'attacker')
  t.equal(book.ownerOf('a')?.owner, 'victim', 'nobody gives away what belongs to another')
  t.ok(book.claim('a', 'next', 'checked', 50_001), 'NAT gives the address of a dead call to the next')
  t.ok(book.claim('b', 'attacker', 'checked', 0))
  t.ok(book.claim('b', 'victim', 'authentic', 1), 'who was quicker loses to who proves itself')
  t.ok(book.claim('c', 'attacker', 'hint', 0))
  t.ok(book.claim('c', 'victim', 'checked', 1), 'a call that is up elsewhere keeps nobody out')
  book.release('c', 'victim')
  t.equal(book.ownerOf('c'), undefined)
})

test('a check of a stranger’s own call under the address of a live one takes nothing, before DTLS and after', async (t) => {
  const stage = await setUp(t)
  const { peer, other, caller, nat } = stage
  const attacker = createWeriftCaller()
  t.teardown(() => attacker.close())
  const attackers = await other.accept(await attacker.offer())
  const sideways = credentialsOf(attackers)
  const forge = (): void => {
    for (const nominates of [true, false]) nat.forge(makeCheck(sideways, 'stranger', { nominates }).bytes)
  }
  const answer = nat.through(await peer.accept(await caller.offer()))
  nat.only(isStun)
  await caller.accept(answer)
  await until(() => nat.passed.some((datagram) => !isStun(datagram)))
  forge()
  nat.only(() => true)
  await caller.connected
  for (const sequenceNumber of [1, 2, 3]) {
    forge()
    await say(stage, sequenceNumber)
    await hears(stage, sequenceNumber)
  }
  await attacker.accept(attackers)
  await attacker.connected
  const reflected = new Promise<void>((resolve) => attacker.onPacket(() => resolve()))
  forge()
  await say(stage, 4)
  await hears(stage, 4)
  other.send(packetOf(1, 'for the attacker'))
  await reflected
  t.pass('nor is its own sound sent to the victim')
})

test('a check of the client that is caught on its way and sent from elsewhere moves nothing, and brings the call no stranger', async (t) => {
  const stage = await setUp(t)
  const { caller, peer, nat, heard } = stage
  const answer = nat.through(await peer.accept(await caller.offer()))
  await caller.accept(answer)
  await caller.connected
  await say(stage, 1)
  await hears(stage, 1)
  const caught = (nominates: boolean) => makeCheck(credentialsOf(answer), 'client', { nominates }).bytes
  const answered = () => nat.stranger.got.filter(isStun).length
  nat.only(() => false)
  for (const nominates of [true, false]) nat.stranger.send(caught(nominates))
  await until(() => answered() === 2)
  nat.only(() => true)
  for (const sequenceNumber of [2, 3]) peer.send(packetOf(sequenceNumber, `down ${sequenceNumber}`))
  await until(() => heard.includes('down 3'))
  for (const datagram of nat.passed.filter(isSound)) nat.stranger.send(datagram)
  await say(stage, 4)
  await hears(stage, 4)
  t.same(
    nat.stranger.got.filter((datagram) => !isStun(datagram)),
    [],
  )
})

test('a stranger who was let in by a caught check can neither take the handshake of DTLS nor spoil it', async (t) => {
  const stage = await setUp(t)
  const { caller, peer, nat, events } = stage
  const answer = nat.through(await peer.accept(await caller.offer()))
  nat.only(isStun)
  await caller.accept(answer)
  await until(() => nat.passed.some((datagram) => !isStun(datagram)))
  nat.stranger.send(makeCheck(credentialsOf(answer), 'client').bytes)
  await until(() => nat.stranger.got.some(isStun))
  const stranger = createDtlsClient(t, await newCertificate(), nat.stranger.send)
  const alert = Buffer.from([21, 254, 253, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 2, 40])
  nat.stranger.send(alert)
  void stranger.client.connect().catch(() => undefined)
  let taken = 0
  await until(() => {
    for (const datagram of nat.stranger.got.slice(taken)) if (!isStun(datagram)) stranger.hear(datagram)
    taken = nat.stranger.got.length
    return stage.log.lines.some(({ message }) => message.startsWith('a DTLS handshake failed'))
  })
  nat.stranger.send(alert)
  t.same(
    events.filter((event) => event.startsWith('disconnected')),
    [],
  )
  nat.only(() => true)
  await caller.connected
  await say(stage, 1)
  await hears(stage, 1)
})

test('a check counts once from each call, and again from the same address only', async (t) => {
  const seen = createSeenChecks()
  const ids = Array.from({ length: 1000 }, (_, index) => Buffer.from(`transaction${index}`))
  t.ok(ids.every((id) => seen.take(id, 'here 1')))
  t.ok(seen.take(ids[3]!, 'here 1'), 'a request is repeated')
  t.notOk(ids.some((id) => seen.take(id, 'elsewhere 1')))
})

const credentialsOf = (sdp: string) => {
  const { usernameFragment, password } = readSdp(sdp, ['passive', 'actpass'])
  return { usernameFragment, password }
}

test('a second offer with new credentials restarts ICE: the call goes on from another socket, over the same association', async (t) => {
  const stage = await setUp(t)
  const { caller, peer, events } = stage
  const first = await peer.accept(await caller.offer())
  await caller.accept(first)
  await caller.connected
  await say(stage, 1)
  for (const round of [2, 3]) {
    const answer = await peer.accept(await caller.offer())
    t.notSame(credentialsOf(answer), credentialsOf(first))
    t.equal(fingerprintIn(answer), fingerprintIn(first))
    t.match(answer, new RegExp(`^o=- \\d+ ${round + 1} `, 'm'), 'the description is counted')
    t.notOk(peer.wasReached())
    await hears(stage, round * 10)
    t.pass('until there is a new way the old one is used')
    await caller.accept(answer)
    await until(peer.wasReached)
    await say(stage, round)
    await hears(stage, round * 10 + 1)
  }
  const once = events.filter((event) => event !== 'alive' && event !== 'consented')
  t.same(once, ['negotiated opus', 'connected', 'negotiated opus', 'negotiated opus'])
  t.equal(stage.packets.length, 3)
})

test('credentials of before are answered until the new ones are used, and not after', async (t) => {
  const stage = await setUp(t)
  const { caller, peer, nat } = stage
  const first = nat.through(await peer.accept(await caller.offer()))
  await caller.accept(first)
  await caller.connected
  const check = () => makeCheck(credentialsOf(first), 'other').bytes
  const answered = () => nat.stranger.got.filter(isStun).length
  const answer = await peer.accept(await caller.offer())
  nat.stranger.send(check())
  await until(() => answered() === 1)
  await caller.accept(answer)
  await until(peer.wasReached)
  nat.stranger.send(check())
  await say(stage, 1)
  t.equal(answered(), 1)
})

test('a restart may come before the first connection, and again before it was used', async (t) => {
  const stage = await setUp(t)
  const { caller, peer } = stage
  for (let round = 0; round < 5; round += 1) await peer.accept(await caller.offer())
  await caller.accept(await peer.accept(await caller.offer()))
  await caller.connected
  await say(stage, 1)
  await hears(stage, 1)
  t.equal(stage.events.filter((event) => event === 'connected').length, 1)
})

test('an offer that restarts nothing, or belongs to another association, is a CONFLICT, and the call goes on', async (t) => {
  const stage = await setUp(t)
  const { caller, peer } = stage
  const offer = await caller.offer()
  await caller.accept(await peer.accept(offer))
  await caller.connected
  const conflict = { name: 'Problem', type: 'CONFLICT' }
  await t.rejects(peer.accept(offer), conflict)
  const restart = offer
    .replace(/a=ice-ufrag:.*/, 'a=ice-ufrag:another')
    .replace(/a=ice-pwd:.*/, `a=ice-pwd:${'p'.repeat(24)}`)
  const forged = restart.replace(/(a=fingerprint:sha-256 )../, '$100')
  await t.rejects(peer.accept(forged), conflict)
  await t.rejects(peer.accept('v=0\r\n'), { name: 'Problem', type: 'VALIDATION_FAILED' })
  await say(stage, 1)
  await hears(stage, 1)
  await peer.close()
  await t.rejects(peer.accept(restart), conflict)
})

const fingerprintIn = (sdp: string) => /a=fingerprint:.*/.exec(sdp)?.[0]

test('a caller answers the checks of a peer that is no ICE-lite one, and of nobody else', async (t) => {
  const caller = createWeriftCaller()
  t.teardown(() => caller.close())
  const offer = await caller.offer()
  const port = Number(/ 127\.0\.0\.1 (\d+) typ host/.exec(offer)?.[1])
  const own = credentialsOf(offer)
  const peer = await bindUdp('127.0.0.1', 0)
  t.teardown(() => closeUdp(peer))
  const answers: Buffer[] = []
  const forged = makeCheck({ ...own, password: 'not the one of the offer' }, 'peer')
  const stranger = makeCheck({ ...own, usernameFragment: 'nobody' }, 'peer')
  const check = makeCheck(own, 'peer')
  peer.on('message', (datagram: Buffer) => answers.push(datagram))
  const answered = once(peer, 'message')
  for (const { bytes } of [forged, stranger, check]) peer.send(bytes, port, '127.0.0.1')
  await answered
  t.equal(answers.length, 1)
  t.ok(check.isAnsweredBy(answers[0]!))
})
