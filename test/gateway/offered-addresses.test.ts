/** Where browsers are told to send their sound, and that it arrives there whichever address of this machine they choose. */
import { networkInterfaces } from 'node:os'
import { test } from 'tap'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { openMediaSocket } from '../../gateway/werift/media-socket.ts'
import { offeredAddresses, type Interfaces } from '../../gateway/werift/offered-addresses.ts'
import type { RtpPacket, WebPeer } from '../../model/rtp-transport.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openWebPeers } from '../scenes/web-peers.ts'

const of = (...addresses: string[]) =>
  addresses.map((address) => ({ address, internal: address.startsWith('127.') || address === '::1' }))
const alone: Interfaces = { lo: of('127.0.0.1', '::1') }
const laptop: Interfaces = {
  ...alone,
  wlan0: of('192.168.1.20', '2001:db8::20', 'fe80::20'),
  docker0: of('172.17.0.1', 'fe80::1'),
}
const onDefaults = { bindAddress: '127.0.0.1', offersInterfaces: true }

test('on default settings every address of this machine is offered, loopback last, and none that needs a scope', async (t) => {
  const all = ['192.168.1.20', '2001:db8::20', '172.17.0.1', '127.0.0.1', '::1']
  t.same(offeredAddresses(onDefaults, laptop), all)
  t.same(offeredAddresses({ ...onDefaults, bindAddress: '::1' }, laptop), [...all.slice(0, 3), '::1', '127.0.0.1'])
  t.same(offeredAddresses({ ...onDefaults, publicAddress: '203.0.113.7' }, laptop), ['203.0.113.7', ...all])
})

test('a machine without any other interface offers loopback', async (t) => {
  t.same(offeredAddresses(onDefaults, alone), ['127.0.0.1', '::1'])
  t.same(offeredAddresses(onDefaults, {}), ['127.0.0.1'])
})

test('of a hundred networks of containers a few are offered, and loopback still', async (t) => {
  const bridges = Array.from({ length: 100 }, (_, index) => [`br${index}`, of(`172.18.${index}.1`)] as const)
  const offered = offeredAddresses(onDefaults, { ...laptop, ...Object.fromEntries(bridges) })
  t.equal(offered.length, 18)
  t.same(offered.slice(0, 3), ['192.168.1.20', '2001:db8::20', '172.17.0.1'])
  t.same(offered.slice(-2), ['127.0.0.1', '::1'])
})

test('an address that was set is the only one; a wildcard stands for its family', async (t) => {
  t.same(offeredAddresses({ bindAddress: '127.0.0.1' }, laptop), ['127.0.0.1'])
  t.same(offeredAddresses({ bindAddress: '192.168.1.20' }, laptop), ['192.168.1.20'])
  t.same(offeredAddresses({ bindAddress: '0.0.0.0' }, laptop), ['192.168.1.20', '172.17.0.1', '127.0.0.1'])
  t.same(offeredAddresses({ bindAddress: '::' }, laptop), ['2001:db8::20', '::1'])
})

test('sound goes both ways over each address that is offered, IPv4 and IPv6', async (t) => {
  const peers = openWebPeers(createQuietLog(), { offersInterfaces: true })
  t.teardown(() => peers.close())
  await peers.warmUp()
  const addresses = offeredAddresses(onDefaults, networkInterfaces())
  t.ok(addresses.includes('127.0.0.1'))
  for (const address of addresses) {
    const peer: WebPeer = peers.createPeer({
      negotiated: () => undefined,
      connected: () => undefined,
      packet: (packet) => peer.send(packet),
      disconnected: () => undefined,
    })
    const caller = createWeriftCaller({ bindAddress: address, remoteAddress: address })
    const heard = new Promise<RtpPacket>((resolve) => caller.onPacket(resolve))
    const answer = await peer.accept(await caller.offer())
    t.match(answer, ` ${address} `, 'it is in the answer')
    await caller.accept(answer)
    const { payloadType } = await caller.connected
    caller.send({ payloadType, marker: true, sequenceNumber: 1, timestamp: 0, payload: Buffer.from('sound') })
    t.match(await heard, { payload: Buffer.from('sound') }, address)
    await Promise.all([caller.close(), peer.close()])
  }
})

test('both families take one port of the range, and the next where either is taken', async (t) => {
  const log = createQuietLog()
  const taken = await openMediaSocket({ bindAddress: '::1', portRange: [0, 0], log })
  const portRange = [taken.port, taken.port + 20] as const
  const media = await openMediaSocket({ ...onDefaults, portRange, log })
  t.teardown(() => Promise.all([media.close(), taken.close()]))
  t.ok(media.port > taken.port)
  t.equal(media.portOf(4), media.portOf(6))
  t.equal(taken.portOf(4), null)
})
