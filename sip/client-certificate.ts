/** Owns that a request shows the certificate of its trunk where its peer asks for one: Microsoft Teams and Zoom do. RFC 5922. */
import type { ClientIdentities, ClientIdentity } from './server/transport/client-identities.ts'
import { protocolOf } from './public-contact.ts'

type CertifiedOptions = { proxy?: string; client?: ClientIdentity }

/** Null: none is wanted, or it can be shown. */
export function refusalOfCertificate(
  uri: string,
  { proxy, client }: CertifiedOptions,
  identities: ClientIdentities | undefined,
): string | null {
  if (!client || identities || protocolOf(proxy ?? uri) !== 'tls') return null
  return 'a drachtio-server shows its own certificate: take tlsCertificate away from the trunk, or use the embedded SIP server'
}

/** The next hop names it, which is not written into the message. */
export function withCertificate<Options extends CertifiedOptions>(
  uri: string,
  options: Options,
  identities: ClientIdentities | undefined,
): Options {
  const { client } = options
  const certified = { ...options }
  delete certified.client
  if (client && identities) certified.proxy = `${options.proxy ?? uri};client=${identities.add(client)}`
  return certified
}
