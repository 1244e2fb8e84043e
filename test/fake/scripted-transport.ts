/** Owns a wire without a wire: the caller's packets come when the test says so, and what the leg sends is kept. */
import type { NegotiatedAudio, RtpPacket, RtpTransport, RtpTransportHandlers } from '../../model/rtp-transport.ts'

export type ScriptedTransport = RtpTransport & {
  readonly sent: RtpPacket[]
  isClosed(): boolean
  /** Tells what was agreed on and that the wire is up. */
  connect(): void
  /** The next packet of the caller's stream, `ms` of sound long. */
  speak(payload: Uint8Array, ms?: number): void
  /** The same packet, but it never arrives. */
  lose(ms?: number): void
  /** Time passes for the caller's clock, and no packet is sent. */
  pause(ms: number): void
  /** A packet of a key press that began at the caller's present. */
  press(event: number, options: { readonly duration: number; readonly end: boolean; readonly marker: boolean }): void
  disconnect(cause: 'hung_up' | 'media_lost' | 'failed', details: string): void
}

export const negotiatedOpus: NegotiatedAudio = {
  codec: 'opus',
  payloadType: 111,
  clockRateHz: 48_000,
  telephoneEventPayloadType: 110,
}
export const negotiatedPcmu: NegotiatedAudio = {
  codec: 'pcmu',
  payloadType: 0,
  clockRateHz: 8000,
  telephoneEventPayloadType: 101,
}

export function createScriptedTransport(handlers: RtpTransportHandlers, audio: NegotiatedAudio): ScriptedTransport {
  const sent: RtpPacket[] = []
  let sequenceNumber = 65_530
  let timestamp = 0xffff_f000
  let closed = false
  let received = 0

  const pass = (ms: number) => void (timestamp = (timestamp + (ms * audio.clockRateHz) / 1000) >>> 0)
  const receive = (payloadType: number, marker: boolean, payload: Uint8Array) => {
    received++
    handlers.packet({ payloadType, marker, sequenceNumber, timestamp, payload })
    sequenceNumber = (sequenceNumber + 1) & 0xffff
  }

  return {
    sent,
    isClosed: () => closed,
    connect() {
      handlers.negotiated(audio)
      handlers.connected('connected')
    },
    speak(payload, ms = 20) {
      receive(audio.payloadType, false, payload)
      pass(ms)
    },
    lose(ms = 20) {
      sequenceNumber = (sequenceNumber + 1) & 0xffff
      pass(ms)
    },
    pause: pass,
    press(event, { duration, end, marker }) {
      const payload = Uint8Array.of(event, end ? 0x8a : 0x0a, duration >> 8, duration & 0xff)
      receive(audio.telephoneEventPayloadType ?? 0, marker, payload)
    },
    disconnect: (cause, details) => handlers.disconnected(cause, details),
    send(packet) {
      if (!closed) sent.push(packet)
    },
    stats: () => ({ packetsReceived: received, packetsSent: sent.length, bytesReceived: 0, bytesSent: 0 }),
    close: async () => void (closed = true),
  }
}
