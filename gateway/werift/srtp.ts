/** Owns SRTP of one association both ways, under the keys of its DTLS handshake. RFC 3711, RFC 5764 §4.2, RFC 7714. */
import { createSecretKey, type KeyObject } from 'node:crypto'
import {
  keyLength,
  ProtectionProfileAeadAes128Gcm,
  ProtectionProfileAes128CmHmacSha1_80,
  RtpHeader,
  saltLength,
  SrtpSession,
  type DtlsSocket,
} from 'werift'
import type { RtpPacket } from '../../model/rtp-transport.ts'
import { createFreshPackets, isRtcp, readRtp } from '../../media/rtp/rtp-wire.ts'

export type Srtp = {
  /** Null for RTCP and for what was seen before; throws for what is not authentic. */
  unprotect(datagram: Buffer): RtpPacket | null
  protect(packet: RtpPacket): Buffer
}

/** Preferred first. */
export const srtpProfiles = [ProtectionProfileAeadAes128Gcm, ProtectionProfileAes128CmHmacSha1_80]

/** After the handshake; throws when it agreed on no profile. `ssrc` marks what is sent. */
export function createSrtp(dtls: DtlsSocket, ssrc: number): Srtp {
  const session = sessionOf(dtls)
  const fresh = createFreshPackets()

  function unprotect(datagram: Buffer): RtpPacket | null {
    if (isRtcp(datagram) || datagram.length < 12) return null
    const source = datagram.readUInt32BE(8)
    const sequenceNumber = datagram.readUInt16BE(2)
    if (!fresh.mayBeFresh(source, sequenceNumber)) return null
    const packet = readRtp(session.decrypt(datagram))
    fresh.saw(source, sequenceNumber)
    return packet
  }

  function protect({ payloadType, marker, sequenceNumber, timestamp, payload }: RtpPacket): Buffer {
    const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
    return session.encrypt(bytes, new RtpHeader({ payloadType, marker, sequenceNumber, timestamp, ssrc }))
  }
  return { unprotect, protect }
}

function sessionOf(dtls: DtlsSocket): SrtpSession {
  const profile = dtls.srtp.srtpProfile
  if (!profile) throw new Error('no SRTP profile in common')
  const keys = dtls.extractSessionKeys(keyLength(profile), saltLength(profile))
  const session = new SrtpSession({
    keys: {
      localMasterKey: keys.localKey,
      localMasterSalt: keys.localSalt,
      remoteMasterKey: keys.remoteKey,
      remoteMasterSalt: keys.remoteSalt,
    },
    profile,
  })
  for (const { cipher } of [session.localContext, session.remoteContext]) keepKeyObjects(cipher)
  session.remoteContext.updateRolloverCount = countRollover
  return session
}

type SequenceState = { rolloverCounter: number; rolloverHasProcessed?: boolean; lastSequenceNumber: number }

/**
 * RFC 3711 Appendix A: the nearest of the three possible counts. werift's own estimate loses it, and with it the call, when more than a hundred
 * packets are missing around the wrap. It works on a copy that is kept only when the packet proves authentic.
 */
function countRollover(sequenceNumber: number, state: SequenceState): void {
  const { lastSequenceNumber: last } = state
  const ahead = ((sequenceNumber - last) << 16) >> 16
  if (state.rolloverHasProcessed && ahead > 0 && sequenceNumber < last) state.rolloverCounter += 1
  if (state.rolloverHasProcessed && ahead < 0 && sequenceNumber > last && state.rolloverCounter > 0)
    state.rolloverCounter -= 1
  state.rolloverHasProcessed = true
  state.lastSequenceNumber = sequenceNumber
}

/** node:crypto takes a KeyObject several times faster than bytes, and every packet passes a key. */
function keepKeyObjects(cipher: object): void {
  const keys = cipher as Partial<Record<'srtpSessionKey' | 'srtpSessionAuthTag', Buffer | KeyObject>>
  for (const name of ['srtpSessionKey', 'srtpSessionAuthTag'] as const) {
    const key = keys[name]
    if (Buffer.isBuffer(key)) keys[name] = createSecretKey(key)
  }
}
