/** Owns the settings of the listener for browsers and REST. */
import { z } from 'zod'
import { isLoopback } from '../../net/addresses.ts'
import { isNetwork } from '../../net/networks.ts'
import { text, optional, ConnectionCount, Port, HttpUrl, List, pemsOf } from './setting.ts'

const PerMinute = z.coerce.number().int('must be a whole number').min(0).max(100_000_000)

export const webSettings = z.object({
  HOST: text.min(1).default('127.0.0.1'),
  PORT: Port.default(8080),
  // As the URL Standard writes it: host in lower case, no port that is the usual one. So do clients, before they compare.
  PUBLIC_URL: optional(HttpUrl.transform((given) => new URL(given).href.replace(/\/+$/, ''))),
  TRUSTED_PROXIES: List.default([]).refine(
    (list) => list.every(isNetwork),
    'must be addresses or networks like 10.0.0.0/8',
  ),
  HTTP_DRIVER: z.enum(['auto', 'uws', 'node']).default('auto'),
  TLS_CERT: optional(text),
  TLS_KEY: optional(text),
  RATE_LIMIT_PER_ACCOUNT: PerMinute.default(6000),
  RATE_LIMIT_PER_ADDRESS: PerMinute.default(600),
  MAX_CONNECTIONS: ConnectionCount.default(10_000),
  MAX_CONNECTIONS_PER_ADDRESS: ConnectionCount.default(1_000),
  MAX_WEB_CALLS_PER_ADDRESS: ConnectionCount.default(500),
  MAX_BODY_MEMORY_MB: z.coerce.number().int('must be a whole number').min(4).max(65_536).default(64),
})

type Settings = z.infer<typeof webSettings>

export const webOf = (settings: Settings) => ({
  host: settings.HOST,
  port: settings.PORT,
  publicUrl: settings.PUBLIC_URL,
  trustedProxies: settings.TRUSTED_PROXIES,
  // Nothing that is not node's own runs unless the operator asks for it.
  httpDriver: settings.HTTP_DRIVER === 'uws' ? ('uws' as const) : ('node' as const),
  tls: tlsOf(settings),
  connections: {
    inAll: settings.MAX_CONNECTIONS,
    perAddress: settings.MAX_CONNECTIONS_PER_ADDRESS,
    webCallsPerAddress: settings.MAX_WEB_CALLS_PER_ADDRESS,
  },
  maxBodyBytesInFlight: settings.MAX_BODY_MEMORY_MB * 1024 * 1024,
  rateLimits: { perAccount: settings.RATE_LIMIT_PER_ACCOUNT, perAddress: settings.RATE_LIMIT_PER_ADDRESS },
})

export const tlsOf = ({ TLS_CERT, TLS_KEY }: Settings) => pemsOf({ TLS_CERT }, { TLS_KEY })

/** The listener takes what comes from this machine only. A PUBLIC_URL says that a proxy stands before it: then that may be anybody. */
export const isForThisMachine = ({ HOST, PUBLIC_URL }: Settings): boolean =>
  PUBLIC_URL === null && (HOST === 'localhost' || isLoopback(HOST))
