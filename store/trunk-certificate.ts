/** Owns whether the TLS client certificate of a trunk and its key can be shown to anybody. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import type { Issue } from '../model/problem.ts'

/** PEM, in clear; null: there is none. `now`: ms since the epoch. */
export function certificateIssuesOf(cert: string | null, key: string | null, now: number): Issue[] {
  if (cert === null && key === null) return []
  if (key === null) return [{ path: 'tlsKey', message: 'is needed for tlsCertificate' }]
  if (cert === null) return [{ path: 'tlsCertificate', message: 'is needed for tlsKey' }]
  const [certificate, privateKey] = [read(() => new X509Certificate(cert)), read(() => createPrivateKey(key))]
  if (!certificate) return [{ path: 'tlsCertificate', message: 'must be a certificate in PEM, its chain behind it' }]
  if (!privateKey) return [{ path: 'tlsKey', message: 'must be a private key in PEM, without a passphrase' }]
  if (!certificate.checkPrivateKey(privateKey))
    return [{ path: 'tlsKey', message: 'must be the key of tlsCertificate' }]
  if (certificate.validToDate.getTime() <= now)
    return [{ path: 'tlsCertificate', message: `must be valid; it ended on ${certificate.validToDate.toISOString()}` }]
  if (!read(() => createSecureContext({ cert, key })))
    return [{ path: 'tlsCertificate', message: 'must be one that TLS takes, its chain behind it' }]
  return []
}

/** Null: it is none. */
function read<Read>(reading: () => Read): Read | null {
  try {
    return reading()
  } catch {
    return null
  }
}
