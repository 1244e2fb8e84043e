/** Owns who this end is on the wire: the certificate of the process and fresh ICE credentials. */
import { randomBytes } from 'node:crypto'
import { RTCDtlsTransport, type RTCCertificate } from 'werift'
import type { Fingerprint } from '../read-sdp.ts'

export type Identity = { readonly certificate: RTCCertificate; readonly fingerprint: Fingerprint }

/** Self-signed ECDSA, made once per process and kept by werift. */
export async function loadIdentity(): Promise<Identity> {
  const certificate = await RTCDtlsTransport.SetupCertificate()
  const [fingerprint] = certificate.getFingerprints()
  if (!fingerprint) throw new Error('a certificate without fingerprint')
  return { certificate, fingerprint: { algorithm: fingerprint.algorithm, value: fingerprint.value.toUpperCase() } }
}

/** 48 and 144 random bits; base64 without padding is all of ice-char. RFC 8839 §5.4. */
export const newCredentials = () => ({
  usernameFragment: randomBytes(6).toString('base64'),
  password: randomBytes(18).toString('base64'),
})
