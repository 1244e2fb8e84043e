/** Owns a call from a page without any script of ours: the page offers, a peer answers, and the numbers of the browser are read. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { BrowserPage } from '../peers/browser-page.ts'
import type { Browser } from '../peers/browsers.ts'

/** To be preloaded: keeps what a page opens as `peers` and `sockets`, so that a test can look at it and cut it. */
export const spy = `
  const { RTCPeerConnection: Peer, WebSocket: Socket } = window
  window.peers = []; window.sockets = []
  window.RTCPeerConnection = class extends Peer { constructor(...given) { super(...given); window.peers.push(this) } }
  window.WebSocket = class extends Socket { constructor(...given) { super(...given); window.sockets.push(this) } }
`

export type PageCall = {
  readonly page: BrowserPage
  readonly offer: string
  accept(answer: string): Promise<void>
  /** Resolves when sound arrives: it counts as heard when its energy grows. Rejects after half a minute. */
  hears(): Promise<void>
  press(key: string): Promise<void>
  /** Reports of RTCStatsReport that have a `kind`, by their type; the one of audio. */
  stats(): Promise<AudioStats>
  /** The same, when both ends have reported and the browser knows a round trip. Rejects after half a minute. */
  statsWithRoundTrip(): Promise<AudioStats>
  hangUp(): Promise<void>
}

/** As far as tests look at them; numbers are seconds where they are times. */
export type AudioStats = {
  readonly 'inbound-rtp': { readonly packetsReceived: number; readonly packetsLost: number; readonly jitter: number }
  readonly 'outbound-rtp': { readonly packetsSent: number }
  readonly 'remote-inbound-rtp'?: {
    readonly roundTripTime?: number
    readonly packetsLost: number
    readonly fractionLost: number
    readonly jitter: number
  }
  readonly 'remote-outbound-rtp'?: { readonly packetsSent: number; readonly bytesSent: number }
}

export async function callFromBarePage(t: Test, browser: Browser): Promise<PageCall> {
  const site = createServer((_request, response) =>
    response.setHeader('content-type', 'text/html').end('<title>call</title>'),
  )
  await once(site.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => void site.close())
  const page = await browser.open()
  t.teardown(() => page.close())
  await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`)
  return {
    page,
    offer: await page.evaluate<string>(offer),
    accept: (answer) => page.evaluate(`peer.setRemoteDescription({ type: 'answer', sdp: ${JSON.stringify(answer)} })`),
    hears: () => page.evaluate(hears),
    press: (key) => page.evaluate(`peer.getSenders()[0].dtmf.insertDTMF(${JSON.stringify(key)})`),
    stats: () => page.evaluate(stats),
    statsWithRoundTrip: () => page.evaluate(statsWithRoundTrip),
    hangUp: () => page.evaluate('peer.close()'),
  }
}

const offer = `(async () => {
  globalThis.peer = new RTCPeerConnection({ bundlePolicy: 'max-bundle' })
  globalThis.player = new Audio()
  peer.ontrack = ({ track }) => { player.srcObject = new MediaStream([track]); void player.play() }
  const microphone = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: false, noiseSuppression: false } })
  peer.addTrack(microphone.getAudioTracks()[0], microphone)
  peer.addTransceiver('video')
  peer.createDataChannel('unwanted')
  await peer.setLocalDescription()
  return peer.localDescription.sdp
})()`

/** `look` at the numbers until it finds something. */
const untilFound = (look: string): string => `(async () => {
  const stats = async () => {
    const audio = [...(await peer.getStats()).values()].filter(({ kind }) => kind === 'audio')
    return Object.fromEntries(audio.map((report) => [report.type, report]))
  }
  for (let tries = 0; tries < 300; tries += 1) {
    const found = (${look})(await stats())
    if (found) return found
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('not seen for half a minute')
})()`

const hears = untilFound(`({ 'inbound-rtp': { totalAudioEnergy } = {} }) => totalAudioEnergy > 0.0005`)
const stats = untilFound('(stats) => stats')
const statsWithRoundTrip = untilFound(
  `(stats) => stats['remote-inbound-rtp']?.roundTripTime !== undefined && stats['remote-outbound-rtp'] && stats`,
)
