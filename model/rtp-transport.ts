/**
 * Owns the port between a leg's pipeline (jitter buffer, codec, pacer) and the wire under it: a WebRTC peer or a plain RTP socket.
 * The SSRC belongs to the transport; sequence numbers and timestamps belong to the pipeline. RFC 3550.
 */

import type { EndedBy, Outcome } from './outcome.ts'

export type RtpPacket = {
  readonly payloadType: number
  readonly marker: boolean
  /** 16 bit. */
  readonly sequenceNumber: number
  /** 32 bit, in units of the codec's RTP clock. */
  readonly timestamp: number
  readonly payload: Uint8Array
}

/** What offer and answer agreed on. Opus's RTP clock is 48 kHz whatever rate it is coded at (RFC 7587 §4.1). */
export type NegotiatedAudio = {
  readonly codec: 'opus' | 'pcmu' | 'pcma' | 'g722'
  readonly payloadType: number
  /** G.722 says 8000 although it samples at 16 kHz (RFC 3551 §4.5.2). */
  readonly clockRateHz: 8000 | 48000
  /** RFC 4733; null when the peer did not offer it. */
  readonly telephoneEventPayloadType: number | null
  /** Their clock, where it is another one than that of the sound: peers with Opus know events at 8000 only, many of them. */
  readonly eventClockHz?: number | undefined
  /** RFC 3389; null when the peer did not offer it. */
  readonly comfortNoisePayloadType: number | null
  /** What one packet to the peer carries, ms (`ptime`). */
  readonly packetMs: 10 | 20 | 30 | 40 | 60
  /** A peer that takes a pause in packets for a lost call gets silence as sound. Browsers get hardly any. */
  readonly silence: 'continuous' | 'sparse'
}

export type TransportStats = {
  readonly packetsReceived: number
  readonly packetsSent: number
  readonly bytesReceived: number
  readonly bytesSent: number
  /** Where the transport speaks RTCP; RFC 3550 §6.4.1. */
  readonly quality?: TransportQuality
  /** Datagrams that came and were not passed on. */
  readonly dropped?: {
    /** From an address that is not the peer's. Of those that SRTP would have had to prove some count as `unusable` too. */
    readonly strangers: number
    /** More than a call may send. */
    readonly flood: number
    /** No packet of this call: malformed, not authentic, seen before, of a payload type nobody agreed on, or too early. */
    readonly unusable: number
    /** The address that the last stranger had; null: there was none. */
    readonly lastStranger?: string | null
  }
}

/** Of this leg's wire, as far as it is known. */
export type TransportQuality = {
  readonly packetsLost: number
  readonly jitterMs: number
  readonly roundTripMs: number | null
  /** What the peer reported last of the packets to it. */
  readonly peer: {
    /** That had been sent by then. */
    readonly packetsSent: number
    readonly packetsLost: number
    /** 0 to 1, of the time since its report before. */
    readonly fractionLost: number
    readonly jitterMs: number
  } | null
}

type WirePlace = { readonly address: string; readonly port: number }

/**
 * Told of every packet that was sent, and of every one that came and was the peer's: RTP without SRTP, header and payload, valid during the call only.
 * `remote` is null where only the other direction knows it.
 */
export type RtpTap = (
  direction: 'in' | 'out',
  packet: Uint8Array,
  wire: { readonly local: WirePlace; readonly remote: WirePlace | null },
) => void

export type RtpTransport = {
  /** Never waits and never throws: before the wire is up, or after close, the packet is dropped. */
  send(packet: RtpPacket): void
  stats(): TransportStats
  /** One at a time; null takes it off. Absent: it cannot be tapped. */
  tap?(tap: RtpTap | null): void
  /** `reason`: the terminal status of the call, or why the media ended. Idempotent; every socket and timer is gone when it resolves. */
  close(reason?: string): Promise<void>
}

/** What a line tells of an end besides. `endedBy`: where the cause alone says it wrong; `endCause`: as in LegEvent. */
export type LineEnd = { readonly endedBy?: EndedBy; readonly endCause?: string | null }

export type RtpTransportHandlers = {
  /** Again whenever it changes (re-INVITE). */
  negotiated(audio: NegotiatedAudio): void
  connected(providerStatus: string): void
  packet(packet: RtpPacket): void
  /** The peer is there although no sound of it came: RTCP. Nobody has to tell it. */
  alive?(): void
  /** The same by a check of ICE, with which the peer consents to what is sent (RFC 7675). */
  consented?(): void
  /** At most once, and nothing comes after it. */
  disconnected(cause: 'hung_up' | 'media_lost' | 'failed', details: string, end?: LineEnd): void
}

/**
 * Of the client behind a leg, apart from its media. `open`: it has a signaling socket. `left`: its page was closed, and the socket with it; `lost`: the socket ended otherwise;
 * both may come back for a while. `none`: it will not, or never had one.
 */
export type Presence = 'open' | 'left' | 'lost' | 'none'

/** What a leg is told by a transport that is a telephone line as well. */
export type LegHandlers = RtpTransportHandlers & {
  ringing(providerStatus: string): void
  /** In place of `disconnected`, before `connected`. */
  dialFailed(outcome: Outcome, providerStatus: string | null, end?: LineEnd): void
  /** On hold nothing need come, and time on hold is no lost media; nothing is sent, unless the peer `listens` all the same. */
  held(isHeld: boolean, listens?: boolean): void
  alive(): void
  /** Whether its client can be told by another way than media; of a leg without such a way it is `none` from the beginning. */
  presence(presence: Presence): void
  consented(): void
  transferred(providerStatus: string): void
  transferFailed(providerStatus: string): void
}

/** The signaling under a leg, where it can do more than carry media. */
export type LegSignaling = {
  /** Idempotent. */
  answer(): void
  /** Resolves when the other side has said whether it will try. Never rejects. */
  transfer(to: string): Promise<{ readonly accepted: true } | { readonly accepted: false; readonly details: string }>
  /** Where no telephone events were negotiated: keys by another way. False: there is none. */
  sendDtmf(digits: string): boolean | Promise<boolean>
}

/** A browser's media end, on one DTLS association. Every implementation passes the same conformance test. */
export type WebPeer = RtpTransport & {
  /**
   * SDP offer → SDP answer; again for an ICE restart (RFC 8445 §9). Throws Problem VALIDATION_FAILED for an SDP it cannot answer, CONFLICT
   * for a further one that restarts nothing or belongs to another association.
   */
  accept(offer: string): Promise<string>
  /** The client has used the last answer. */
  wasReached(): boolean
  /** RTCIceCandidateInit; null is the end of candidates. Throws Problem VALIDATION_FAILED for garbage. */
  addCandidate(candidate: IceCandidate | null): Promise<void>
}

export type IceCandidate = {
  readonly candidate: string
  readonly sdpMid?: string | null | undefined
  readonly sdpMLineIndex?: number | null | undefined
  readonly usernameFragment?: string | null | undefined
}
export type CreateWebPeer = (handlers: RtpTransportHandlers) => WebPeer
