/** Owns what of an SDP is a secret, or proves who somebody is, and must not be written down: keys, passwords of ICE, fingerprints. Pure. */

/** Stands in the place of what is left out. */
export const masked = '[masked]'

/** RFC 4568 keys, RFC 8839 passwords (candidates name the fragment too), RFC 8122 fingerprints. */
const secrets: readonly (readonly [RegExp, string])[] = [
  // As loosely as keys are read: sip/sdp/crypto-lines.ts.
  [/^(a=crypto:.*?inline:).*$/gim, `$1${masked}`],
  [/^(a=(?:ice-pwd|ice-ufrag|key-mgmt|tls-id):).*$/gim, `$1${masked}`],
  [/^(a=fingerprint:\s*\S+\s+).*$/gim, `$1${masked}`],
  [/^(k=).*$/gim, `$1${masked}`],
]
const fragment = /\b(ufrag )\S+/g

export const maskedSdp = (sdp: string): string =>
  maskedCandidate(secrets.reduce((text, [secret, told]) => text.replace(secret, told), sdp))

/** `candidate:…`, alone or in an SDP. */
export const maskedCandidate = (candidate: string): string => candidate.replace(fragment, `$1${masked}`)
