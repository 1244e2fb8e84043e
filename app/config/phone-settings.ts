/** Owns the settings of the telephone edge. */
import { z } from 'zod'
import { plainAddressOf } from '../../net/addresses.ts'
import { privateUse } from '../../net/special-networks.ts'
import {
  text,
  optional,
  ConnectionCount,
  Port,
  PortRange,
  Hosts,
  IpAddress,
  url,
  WrongSettings,
  pemsOf,
  readAuthority,
} from './setting.ts'

export const phoneSettings = z.object({
  SIP: z.enum(['on', 'off']).default('on'),
  SIP_ADDRESS: optional(IpAddress),
  SIP_PUBLIC_ADDRESS: optional(IpAddress),
  SIP_PORT: Port.default(5060),
  SIP_TLS_PORT: Port.default(5061),
  SIP_TLS_CERT: optional(text),
  SIP_TLS_KEY: optional(text),
  SIP_TLS_CA: optional(text),
  SIP_TLS_VERIFY: z.enum(['on', 'off']).default('on'),
  SIP_MEDIA_PORTS: PortRange.default([30_000, 39_999]),
  SIP_ALLOW_HOSTS: optional(Hosts),
  SIP_INBAND_DTMF: z.enum(['on', 'off']).default('on'),
  NUMBER_CLAIMS: z.enum(['on', 'off']).default('on'),
  SIP_MAX_CONNECTIONS: ConnectionCount.default(2_000),
  SIP_MAX_CONNECTIONS_PER_ADDRESS: ConnectionCount.default(100),
  DRACHTIO_URL: optional(url(/^tcp$/, 'tcp://')),
})

type Settings = z.infer<typeof phoneSettings>

/** What other sides have, for what is not set here. */
type Given = {
  readonly host: string
  readonly publicAddress: string | null
  readonly tls: ReturnType<typeof pemsOf>
  readonly isLocal: boolean
}

/** This machine and private networks. Not link-local ones, where clouds keep their metadata. */
const nearby = ['127.0.0.0/8', '::1', ...privateUse]

/** Accounts may give workers numbers that nobody has. Of every process that serves REST, with a telephone edge or without. */
export const mayClaimNumbers = ({ NUMBER_CLAIMS }: Settings): boolean => NUMBER_CLAIMS === 'on'

/** Of an URL: each % is followed by two hexadecimal digits. */
const isEncoded = (password: string): boolean => !/%(?![\da-f]{2})/i.test(password)

/** Null: no telephone edge in this process. */
export function phoneOf(settings: Settings, given: Given) {
  if (settings.SIP === 'off') return null
  const { SIP_TLS_CERT, SIP_TLS_KEY, SIP_TLS_CA } = settings
  const tls = pemsOf({ SIP_TLS_CERT }, { SIP_TLS_KEY }) ?? given.tls
  const address = settings.SIP_ADDRESS ?? plainAddressOf(given.host) ?? '127.0.0.1'
  return {
    address,
    publicAddress: settings.SIP_PUBLIC_ADDRESS ?? given.publicAddress,
    port: settings.SIP_PORT,
    tlsPort: settings.SIP_TLS_PORT,
    tls,
    tlsClient: {
      ca: SIP_TLS_CA === null ? null : readAuthority('SIP_TLS_CA', SIP_TLS_CA),
      verify: settings.SIP_TLS_VERIFY === 'on',
      /** Who asks those that call for a certificate gets ours. */
      identity: tls,
    },
    mediaPorts: settings.SIP_MEDIA_PORTS,
    connections: { inAll: settings.SIP_MAX_CONNECTIONS, perAddress: settings.SIP_MAX_CONNECTIONS_PER_ADDRESS },
    inbandKeys: settings.SIP_INBAND_DTMF === 'on',
    /** On embedded defaults the softphone and the PBX of a first try are near. */
    allowHosts: settings.SIP_ALLOW_HOSTS ?? (given.isLocal ? nearby : []),
    /** A drachtio-server in place of the embedded one. */
    drachtio: settings.DRACHTIO_URL === null ? null : drachtioOf(settings.DRACHTIO_URL),
  }
}

function drachtioOf(text: string) {
  const { hostname, port, password } = new URL(text)
  if (hostname === '' || password === '' || !isEncoded(password))
    throw new WrongSettings('DRACHTIO_URL must read like tcp://:secret@127.0.0.1:9022')
  return { host: hostname, port: port === '' ? 9022 : Number(port), secret: decodeURIComponent(password) }
}
