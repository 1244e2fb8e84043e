/** What both ends of a browser's call tell each other of the wire by RTCP: the browser's own statistics and ours agree that it is good. */
import { test } from 'tap'
import type { WebPeer } from '../../model/rtp-transport.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { browsers } from '../peers/browsers.ts'
import { inTime, until } from '../scenes/in-time.ts'
import { callFromBarePage } from '../scenes/page-call.ts'
import { openWebPeers } from '../scenes/web-peers.ts'

for (const browser of browsers())
  test(
    `${browser.name} and we know round trip, loss and jitter of both directions`,
    { skip: browser.skip, timeout: 120_000 },
    async (t) => {
      const peers = openWebPeers(createQuietLog(), { offersInterfaces: true })
      t.teardown(() => peers.close())
      const disconnected = Promise.withResolvers<string>()
      const peer: WebPeer = peers.createPeer({
        negotiated: () => undefined,
        connected: () => undefined,
        packet: (packet) => peer.send(packet),
        disconnected: (cause, details) => disconnected.resolve(`${cause}: ${details}`),
      })
      const call = await callFromBarePage(t, browser)
      await call.accept(await peer.accept(call.offer))
      await call.hears()
      t.pass('the beeps of the fake microphone come back')

      const theirs = await call.statsWithRoundTrip()
      const remote = { inbound: theirs['remote-inbound-rtp'], outbound: theirs['remote-outbound-rtp'] }
      t.match(remote.inbound, { packetsLost: 0, fractionLost: 0 }, 'what we report of its sound')
      const { roundTripTime = -1, jitter = -1 } = { ...remote.inbound }
      t.ok(roundTripTime >= 0 && roundTripTime < 2 && jitter >= 0 && jitter < 1, JSON.stringify(remote.inbound))
      t.ok((remote.outbound?.packetsSent ?? 0) > 0, 'what we report of ours')
      t.match(theirs['inbound-rtp'], { packetsLost: 0 })

      const ours = () => peer.stats().quality
      const { roundTripMs, peer: heard } = await until(() => (ours()?.roundTripMs !== null ? ours() : null), ours)
      t.ok(roundTripMs !== null && roundTripMs >= 0 && roundTripMs < 2000, `${roundTripMs} ms`)
      t.match(heard, { packetsLost: 0, fractionLost: 0 }, 'what the browser reports of our sound')
      const { packetsReceived, packetsSent, quality, dropped } = peer.stats()
      t.ok(packetsReceived > 50 && packetsSent >= (remote.outbound?.packetsSent ?? 0))
      t.equal(quality?.packetsLost, 0)
      t.ok((quality?.jitterMs ?? 0) > 0 && (quality?.jitterMs ?? 1e9) < 1000)
      t.match(dropped, { strangers: 0, flood: 0, unusable: 0 })
      await call.hangUp()
      t.equal(await inTime('the end of the call', disconnected.promise), 'hung_up: DTLS close_notify')
    },
  )
