/**
 * Owns the proof that the other end of a DTLS handshake is the one whose fingerprint came over signaling. werift's server compares
 * nothing: not the certificate, not the signature over the handshake, not the Finished value. RFC 8122 §6, RFC 5246 §7.4.8, §7.4.9.
 */
import {
  constants,
  createHash,
  createHmac,
  timingSafeEqual,
  verify,
  X509Certificate,
  type KeyObject,
} from 'node:crypto'
import type { DtlsSocket } from 'werift'
import type { Fingerprint } from '../read-sdp.ts'

const certificateVerify = 15
const finished = 20
const clientFlight = 5

/** Throws with the reason when the certificate is not the announced one. */
export function proveCertificate(dtls: DtlsSocket, announced: readonly Fingerprint[]): X509Certificate {
  const certificate = dtls.remoteCertificate
  if (!certificate) throw new Error('no certificate was shown')
  const matches = announced.some(({ algorithm, value }) => digestOf(certificate, algorithm) === value)
  if (!matches) throw new Error('the certificate is not the announced one')
  return new X509Certificate(certificate)
}

/** For the server end: the client owns the key of its certificate and saw the same handshake. */
export function proveClient(dtls: DtlsSocket, certificate: X509Certificate): void {
  const messages = dtls.dtls.sortedHandshakeCache
  const sent = dtls.dtls.handshakeCache[clientFlight]?.data ?? []
  const before = (type: number): { transcript: Buffer; body: Buffer } => {
    const message = sent.find(({ msg_type }) => msg_type === type)
    if (!message) throw new Error('the handshake is not complete')
    const transcript = messages.slice(0, messages.indexOf(message)).map((earlier) => earlier.serialize())
    return { transcript: Buffer.concat(transcript), body: message.fragment }
  }
  const signed = before(certificateVerify)
  if (!isSigned(signed.transcript, signed.body, certificate.publicKey)) throw new Error('the handshake is not signed')
  const end = before(finished)
  const expected = verifyDataOf(dtls.cipher.masterSecret, 'client finished', end.transcript)
  if (end.body.length !== expected.length || !timingSafeEqual(end.body, expected))
    throw new Error('the handshake was altered')
}

const digestOf = (certificate: Buffer, algorithm: string): string =>
  createHash(algorithm.replace('-', ''))
    .update(certificate)
    .digest('hex')
    .toUpperCase()
    .replace(/(..)(?=.)/g, '$1:')

/** Body of CertificateVerify: hash and signature algorithm, two bytes of length, the signature. SHA-1 is refused. */
function isSigned(transcript: Buffer, body: Buffer, publicKey: KeyObject): boolean {
  const hash = new Map([
    [4, 'sha256'],
    [5, 'sha384'],
    [6, 'sha512'],
  ])
  const signature = body.subarray(4)
  const scheme = body.readUInt16BE(0)
  // The RSA-PSS schemes of TLS 1.3 count 0x0804–0x0806: there the low byte is the hash.
  if (scheme >> 8 === 8) {
    const algorithm = hash.get(scheme & 0xff)
    const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
    return algorithm !== undefined && verify(algorithm, transcript, { key: publicKey, ...padding }, signature)
  }
  const algorithm = hash.get(scheme >> 8)
  return algorithm !== undefined && verify(algorithm, transcript, publicKey, signature)
}

/** Twelve bytes of P_SHA256; one round gives 32. RFC 5246 §5. */
function verifyDataOf(secret: Buffer, label: string, transcript: Buffer): Buffer {
  const seed = Buffer.concat([Buffer.from(label), createHash('sha256').update(transcript).digest()])
  const first = createHmac('sha256', secret).update(seed).digest()
  return createHmac('sha256', secret).update(first).update(seed).digest().subarray(0, 12)
}
