/** Browsers that are moved, muted, put on hold or closed in mid-call. */
import { networkInterfaces } from 'node:os'
import t, { test } from 'tap'
import { offeredAddresses } from '../../gateway/werift/offered-addresses.ts'
import type { WebPeer } from '../../model/rtp-transport.ts'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import type { BrowserPage } from '../peers/browser-page.ts'
import { browsers } from '../peers/browsers.ts'
import { until } from '../scenes/in-time.ts'
import { callFromBarePage, spy } from '../scenes/page-call.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'
import { openNat } from '../scenes/rebinding-nat.ts'
import { openWebPeers } from '../scenes/web-peers.ts'

const callWith = (session: unknown): string => `import('/parley-client.js').then(({ createCall }) => {
  window.statuses = []
  window.call = createCall({ session: ${JSON.stringify(session)}, onStatus: (status) => statuses.push(status) })
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

/** IPv4, and not loopback where there is another one: Firefox would not use it. */
const ownAddress = (): string | undefined =>
  offeredAddresses({ bindAddress: '127.0.0.1', offersInterfaces: true }, networkInterfaces()).find(
    (address) => !address.includes(':'),
  )

type Counts = { readonly received: number; readonly sent: number }

/** Sound goes both ways: a second of it from now on. */
async function talks(page: BrowserPage): Promise<void> {
  const before = await page.evaluate<Counts>(counts)
  await until(async () => {
    const now = await page.evaluate<Counts>(counts)
    return now.received > before.received + 50 && now.sent > before.sent + 50
  })
}

/** The first answer waits until the test lets it through, changed. */
const holdFirstAnswer = `
  const { prototype } = RTCPeerConnection
  const setRemoteDescription = prototype.setRemoteDescription
  prototype.setRemoteDescription = async function (description) {
    if (window.firstAnswer) return setRemoteDescription.call(this, description)
    window.firstAnswer = description.sdp
    const sdp = await new Promise((resolve) => (window.letThrough = resolve))
    return setRemoteDescription.call(this, { type: 'answer', sdp })
  }
`
const holdSeconds = 18

/** Of tests that are buffered: they wait for most of their time. */
t.jobs = 2

for (const browser of browsers()) {
  test(
    `${browser.name} restarts ICE, is put on hold, and is missed within 5 s when its tab is closed`,
    { skip: browser.skip, timeout: 180_000, buffered: true },
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
    `a page in ${browser.name} whose way is gone finds another, in the same call`,
    { skip: browser.skip, timeout: 150_000, buffered: true },
    async (t) => {
      const stage = await openPhoneStage(t, createHearingEngine({ tone: 440, seconds: 110 }))
      const line = await stage.addLine()
      const nat = await openNat(t, ownAddress())
      const page = await browser.open()
      t.teardown(() => page.close())
      await page.preload(holdFirstAnswer + spy)
      await page.goto(stage.service.url)
      const session = await stage.rest('POST', '/web-calls', { workerId: line.workerId })
      await page.evaluate(callWith(session))
      const answer = await until(() => page.evaluate<string | null>('window.firstAnswer ?? null'))
      await page.evaluate(`letThrough(${JSON.stringify(nat.through(answer))})`)
      await line.status('in_progress')
      await talks(page)
      t.ok(nat.passed.length > 50, 'sound goes through the NAT')

      nat.only(() => false)
      const sentBefore = nat.passed.length
      await until(() => page.evaluate<boolean>(`statuses.includes('reconnecting')`))
      await until(() => page.evaluate<boolean>(`statuses.at(-1) === 'connected'`))
      await talks(page)
      t.ok(nat.passed.length > sentBefore)
      await page.evaluate('call.hangUp()')
      const { row } = await line.ended()
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
      const nat = await openNat(t, ownAddress())
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
