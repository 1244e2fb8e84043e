/** Owns a DTLS client that is werift itself, over whatever carries datagrams, and certificates of its own: a test holds its keys. */
import {
  CipherContext,
  DtlsClient,
  HashAlgorithm,
  NamedCurveAlgorithm,
  RTCCertificate,
  SignatureAlgorithm,
} from 'werift'
import type { Test } from 'tap'
import { srtpProfiles } from '../../gateway/werift/dtls-keys.ts'
import { carrierOf, stopFlights } from '../../gateway/werift/secure-channel.ts'

export async function newCertificate(): Promise<RTCCertificate> {
  const made = await CipherContext.createSelfSignedCertificateWithKey(
    { signature: SignatureAlgorithm.ecdsa_3, hash: HashAlgorithm.sha256_4 },
    NamedCurveAlgorithm.secp256r1_23,
  )
  return new RTCCertificate(made.keyPem, made.certPem, made.signatureHash)
}

/** `hear` takes what comes for it. With the test it says no more. */
export function createDtlsClient(
  t: Test,
  certificate: RTCCertificate,
  send: (datagram: Buffer) => void,
  profiles: typeof srtpProfiles = srtpProfiles,
) {
  const carrier = carrierOf(send)
  const client = new DtlsClient({
    cert: certificate.certPem,
    key: certificate.privateKey,
    signatureHash: certificate.signatureHash,
    transport: carrier,
    srtpProfiles: profiles,
    extendedMasterSecret: true,
  })
  t.teardown(() => stopFlights(client))
  return { client, hear: (datagram: Buffer) => carrier.onData(datagram) }
}
