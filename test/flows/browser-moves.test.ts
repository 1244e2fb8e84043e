/** Browsers that are moved, muted, put on hold or closed in mid-call. */
import { networkInterfaces } from 'node:os'
import { test } from 'tap'
import { offeredAddresses } from '../../gateway/werift/offered-addresses.ts'
import type { WebPeer } from '../../model/rtp-transport.ts'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import type { BrowserPage } from '../peers/browser-page.ts'
import { browsers } from '../peers/browsers.ts'
import { until } from '../scenes/in-time.ts'
import { callFromBarePage } from '../scenes/page-call.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'
import { openNat } from '../scenes/rebinding-nat.ts'
import { openWebPeers } from '../scenes/web-peers.ts'

/** What the page's call opens can be looked at, and changed behind its back. */
const spy = `
  const { RTCPeerConnection: Peer, WebSocket: Socket } = window
  window.peers = []; window.sockets = []
  window.RTCPeerConnection = class extends Peer { constructor(...given) { super(...given); window.peers.push(this) } }
  window.WebSocket = class extends Socket { constructor(...given) { super(...given); window.sockets.push(this) } }
`
const callWith = (session: unknown): string => `import('/parley-client.js').then(({ createCall }) => {
  window.call = createCall({ session: ${JSON.stringify(session)} })
})`

const restart = `(async () => {
  const [peer] = peers
  peer.restartIce()
  await peer.setLocalDescription()
  sockets.at(-1).send(JSON.stringify({ type: 'offer', sdp: peer.localDescription.sdp }))
})()`
const remoteUser = `/a=ice-ufrag:(.*)/.exec(peers[0].currentRemoteDescription?.sdp)?.[1]`
const localUser = `/a=ice-ufrag:(.*)/.exec(peers[0].currentLocalDescription?.sdp)?.[1]`
const counts = `peers[0].getStats().then((stats) => {
  const of = (type) => [...stats.values()].find((entry) => entry.type === type && entry.kind === 'audio')
  return { received: of('inbound-rtp')?.packetsReceived ?? 0, sent: of('outbound-rtp')?.packetsSent ?? 0 }
})`

type Counts = { readonly received: number; readonly sent: number }

/** Sound goes both ways: a second of it from now on. */
async function talks(page: BrowserPage): Promise<void> {
  const before = await page.evaluate<Counts>(counts)
  await until(async () => {
    const now = await page.evaluate<Counts>(counts)
    return now.received > before.received + 50 && now.sent > before.sent + 50
  })
}

const holdSeconds = 18

for (const browser of browsers()) {
  test(
    `${browser.name} restarts ICE, is put on hold, and is missed within 5 s when its tab is closed`,
    { skip: browser.skip, timeout: 180_000 },
    async (t) => {
      const stage = await openPhoneStage(t, createHearingEngine({ tone: 440, seconds: 110 }))
      const line = await stage.addLine()
      const page = await browser.open()
      t.teardown(() => page.close())
      await page.preload(spy)
      await page.goto(stage.service.url)
      const session = await stage.rest('POST', '/web-calls', { workerId: line.workerId })
      const status = async () => (await stage.rest('GET', `/phone-calls/${String(session['callId'])}`))['status']
      await page.evaluate(callWith(session))
      await line.status('in_progress')
      await talks(page)

      const users = async () => [await page.evaluate(localUser), await page.evaluate(remoteUser)]
      const before = await users()
      await page.evaluate(restart)
      await until(async () => (await users()).every((user, index) => user !== before[index]))
      await talks(page)
      t.equal(await page.evaluate('peers[0].connectionState'), 'connected')
      t.equal(await status(), 'in_progress', 'after the restart')

      await page.evaluate(
        `(window.track = peers[0].getSenders()[0].track, peers[0].getSenders()[0].replaceTrack(null))`,
      )
      await page.evaluate(`new Promise((resolve) => setTimeout(resolve, ${holdSeconds * 1000}))`)
      t.equal(await status(), 'in_progress', `after ${holdSeconds} s without a packet`)
      await page.evaluate(`peers[0].getSenders()[0].replaceTrack(track)`)
      await talks(page)

      const closedAt = Date.now()
      await page.closeTab()
      const { row } = await line.ended()
      const endedAfter = Date.parse(String(row['endedAt'])) - closedAt
      t.comment(
        `ended after ${endedAfter} ms`,
        stage.log.lines.filter(({ message }) => message === 'a leg ended'),
      )
      t.ok(endedAfter < 5000, `${endedAfter} ms`)
      t.equal(row['status'], 'completed')
    },
  )

  test(
    `${browser.name} hears on when NAT gives it another port`,
    { skip: browser.skip, timeout: 120_000 },
    async (t) => {
      const peers = openWebPeers(createQuietLog(), { offersInterfaces: true })
      t.teardown(() => peers.close())
      const peer: WebPeer = peers.createPeer({
        negotiated: () => undefined,
        connected: () => undefined,
        packet: (packet) => peer.send(packet),
        disconnected: () => undefined,
      })
      const onDefaults = { bindAddress: '127.0.0.1', offersInterfaces: true }
      const [address] = offeredAddresses(onDefaults, networkInterfaces()).filter((one) => !one.includes(':'))
      const nat = await openNat(t, address)
      const call = await callFromBarePage(t, browser)
      await call.accept(nat.through(await peer.accept(call.offer)))
      await call.hears()
      const received = async () => (await call.stats())['inbound-rtp'].packetsReceived
      for (let round = 0; round < 3; round += 1) {
        await nat.rebind()
        const [before, at] = [await received(), Date.now()]
        await until(async () => (await received()) > before + 50)
        t.ok(Date.now() - at < 4000, `heard again, a second of sound after ${Date.now() - at} ms`)
      }
      await call.hangUp()
    },
  )
}
