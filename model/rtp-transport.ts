/**
 * Owns the port between a leg's pipeline (jitter buffer, codec, pacer) and the wire under it: a WebRTC peer or a plain RTP socket.
 * The SSRC belongs to the transport; sequence numbers and timestamps belong to the pipeline. RFC 3550.
 */

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
  readonly codec: 'opus' | 'pcmu' | 'pcma'
  readonly payloadType: number
  readonly clockRateHz: 8000 | 48000
  /** RFC 4733; null when the peer did not offer it. */
  readonly telephoneEventPayloadType: number | null
}

export type TransportStats = {
  readonly packetsReceived: number
  readonly packetsSent: number
  readonly bytesReceived: number
  readonly bytesSent: number
}

export type RtpTransport = {
  /** Never waits and never throws: before the wire is up, or after close, the packet is dropped. */
  send(packet: RtpPacket): void
  stats(): TransportStats
  /** Idempotent; every socket and timer is gone when it resolves. */
  close(): Promise<void>
}

export type RtpTransportHandlers = {
  negotiated(audio: NegotiatedAudio): void
  connected(providerStatus: string): void
  packet(packet: RtpPacket): void
  /** At most once, and nothing comes after it. */
  disconnected(cause: 'hung_up' | 'media_lost' | 'failed', details: string): void
}

/** A browser's media end. `accept` answers the one offer of a session. Every implementation passes the same conformance test. */
export type WebPeer = RtpTransport & {
  /** SDP offer → SDP answer. Throws Problem VALIDATION_FAILED for an SDP it cannot answer. */
  accept(offer: string): Promise<string>
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
