/**
 * Owns a browser of a run: it joins a call as `/parley-client.js` does, and when it loses its socket it comes back by its resume token, at whatever
 * gateway listens, which is what one address in front of them comes to. Its sound passes the shaper, and begins anew where the service asks for that.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createWeriftCaller, type WebCaller } from '../../gateway/werift/caller.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import { resumeWindow, type WebCallSession } from '../../model/web-call.ts'
import { placeWebCall, type WebCall } from '../callers/web-caller.ts'
import type { Line } from './talk.ts'
import type { UdpShaper } from './udp-shaper.ts'

export type ReturningBrowser = {
  readonly line: Line
  readonly audio: NegotiatedAudio
  /** What ended it, and when by performance.now. */
  readonly ended: Promise<{ readonly how: string; readonly at: number }>
  /** The service said goodbye. */
  wasTold(): boolean
  /** Idempotent. */
  hangUp(): Promise<void>
}

type Wish = {
  readonly shaper: UdpShaper
  readonly session: WebCallSession
  /** Of signaling; the first is where it joins. */
  readonly addresses: readonly string[]
}

/** As the client does it. */
const [firstRetry, slowestRetry] = [250, 4_000]
const counted: readonly string[] = ['status', 'transcript', 'interrupted', 'error'] satisfies ServerMessage['type'][]
const host = '127.0.0.1'

/** Resolves when there is sound. */
export async function joinByBrowser(wish: Wish): Promise<ReturningBrowser> {
  const { shaper, session, addresses } = wish
  const over = Promise.withResolvers<{ how: string; at: number }>()
  const end = (how: string): void => over.resolve({ how, at: performance.now() })
  const line = createMovingLine()
  let isTold = false
  let isOurs = false
  let received = 0

  function take(message: ServerMessage): void {
    if (counted.includes(message.type)) received++
    if (message.type !== 'bye') return
    isTold ||= !isOurs
    end(`bye: ${message.reason}`)
  }
  const isOver = (): boolean => isTold || isOurs
  const options = { ...session, onMessage: take }
  /** By the first that listens. */
  async function join() {
    for (const [index, signalingUrl] of addresses.entries()) {
      const joining = relayedCaller(createWeriftCaller(), shaper)
      try {
        const joined = await placeWebCall({ ...options, signalingUrl, createCaller: () => joining.caller })
        return { joined, joining, first: signalingUrl }
      } catch (error) {
        await joining.close()
        if (index === addresses.length - 1) throw error
      }
    }
    throw new Error('no gateway was named')
  }
  let { joined: call, joining: sound, first } = await join()

  /** Where the former sound is gone, another one is offered; where its process lives, it goes on. */
  async function comeBackTo(signalingUrl: string): Promise<WebCall> {
    const next = relayedCaller(createWeriftCaller(), shaper)
    let isAnew = false
    const caller: WebCaller = {
      ...next.caller,
      offer() {
        isAnew = true
        return next.caller.offer()
      },
    }
    const resume = { token: call.resumeToken, received }
    try {
      const back = await placeWebCall({ ...options, signalingUrl, resume, createCaller: () => caller })
      if (!isAnew) await next.close()
      if (!isAnew) return { ...back, caller: sound.caller }
      await sound.close()
      sound = next
      line.moveTo(caller)
      return back
    } catch (error) {
      await next.close()
      throw error
    }
  }

  async function comeBack(): Promise<WebCall | null> {
    const lostAt = performance.now()
    for (let retry = firstRetry; performance.now() - lostAt < resumeWindow; retry = Math.min(2 * retry, slowestRetry)) {
      await pause(retry)
      // Whoever stands in front of several asks the next when one does not listen.
      for (const address of [...addresses.filter((other) => other !== first), first]) {
        if (isOver()) return null
        const back = await comeBackTo(address).catch(() => null)
        if (back) return back
      }
    }
    return null
  }

  async function stay(): Promise<void> {
    for (;;) {
      await call.socketClosed
      if (isOver()) return
      const back = await comeBack()
      if (!back) return end('the signaling was lost and did not come back')
      call = back
    }
  }

  const hangUp = async (): Promise<void> => {
    isOurs ||= !isTold
    await call.hangUp()
    await sound.close()
  }
  const audio = await sound.caller.connected.catch(async (error: unknown) => {
    await hangUp()
    throw error
  })
  line.moveTo(sound.caller)
  void stay().catch((error: unknown) => end(String(error)))
  return { line, audio, ended: over.promise, wasTold: () => isTold, hangUp }
}

/** The sound of a call, whatever carries it. */
function createMovingLine() {
  let caller: WebCaller | null = null
  let hear: (packet: RtpPacket) => void = () => undefined
  return {
    onPacket: (listener: (packet: RtpPacket) => void) => void (hear = listener),
    send: (packet: RtpPacket) => caller?.send(packet),
    moveTo(next: WebCaller) {
      caller = next
      next.onPacket((packet) => hear(packet))
    },
  }
}

/** The answer's addresses are those of relays, so that the sound passes the shaper both ways. */
function relayedCaller(caller: WebCaller, shaper: UdpShaper) {
  const relays = new Map<string, Promise<{ readonly port: number; close(): Promise<void> }>>()
  async function relayed(text: string): Promise<string> {
    const shape = /(candidate:\S+ \d+ udp \d+ )(\S+) (\d+)( typ host)/gi
    const found = [...text.matchAll(shape)]
    for (const [, , address = '', port = ''] of found) {
      const place = `${address} ${port}`
      if (!relays.has(place)) relays.set(place, shaper.relay({ address, port: Number(port) }))
    }
    const ports = new Map(
      await Promise.all([...relays].map(async ([place, relay]) => [place, (await relay).port] as const)),
    )
    return text.replace(
      shape,
      (_, before: string, address: string, port: string, behind: string) =>
        `${before}${host} ${ports.get(`${address} ${port}`)}${behind}`,
    )
  }
  return {
    caller: {
      ...caller,
      accept: async (sdp) => caller.accept(await relayed(sdp)),
      addCandidate: async (candidate) =>
        caller.addCandidate(candidate && { ...candidate, candidate: await relayed(candidate.candidate) }),
    } satisfies WebCaller,
    close: async () => void (await Promise.all([...relays.values()].map(async (relay) => (await relay).close()))),
  }
}
