/**
 * Owns one telephone of the voice bench, from its media side: a socket that sends a packet of PCMU every 20 ms, says what it is told to, and knows
 * when the agent was loud.
 */
import { readRtp, isRtcp } from '../../media/rtp/rtp-wire.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'
import { createPacketWriter } from './rtp-packets.ts'
import { isLoud, samplesPerFrame, silentFrame, type Utterance } from './voice-utterance.ts'

/** When loud packets of the agent came, ms; the newest last. */
export type AgentHeard = {
  /** Null: nothing was loud since the call began. */
  lastLoud(): number | null
  firstLoudAfter(at: number): number | null
  /** The last loud packet before the first pause after `at` that is no pause for breath; null as long as there is none. */
  silentAfter(at: number, now: number): number | null
}

export type SaidAt = { readonly onsetAt: number; readonly endAt: number }

export type VoicePhone = {
  readonly port: number
  readonly agent: AgentHeard
  /** From here on it sends. */
  begin(remote: { readonly address: string; readonly port: number }): void
  /** Resolves when its end is on the wire; null when the phone was closed before. One at a time. */
  say(utterance: Utterance): Promise<SaidAt | null>
  /** Looked at with every packet that is sent. False: it did not come to hold in time, or the phone was closed. */
  until(holds: (now: number) => boolean, withinMs: number): Promise<boolean>
  isClosed(): boolean
  /** Idempotent. */
  close(): Promise<void>
}

/** Between words of the agent's voice there is less. */
const pauseMs = 200
const maxLoud = 1_500
const law = lawOfEncoding('pcmu')

export async function openVoicePhone(ticker: Ticker): Promise<VoicePhone> {
  const socket = await bindUdp('127.0.0.1', 0)
  const agent = createAgentHeard()
  const outgoing = createOutgoing()
  const waits = createWaits()
  const write = createPacketWriter()
  let packets = 0
  let leave = (): void => undefined
  let closing: Promise<void> | null = null

  socket.on('message', (datagram) => {
    const packet = isRtcp(datagram) ? null : readRtp(datagram)
    if (packet?.payloadType === 0) agent.received(packet.payload, performance.now())
  })

  async function close(): Promise<void> {
    leave()
    outgoing.stop()
    waits.end()
    await closeUdp(socket)
  }
  return {
    port: socket.address().port,
    agent,
    begin({ address, port }) {
      leave = ticker.join(() => {
        const payload = outgoing.next()
        // The callback takes what the network says of a socket that is gone.
        socket.send(write(packets++, payload), port, address, ignore)
        const now = performance.now()
        outgoing.sent(now)
        waits.look(now)
      })
    },
    say: outgoing.say,
    until: waits.until,
    isClosed: () => closing !== null,
    close: () => (closing ??= close()),
  }
}

const ignore = (): void => undefined

function createAgentHeard() {
  const samples = new Int16Array(samplesPerFrame)
  const loud: number[] = []
  return {
    received(payload: Uint8Array, now: number): void {
      if (payload.length !== samplesPerFrame) return
      law.decode(payload, samples)
      if (!isLoud(samples)) return
      loud.push(now)
      if (loud.length > maxLoud) loud.splice(0, maxLoud / 2)
    },
    lastLoud: () => loud.at(-1) ?? null,
    firstLoudAfter: (at: number) => loud.find((time) => time > at) ?? null,
    silentAfter(at: number, now: number): number | null {
      const since = loud.filter((time) => time > at)
      const before = since.find((time, index) => (since[index + 1] ?? now) - time >= pauseMs)
      return since.length > 0 ? (before ?? null) : null
    },
  }
}

/** Silence, unless something is said. */
function createOutgoing() {
  let saying: { readonly utterance: Utterance; readonly end: (said: SaidAt | null) => void } | null = null
  let sent = 0
  let onsetAt = 0
  let stopped = false
  return {
    say: (utterance: Utterance) =>
      new Promise<SaidAt | null>((end) => {
        if (stopped) return end(null)
        saying = { utterance, end }
        sent = 0
      }),
    next: (): Uint8Array => saying?.utterance.frames[sent] ?? silentFrame,
    sent(now: number): void {
      if (saying === null) return
      const { utterance, end } = saying
      if (sent === utterance.onset) onsetAt = now
      if (sent === utterance.end) end({ onsetAt, endAt: now })
      sent++
      if (sent >= utterance.frames.length) saying = null
    },
    stop(): void {
      stopped = true
      saying?.end(null)
      saying = null
    },
  }
}

type Wait = { readonly holds: (now: number) => boolean; readonly deadline: number; done(held: boolean): void }

function createWaits() {
  const waiting = new Set<Wait>()
  let ended = false
  return {
    until: (holds: Wait['holds'], withinMs: number) =>
      new Promise<boolean>((done) => {
        if (ended) return done(false)
        waiting.add({ holds, deadline: performance.now() + withinMs, done })
      }),
    look(now: number): void {
      for (const wait of waiting) {
        const held = wait.holds(now)
        if (!held && now < wait.deadline) continue
        waiting.delete(wait)
        wait.done(held)
      }
    },
    end(): void {
      ended = true
      for (const { done } of waiting) done(false)
      waiting.clear()
    },
  }
}
