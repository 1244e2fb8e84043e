/**
 * Owns a telephone made of software, from the media side: it speaks, presses keys and listens, in G.711. For the self-test, tests and load
 * tests; who calls it does the signaling.
 */
import { randomInt } from 'node:crypto'
import { frameMs } from '../../model/frame.ts'
import type { NegotiatedAudio, RtpPacket, TransportStats } from '../../model/rtp-transport.ts'
import { lawOfEncoding, type Law } from '../../media/codecs/g711.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'
import type { MediaSession } from '../../media/rtp/media-session.ts'
import type { MediaPorts } from '../../media/rtp/media-ports.ts'
import type { RtpEndpoint } from '../../media/rtp/rtp-endpoint.ts'

export type RtpCaller = {
  readonly local: RtpEndpoint['local']
  /** From here on it sends a packet every 20 ms, sound or silence. Throws for a codec other than G.711. */
  use(session: MediaSession): void
  /** Queues speech, 16-bit at 8 kHz; resolves when its first frame is on the wire, with the time of that. */
  say(speech: Int16Array): Promise<number>
  /** Queues key presses (RFC 4733), each after what is being said. */
  press(digits: string): void
  /** The one listener; a later one takes its place. The samples are valid during the call only. */
  onSound(listener: (samples: Int16Array, packet: RtpPacket) => void): void
  onPacket(listener: (packet: RtpPacket) => void): void
  stats(): TransportStats
  /** Idempotent. */
  close(): Promise<void>
}

type Deps = { readonly ports: MediaPorts; readonly ticker: Ticker; readonly now: () => number }

const frameSamples = (8000 * frameMs) / 1000
const keys = '0123456789*#ABCD'
/** Frames of a press, and how often its end is said (RFC 4733 §2.5.1.4). */
const pressFrames = 6
const endFrames = 3
const maxQueued = 100

export async function openRtpCaller({ ports, ticker, now }: Deps): Promise<RtpCaller> {
  const incoming = createIncoming()
  const endpoint = await ports.open({ packet: incoming.hear, alive: () => undefined, learned: () => undefined })
  const outgoing = createOutgoing(endpoint, now)
  const leave = ticker.join((at) => {
    outgoing.tick()
    endpoint.tick(at)
  })
  return {
    local: endpoint.local,
    use(session) {
      const { codec } = session.audio
      if (codec !== 'pcmu' && codec !== 'pcma') throw new Error(`this caller has no ${codec}`)
      const line: Line = { audio: session.audio, law: lawOfEncoding(codec) }
      endpoint.use(session)
      incoming.use(line)
      outgoing.use(line)
    },
    say: outgoing.say,
    press: outgoing.press,
    onSound: incoming.onSound,
    onPacket: incoming.onPacket,
    stats: () => endpoint.stats(),
    async close() {
      leave()
      await endpoint.close()
    },
  }
}

type Line = { readonly audio: NegotiatedAudio; readonly law: Law }

function createIncoming() {
  let line: Line | null = null
  let onSound: (samples: Int16Array, packet: RtpPacket) => void = () => undefined
  let onPacket: (packet: RtpPacket) => void = () => undefined
  return {
    use: (next: Line) => void (line = next),
    onSound: (listener: typeof onSound) => void (onSound = listener),
    onPacket: (listener: typeof onPacket) => void (onPacket = listener),
    hear(packet: RtpPacket): void {
      onPacket(packet)
      if (packet.payloadType !== line?.audio.payloadType) return
      const samples = new Int16Array(packet.payload.length)
      line.law.decode(packet.payload, samples)
      onSound(samples, packet)
    },
  }
}

/** What is said or pressed next; a step is one frame. */
type Part = { step: number; readonly steps: number; play(step: number, line: Line): void }

function createOutgoing(endpoint: RtpEndpoint, now: () => number) {
  const parts: Part[] = []
  const silence = new Int16Array(frameSamples)
  let line: Line | null = null
  let sequenceNumber = randomInt(0x1_0000)
  let timestamp = randomInt(0x1_0000_0000)
  let isFirst = true

  function send(payloadType: number, payload: Uint8Array, at: number, marker: boolean): void {
    endpoint.send({ payloadType, payload, marker, sequenceNumber, timestamp: at })
    sequenceNumber = (sequenceNumber + 1) & 0xffff
    isFirst = false
  }

  function sendSound(samples: Int16Array, { audio, law }: Line): void {
    const payload = new Uint8Array(frameSamples).fill(law.silence)
    law.encode(samples, payload)
    send(audio.payloadType, payload, timestamp, isFirst)
  }

  /** Every packet of a press has the timestamp of its beginning. */
  function sendKey(key: number, step: number, { audio }: Line): void {
    if (audio.telephoneEventPayloadType === null) return
    const duration = Math.min(step + 1, pressFrames) * frameSamples
    const payload = Uint8Array.of(key, step < pressFrames ? 10 : 0x80 | 10, duration >> 8, duration & 0xff)
    send(audio.telephoneEventPayloadType, payload, (timestamp - step * frameSamples) >>> 0, step === 0)
  }

  function add(steps: number, play: Part['play']): void {
    if (parts.length >= maxQueued) throw new Error('too much to say')
    parts.push({ step: 0, steps, play })
  }

  return {
    use: (next: Line) => void (line = next),
    say: (speech: Int16Array) =>
      new Promise<number>((began) =>
        add(Math.ceil(speech.length / frameSamples), (step, current) => {
          if (step === 0) began(now())
          sendSound(speech.subarray(step * frameSamples, (step + 1) * frameSamples), current)
        }),
      ),
    press(digits: string): void {
      for (const digit of digits) {
        const key = keys.indexOf(digit.toUpperCase())
        if (key < 0) throw new Error(`${digit} is no key`)
        add(pressFrames + endFrames, (step, current) => sendKey(key, step, current))
        add(pressFrames, (_step, current) => sendSound(silence, current))
      }
    },
    tick(): void {
      if (line === null) return
      const [part] = parts
      if (!part) sendSound(silence, line)
      else part.play(part.step++, line)
      if (part && part.step >= part.steps) parts.shift()
      timestamp = (timestamp + frameSamples) >>> 0
    },
  }
}
