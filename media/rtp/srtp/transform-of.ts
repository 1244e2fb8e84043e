/** Owns which transform a key is for, with session keys of its own for RTP and for RTCP. RFC 3711 §4.3, RFC 4568 §6.2, RFC 7714 §12. */
import type { SrtpKey } from '../media-session.ts'
import { createAesCmRtcp, createAesCmRtp } from './aes-cm.ts'
import { createAesGcmRtcp, createAesGcmRtp } from './aes-gcm.ts'
import { deriveSessionKeys } from './srtp-keys.ts'
import type { RtcpTransform, RtpTransform } from './srtp-transform.ts'

export function rtpTransformOf(key: SrtpKey): RtpTransform {
  const keys = deriveSessionKeys(key, 'rtp')
  if (key.suite === 'AEAD_AES_128_GCM') return createAesGcmRtp(keys)
  return createAesCmRtp(keys, key.suite === 'AES_CM_128_HMAC_SHA1_80' ? 10 : 4)
}

export function rtcpTransformOf(key: SrtpKey): RtcpTransform {
  const keys = deriveSessionKeys(key, 'rtcp')
  return key.suite === 'AEAD_AES_128_GCM' ? createAesGcmRtcp(keys) : createAesCmRtcp(keys)
}
