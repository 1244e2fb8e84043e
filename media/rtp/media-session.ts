/** Owns what offer and answer agreed on for the sound of one phone call: between the SDP of it (`sip/sdp`) and its sockets. RFC 3264. */
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import type { SdpDirection } from '../../net/sdp.ts'

/** From our side: `sendonly` means that we send. RFC 3264 §6.1. */
export type MediaDirection = SdpDirection

/** Payload types of telephone events in our offers, by clock rate; an answer takes the peer's numbers. RFC 4733. */
export const offeredEvents = { 8000: 101, 48000: 110 } as const

/** Of RFC 4568 §6.2: 128-bit AES in counter mode; the tag is 80 or 32 bit. Of RFC 7714: AES-GCM, which DTLS agrees on and our SDES does not. */
export type CryptoSuite = 'AES_CM_128_HMAC_SHA1_80' | 'AES_CM_128_HMAC_SHA1_32' | 'AEAD_AES_128_GCM'

/** One direction of SRTP: master key (16 bytes) and salt (14 bytes, 12 for GCM) together. RFC 4568 §6.1. */
export type SrtpKey = { readonly suite: CryptoSuite; readonly keyAndSalt: Uint8Array }

export type MediaSession = {
  /** Where the peer wants its RTP, as its SDP says; NAT may prove it wrong. Null: an address that is none (hold by 0.0.0.0). */
  readonly remote: { readonly address: string; readonly port: number; readonly rtcpPort: number } | null
  /** No hold: its SDP has a name, which is never looked up, or an address that nothing is sent to. The peer is where it is heard from. */
  readonly isNameless?: boolean
  readonly audio: NegotiatedAudio
  readonly direction: MediaDirection
  /** Null: plain RTP. */
  readonly srtp: { readonly ours: SrtpKey; readonly theirs: SrtpKey } | null
  /** RTP and RTCP on one port (RFC 5761). */
  readonly rtcpMux: boolean
  /** Where the signaling of it came from, as the network says; null or absent: not known. */
  readonly signaledFrom?: string | null
}

/** What we bring along to an offer or answer. Port numbers as the peer reaches them. */
export type LocalMedia = {
  readonly address: string
  readonly port: number
  readonly rtcpPort: number
  /** In order of our preference; an answer keeps the peer's order. */
  readonly codecs: readonly ('PCMU' | 'PCMA' | 'G722' | 'opus')[]
  /** `required`: only RTP/SAVP is offered and taken. `optional` takes either and offers plain RTP. */
  readonly encryption: 'none' | 'optional' | 'required'
  /** Our key for each offer of SRTP; made anew by the caller for each call, kept over re-INVITEs. */
  readonly keys: readonly SrtpKey[]
  /** `o=`: one id per call, the version counts our descriptions (RFC 3264 §8). */
  readonly sessionId: string
  readonly version: number
  /** Of `o=` where another process wrote the first one; absent: as `address`. */
  readonly originAddress?: string
  /** As another process agreed on it, numbers and all: nothing else is offered. */
  readonly agreed?: NegotiatedAudio
  readonly direction: MediaDirection
}
