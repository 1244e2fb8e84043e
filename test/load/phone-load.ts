/**
 * Owns one telephone of the benches, from its media side: a socket that sends a prepared packet of PCMU every 20 ms and counts what comes. One
 * that measures is silent between its marks and notices when they come back.
 */
import { readRtcp } from '../../media/rtp/rtcp/rtcp-wire.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { isRtcp } from '../../media/rtp/rtp-wire.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'
import { createPacketWriter, headerBytes } from './rtp-packets.ts'
import { isMark, markOf, voiceOf } from './phone-sound.ts'

export type LoadedPhone = {
  readonly port: number
  /** From here on it sends. */
  begin(remote: { readonly address: string; readonly port: number }): void
  /** How long marks took to come back, ms; empties the list. */
  takeEchoes(): number[]
  counts(): PhoneCounts
  /** Idempotent. */
  close(): Promise<void>
}

export type PhoneCounts = {
  readonly sent: number
  readonly received: number
  /** By the numbers on the packets that came. */
  readonly missing: number
  /** Of ours, as the other side reported last. */
  readonly lostThere: number
}

export type PhoneSound = { readonly talk: readonly Uint8Array[]; readonly marks: readonly Uint8Array[] }

const samplesPerFrame = 160
/** Often enough to measure and rarely enough to be told from the next, in frames. */
const marksEvery = 25
const law = lawOfEncoding('pcmu')

/** Every call sends the same: what is measured is the service, not our encoder. */
export function preparePhoneSound(): PhoneSound {
  const encode = (samples: Int16Array): Uint8Array => {
    const bytes = new Uint8Array(samples.length)
    law.encode(samples, bytes)
    return bytes
  }
  const speech = encode(voiceOf(8000, 150))
  const silence = new Uint8Array(samplesPerFrame).fill(law.silence)
  const mark = encode(markOf(8000))
  return {
    talk: Array.from({ length: 150 }, (_, at) => speech.subarray(at * samplesPerFrame, (at + 1) * samplesPerFrame)),
    marks: Array.from({ length: marksEvery }, (_, at) => (at === 0 ? mark : silence)),
  }
}

export async function openLoadedPhone(deps: {
  readonly ticker: Ticker
  readonly sound: PhoneSound
  readonly measures: boolean
}): Promise<LoadedPhone> {
  const { ticker, sound, measures } = deps
  const socket = await bindUdp('127.0.0.1', 0)
  const packets = measures ? sound.marks : sound.talk
  const echo = createEchoMeter()
  const arrivals = createArrivals()
  const write = createPacketWriter()
  let lostThere = 0
  let sent = 0
  let leave = (): void => undefined
  let closing: Promise<void> | null = null

  socket.on('message', (datagram) => {
    if (isRtcp(datagram)) lostThere = readRtcp(datagram)?.blocks[0]?.packetsLost ?? lostThere
    else {
      arrivals.add(datagram.readUInt16BE(2))
      if (measures) echo.received(datagram)
    }
  })

  async function close(): Promise<void> {
    leave()
    await closeUdp(socket)
  }
  return {
    port: socket.address().port,
    begin({ address, port }) {
      leave = ticker.join(() => {
        if (measures && sent % marksEvery === 0) echo.marked(performance.now())
        const packet = write(sent, packets[sent % packets.length] as Uint8Array)
        // The callback takes what the network says of a socket that is gone.
        socket.send(packet, port, address, ignore)
        sent++
      })
    },
    takeEchoes: echo.take,
    counts: () => ({ sent, ...arrivals.counts(), lostThere }),
    close: () => (closing ??= close()),
  }
}

const ignore = (): void => undefined

function createArrivals() {
  let received = 0
  let missing = 0
  let last: number | null = null
  return {
    add(sequenceNumber: number): void {
      received++
      const step = last === null ? 1 : ((sequenceNumber - last) << 16) >> 16
      // What comes late was counted as missing.
      if (step <= 0) return void missing--
      missing += step - 1
      last = sequenceNumber
    },
    counts: () => ({ received, missing }),
  }
}

/** The first loud packet after a mark is its echo. */
function createEchoMeter() {
  const samples = new Int16Array(samplesPerFrame)
  let delays: number[] = []
  let markedAt: number | null = null
  return {
    marked: (at: number) => void (markedAt = at),
    received(datagram: Buffer): void {
      if (markedAt === null) return
      law.decode(datagram.subarray(headerBytes, headerBytes + samplesPerFrame), samples)
      if (!isMark(samples)) return
      delays.push(performance.now() - markedAt)
      markedAt = null
    },
    take(): number[] {
      const taken = delays
      delays = []
      return taken
    },
  }
}
