/**
 * Owns the RTP stream to the peer: its packets and their numbers. Sequence numbers count packets, timestamps go on with time through
 * silence, keys, hold and a change of codec; the first packet after a pause carries the marker (RFC 3550 §5.1, RFC 3551 §4.1).
 */
import { randomInt } from 'node:crypto'
import { frameMs } from '../../model/frame.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import type { DtmfSender } from '../rtp/dtmf-sender.ts'
import { createEvenPace } from './even-pace.ts'
import { createPacketizer, type Packetizer } from './packetizer.ts'
import type { Sink } from './stages/stage.ts'

export type OutgoingStream = {
  /** What follows is coded like this. */
  readonly use: (audio: NegotiatedAudio) => void
  /** The timestamp of what is sent next, at the time `at`. Ticks that were left out have passed all the same. */
  readonly passTo: (at: number) => number
  /** 20 ms of sound, or of a pause that is sent all the same. */
  readonly take: Sink
  /** 20 ms of the keys that are pressed. */
  readonly press: (keys: DtmfSender, payloadType: number) => void
  /** Half a tick has passed since `passTo`. */
  readonly halfway: () => void
  /** Nothing is sent for a while. */
  readonly pause: () => void
  /** Some sound waits for the rest of its packet. */
  readonly isWaiting: () => boolean
}

type Coding = { readonly audio: NegotiatedAudio; readonly packets: Packetizer | null }

export function createOutgoingStream(send: (packet: RtpPacket) => void): OutgoingStream {
  const numbering = createRtpNumbering()
  const pace = createEvenPace()
  let now = 0
  let coding: Coding | null = null
  /** The next packet of sound comes after a pause. */
  let begins = true

  const transmit = (payloadType: number, payload: Uint8Array, timestamp: number, marker: boolean) =>
    send({ payloadType, marker, sequenceNumber: numbering.next(), timestamp, payload })

  const inPace: Transmit = (payloadType, payload, timestamp, marker) =>
    pace.put(() => transmit(payloadType, payload, timestamp, marker), now, payload.length / bytesPerMs)

  const pause = () => {
    coding?.packets?.flush()
    pace.flush()
    begins = true
  }

  return {
    use(audio) {
      // What waits for the rest of its packet is of no use to a peer that wants another codec.
      if (coding?.audio.payloadType === audio.payloadType) coding.packets?.flush()
      else begins = true
      pace.flush()
      coding = { audio, packets: packetsOf(audio, inPace) }
      numbering.use(audio.clockRateHz)
    },
    passTo(at) {
      now = at
      return numbering.passTo(at)
    },
    halfway: pace.halfway,
    take({ kind, payload, timestamp }) {
      if (!coding) return
      const marker = kind === 'sound' && begins
      if (coding.packets) coding.packets.add(payload, timestamp, marker)
      else transmit(coding.audio.payloadType, payload, timestamp, marker)
      begins = kind === 'pause'
    },
    press(keys, payloadType) {
      pause()
      const packet = coding && keys.next(numbering.timestamp(), coding.audio.eventClockHz ?? coding.audio.clockRateHz)
      if (packet) transmit(payloadType, packet.payload, packet.timestamp, packet.marker)
    },
    pause,
    isWaiting: () => coding?.packets?.isWaiting() ?? false,
  }
}

/** Of G.711 and of G.722. */
const bytesPerMs = 8

type Transmit = (payloadType: number, payload: Uint8Array, timestamp: number, marker: boolean) => void

/** Null where 20 ms of sound are a packet, as an Opus payload always is. */
function packetsOf({ codec, payloadType, packetMs }: NegotiatedAudio, transmit: Transmit): Packetizer | null {
  if (codec === 'opus' || packetMs === frameMs) return null
  const send = (payload: Uint8Array, timestamp: number, marker: boolean) =>
    transmit(payloadType, payload, timestamp, marker)
  return createPacketizer({ packetMs, bytesPerMs, send })
}

/** Both begin at random (RFC 3550 §5.1). */
function createRtpNumbering() {
  let sequenceNumber = randomInt(0x1_0000)
  let timestamp = randomInt(0x1_0000_0000)
  let clockRateHz = 8000
  let passedTo: number | null = null
  return {
    next: () => (sequenceNumber = (sequenceNumber + 1) & 0xffff),
    timestamp: () => timestamp,
    use: (rateHz: number) => void (clockRateHz = rateHz),
    passTo(at: number): number {
      const ticks = passedTo === null ? 1 : Math.max(1, Math.round((at - passedTo) / frameMs))
      passedTo = at
      timestamp = (timestamp + (ticks * clockRateHz * frameMs) / 1000) >>> 0
      return timestamp
    },
  }
}
