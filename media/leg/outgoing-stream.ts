/**
 * Owns the RTP stream to the peer: its numbering and what is sent while nothing is said. Sequence numbers count packets, timestamps go on
 * with time through silence, keys, hold and a change of codec; the first packet after a pause carries the marker (RFC 3550 §5.1, RFC 3551
 * §4.1).
 */
import { randomInt } from 'node:crypto'
import { frameMs } from '../../model/frame.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import type { AgentSound } from './agent-sound.ts'
import type { DtmfSender } from '../rtp/dtmf-sender.ts'
import { createPacketizer, type Packetizer } from './packetizer.ts'

export type AgentLine = { readonly sound: AgentSound; readonly audio: NegotiatedAudio }

export type OutgoingStream = {
  /** What follows is encoded by this, and the one before it is closed; null sends nothing. */
  readonly use: (line: AgentLine | null) => void
  readonly audio: () => NegotiatedAudio | null
  /** The time of what is sent next. Ticks that were left out have passed all the same. */
  readonly passTo: (at: number) => void
  /** One frame of the agent, played at `at`. */
  readonly say: (frame: Uint8Array, at: number) => void
  /** 20 ms in which nothing is said. */
  readonly rest: () => void
  /** 20 ms of the keys that are pressed. */
  readonly press: (keys: DtmfSender, payloadType: number) => void
  /** Nothing is sent for a while. */
  readonly pause: () => void
}

/** Silence that is sent before the line is quiet (200 ms), and then every so often (400 ms), in ticks. */
const tailTicks = 10
const keepAliveTicks = 20

type Line = AgentLine & { readonly packets: Packetizer | null }

export function createOutgoingStream(send: (packet: RtpPacket) => void): OutgoingStream {
  const numbering = createRtpNumbering()
  let line: Line | null = null
  /** The next packet of sound comes after a pause. */
  let begins = true
  let silentTicks = 0

  const transmit = (payloadType: number, payload: Uint8Array, timestamp: number, marker: boolean) =>
    send({ payloadType, marker, sequenceNumber: numbering.next(), timestamp, payload })

  const add = ({ audio, packets }: Line, payload: Uint8Array, marker: boolean) => {
    if (packets) packets.add(payload, numbering.timestamp(), marker)
    else transmit(audio.payloadType, payload, numbering.timestamp(), marker)
  }

  const pause = () => {
    line?.packets?.flush()
    begins = true
  }

  return {
    use(newLine) {
      line?.sound.close()
      // What waits for the rest of its packet is of no use to a peer that wants another codec.
      if (line?.audio.payloadType === newLine?.audio.payloadType) line?.packets?.flush()
      else begins = true
      line = newLine && { ...newLine, packets: packetsOf(newLine.audio, transmit) }
    },
    audio: () => line?.audio ?? null,
    passTo: (at) => line && numbering.passTo(at, line.audio),
    say(frame, at) {
      if (line) add(line, line.sound.encode(frame, at), begins)
      begins = false
      silentTicks = 0
    },
    rest() {
      if (!line) return
      // For a peer that wants packets all the time this is sound like any other; else it is none, and what is said next begins after it.
      const isSound = line.audio.silence === 'continuous'
      silentTicks++
      const isDue = silentTicks <= tailTicks || (silentTicks - tailTicks) % keepAliveTicks === 0
      if (isSound || isDue || line.packets?.isWaiting()) add(line, line.sound.silence(), isSound && begins)
      begins = !isSound
    },
    press(keys, payloadType) {
      pause()
      const packet = line && keys.next(numbering.timestamp(), line.audio.clockRateHz)
      if (packet) transmit(payloadType, packet.payload, packet.timestamp, packet.marker)
    },
    pause,
  }
}

type Transmit = (payloadType: number, payload: Uint8Array, timestamp: number, marker: boolean) => void

/** Null where 20 ms of sound are a packet, as an Opus payload always is. */
function packetsOf({ codec, payloadType, packetMs }: NegotiatedAudio, transmit: Transmit): Packetizer | null {
  if (codec === 'opus' || packetMs === frameMs) return null
  const send = (payload: Uint8Array, timestamp: number, marker: boolean) =>
    transmit(payloadType, payload, timestamp, marker)
  return createPacketizer({ packetMs, bytesPerMs: 8, send })
}

/** Both begin at random (RFC 3550 §5.1). */
function createRtpNumbering() {
  let sequenceNumber = randomInt(0x1_0000)
  let timestamp = randomInt(0x1_0000_0000)
  let passedTo: number | null = null
  return {
    next: () => (sequenceNumber = (sequenceNumber + 1) & 0xffff),
    timestamp: () => timestamp,
    passTo(at: number, { clockRateHz }: NegotiatedAudio) {
      const ticks = passedTo === null ? 1 : Math.max(1, Math.round((at - passedTo) / frameMs))
      passedTo = at
      timestamp = (timestamp + (ticks * clockRateHz * frameMs) / 1000) >>> 0
    },
  }
}
