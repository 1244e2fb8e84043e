/** Owns which protection of media DTLS offers and accepts, and the keys that a handshake leaves for it. RFC 5764 §4.1.2, §4.2, RFC 7714 §14.2. */
import { ProtectionProfileAeadAes128Gcm, ProtectionProfileAes128CmHmacSha1_80, type DtlsSocket } from 'werift'
import type { CryptoSuite, MediaSession } from '../../media/rtp/media-session.ts'
import { masterKeyBytes, saltBytesOf } from '../../media/rtp/srtp/srtp-keys.ts'

const suites = {
  [ProtectionProfileAeadAes128Gcm]: 'AEAD_AES_128_GCM',
  [ProtectionProfileAes128CmHmacSha1_80]: 'AES_CM_128_HMAC_SHA1_80',
} as const satisfies Record<number, CryptoSuite>

/** Preferred first: both cost the same here, and browsers prefer GCM. werift's types know no tag of 32 bits, and no browser offers one. */
export const srtpProfiles = [ProtectionProfileAeadAes128Gcm, ProtectionProfileAes128CmHmacSha1_80]

/** Of both directions. */
export type SrtpKeys = NonNullable<MediaSession['srtp']>

/** After the handshake; throws when it agreed on no profile. */
export function srtpKeysOf(dtls: DtlsSocket): SrtpKeys {
  const profile = dtls.srtp.srtpProfile
  if (!profile) throw new Error('no SRTP profile in common')
  const suite = suites[profile]
  const keys = dtls.extractSessionKeys(masterKeyBytes, saltBytesOf(suite))
  return {
    ours: { suite, keyAndSalt: Buffer.concat([keys.localKey, keys.localSalt]) },
    theirs: { suite, keyAndSalt: Buffer.concat([keys.remoteKey, keys.remoteSalt]) },
  }
}
