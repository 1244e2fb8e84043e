/** Owns a DTLS client that is werift itself, over whatever carries datagrams, and certificates of its own: a test holds its keys. */
import {
  CipherContext,
  DtlsClient,
  HashAlgorithm,
  NamedCurveAlgorithm,
  RTCCertificate,
  SignatureAlgorithm,
} from 'werift'
import { srtpProfiles } from '../../gateway/werift/dtls-keys.ts'

export async function newCertificate(): Promise<RTCCertificate> {
  const made = await CipherContext.createSelfSignedCertificateWithKey(
    { signature: SignatureAlgorithm.ecdsa_3, hash: HashAlgorithm.sha256_4 },
    NamedCurveAlgorithm.secp256r1_23,
  )
  return new RTCCertificate(made.keyPem, made.certPem, made.signatureHash)
}

/** `hear` takes what comes for it. */
export function createDtlsClient(
  certificate: RTCCertificate,
  send: (datagram: Buffer) => void,
  profiles: typeof srtpProfiles = srtpProfiles,
) {
  const transport = {
    type: 'udp',
    address: { address: '', family: '', port: 0 },
    closed: false,
    onData: (_datagram: Buffer): void => undefined,
    send: async (datagram: Buffer): Promise<void> => send(datagram),
    close: async (): Promise<void> => undefined,
  }
  const client = new DtlsClient({
    cert: certificate.certPem,
    key: certificate.privateKey,
    signatureHash: certificate.signatureHash,
    transport,
    srtpProfiles: profiles,
    extendedMasterSecret: true,
  })
  return { client, hear: (datagram: Buffer) => transport.onData(datagram) }
}
