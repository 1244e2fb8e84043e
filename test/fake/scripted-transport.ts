/** Owns a wire without a wire: the caller's packets come when the test says so, and what the leg sends is kept. */
import type {
  NegotiatedAudio,
  RtpPacket,
  RtpTransport,
  RtpTransportHandlers,
  TransportQuality,
  TransportStats,
} from '../../model/rtp-transport.ts'

export type ScriptedTransport = RtpTransport & {
  readonly sent: RtpPacket[]
  isClosed(): boolean
  /** Null before it was closed. */
  closeReason(): string | null
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
  /** Comfort noise of so many dB below overload; RFC 3389. */
  quieten(decibels: number): void
  /** Agrees on something else in the middle of the call. */
  renegotiate(audio: NegotiatedAudio): void
  /** What RTCP says from here on; until then the wire speaks none. */
  report(quality: TransportQuality): void
  /** Datagrams that came and were not passed on, from here on. */
  drop(dropped: TransportStats['dropped']): void
  /** The stream goes on with other numbers, as that of another source does. */
  jump(sequenceNumber: number, timestamp: number): void
  disconnect(cause: 'hung_up' | 'media_lost' | 'failed', details: string): void
}

const asBrowsersDo = { comfortNoisePayloadType: null, packetMs: 20, silence: 'sparse' } as const

export const negotiatedOpus: NegotiatedAudio = {
  ...asBrowsersDo,
  codec: 'opus',
  payloadType: 111,
  clockRateHz: 48_000,
  telephoneEventPayloadType: 110,
}
export const negotiatedPcmu: NegotiatedAudio = {
  ...asBrowsersDo,
  codec: 'pcmu',
  payloadType: 0,
  clockRateHz: 8000,
  telephoneEventPayloadType: 101,
}

/** What an exchange agrees on. */
export const negotiatedPhone: NegotiatedAudio = {
  codec: 'pcma',
  payloadType: 8,
  clockRateHz: 8000,
  telephoneEventPayloadType: 101,
  comfortNoisePayloadType: 13,
  packetMs: 20,
  silence: 'continuous',
}
export const negotiatedG722: NegotiatedAudio = { ...negotiatedPhone, codec: 'g722', payloadType: 9 }

export function createScriptedTransport(handlers: RtpTransportHandlers, first: NegotiatedAudio): ScriptedTransport {
  let audio = first
  const sent: RtpPacket[] = []
  let sequenceNumber = 65_530
  let timestamp = 0xffff_f000
  let closeReason: string | null = null
  let received = 0
  let reported: TransportQuality | null = null
  let dropped: TransportStats['dropped'] = undefined

  const pass = (ms: number) => void (timestamp = (timestamp + (ms * audio.clockRateHz) / 1000) >>> 0)
  const receive = (payloadType: number, marker: boolean, payload: Uint8Array) => {
    received++
    handlers.packet({ payloadType, marker, sequenceNumber, timestamp, payload })
    sequenceNumber = (sequenceNumber + 1) & 0xffff
  }

  return {
    sent,
    isClosed: () => closeReason !== null,
    closeReason: () => closeReason,
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
    quieten: (decibels) => receive(audio.comfortNoisePayloadType ?? 13, false, Uint8Array.of(decibels)),
    renegotiate(agreed) {
      audio = agreed
      handlers.negotiated(agreed)
    },
    report(quality) {
      reported = quality
    },
    drop: (counted) => void (dropped = counted),
    jump(toSequenceNumber, toTimestamp) {
      sequenceNumber = toSequenceNumber
      timestamp = toTimestamp
    },
    disconnect: (cause, details) => handlers.disconnected(cause, details),
    send(packet) {
      if (closeReason === null) sent.push(packet)
    },
    stats: () => ({
      packetsReceived: received,
      packetsSent: sent.length,
      bytesReceived: 0,
      bytesSent: 0,
      ...(reported && { quality: reported }),
      ...(dropped && { dropped }),
    }),
    close: async (reason = '') => void (closeReason ??= reason),
  }
}
