/** Owns the settings: every one comes from the environment, here and nowhere else, and a wrong one is named before anything starts. */
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { isLoopback, plainAddressOf } from '../net/addresses.ts'
import { isNetwork } from '../net/networks.ts'
import { privateUse } from '../net/special-networks.ts'

const text = z.string().trim()
const portRule = 'must be a whole number from 0 to 65535'
const empty = z.literal('').transform(() => null)
const optional = <Schema extends z.ZodType>(schema: Schema) => z.union([empty, schema]).default(null)

const Port = text
  .regex(/^\d{1,5}$/, portRule)
  .transform(Number)
  .refine((port) => port <= 65_535, portRule)
const PortRange = text
  .regex(/^\d+-\d+$/, 'must read like 40000-49999')
  .transform((range) => range.split('-').map(Number) as [number, number])
  .refine(([from, to]) => from >= 1024 && to <= 65_535 && from < to, 'must lie within 1024-65535, the lower port first')
const List = text.transform((list) =>
  list
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== ''),
)
const IpAddress = text
  .refine((address) => plainAddressOf(address) !== null, 'must be an IP address')
  .transform((address) => plainAddressOf(address) ?? address)
const url = (protocol: RegExp, schemes: string) =>
  z.url({ protocol, error: `must be a URL that begins with ${schemes}` })

const WebSocketUrl = url(/^wss?$/, 'wss:// or ws://')
const HttpUrl = url(/^https?$/, 'http:// or https://').transform((given) => given.replace(/\/+$/, ''))
const Rate = text
  .regex(/^(?:8000|16000|24000|48000)$/, 'must be 8000, 16000, 24000 or 48000')
  .transform((rate) => Number(rate) as 8000 | 16_000 | 24_000 | 48_000)
/** Goes into a header: printable, in one piece. */
const ApiKey = text.regex(/^[\x21-\x7e]{1,1000}$/, 'must be one word of printable ASCII')

const PerMinute = z.coerce.number().int('must be a whole number').min(0).max(100_000_000)

const Settings = z.object({
  HOST: text.min(1).default('127.0.0.1'),
  PORT: Port.default(8080),
  PUBLIC_URL: optional(url(/^https?$/, 'http:// or https://')),
  TRUSTED_PROXIES: List.default([]).refine(
    (list) => list.every(isNetwork),
    'must be addresses or networks like 10.0.0.0/8',
  ),
  HTTP_DRIVER: z.enum(['auto', 'uws', 'node']).default('auto'),
  TLS_CERT: optional(text),
  TLS_KEY: optional(text),
  DATA_DIR: text.min(1).default('.data'),
  DATABASE_URL: optional(url(/^postgres(ql)?$/, 'postgres://')),
  NATS_URL: optional(url(/^(nats|tls)$/, 'nats:// or tls://')),
  APP_SECRET: optional(text.min(32, 'must be at least 32 characters')),
  MEDIA_ADDRESS: optional(IpAddress),
  MEDIA_PUBLIC_ADDRESS: optional(IpAddress),
  MEDIA_PORTS: PortRange.default([40_000, 49_999]),
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
  SIP_ALLOW_HOSTS: optional(
    List.refine(
      (list) => list.every((entry) => isNetwork(entry) || /^[\w.-]+$/.test(entry)),
      'must be host names, addresses or networks like 10.0.0.0/8',
    ),
  ),
  DRACHTIO_URL: optional(url(/^tcp$/, 'tcp://')),
  TURN_URLS: List.default([]),
  TURN_SECRET: optional(text.min(8, 'must be at least 8 characters')),
  WEBHOOK_ALLOW_HOSTS: optional(List),
  DELIVERY_RETENTION_DAYS: z.coerce.number().min(1).max(3650).default(30),
  SMTP_URL: optional(url(/^smtps?$/, 'smtp:// or smtps://')),
  EMAIL_FROM: optional(z.email('must be an e-mail address')),
  OPENAI_API_KEY: optional(ApiKey),
  OPENAI_REALTIME_URL: optional(WebSocketUrl),
  OPENAI_REALTIME_MODEL: optional(text.min(1)),
  OPENAI_REALTIME_VOICE: optional(text.min(1)),
  OPENAI_TRANSCRIPTION_MODEL: optional(text.min(1)),
  GEMINI_API_KEY: optional(ApiKey),
  GEMINI_LIVE_URL: optional(WebSocketUrl),
  GEMINI_LIVE_MODEL: optional(text.min(1)),
  GEMINI_LIVE_VOICE: optional(text.min(1)),
  CASCADE_URL: optional(HttpUrl),
  CASCADE_CHAT_URL: optional(HttpUrl),
  CASCADE_TRANSCRIPTION_URL: optional(HttpUrl),
  CASCADE_SPEECH_URL: optional(HttpUrl),
  CASCADE_API_KEY: optional(ApiKey),
  CASCADE_CHAT_MODEL: optional(text.min(1)),
  CASCADE_TRANSCRIPTION_MODEL: optional(text.min(1)),
  CASCADE_SPEECH_MODEL: optional(text.min(1)),
  CASCADE_VOICE: optional(text.min(1)),
  CASCADE_SPEECH_RATE: optional(Rate),
  EMBEDDED_HEARING: z.enum(['fsg', 'vad', 'script']).default('fsg'),
  RATE_LIMIT_PER_ACCOUNT: PerMinute.default(6000),
  RATE_LIMIT_PER_ADDRESS: PerMinute.default(600),
  SELF_TEST: z.enum(['on', 'off']).default('on'),
  SHUTDOWN_GRACE_SECONDS: z.coerce.number().min(0).max(3600).default(5),
  LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('warn'),
})

export const settingNames = Object.keys(Settings.shape)

export type Config = ReturnType<typeof toConfig>

/** Its message is for the operator: it names each variable and says what is wrong with it. */
export class WrongSettings extends Error {
  override readonly name = 'WrongSettings'
}

/** The variables of this process; a file `.env` in the working directory adds what is not set. */
export function readEnvironment(): Readonly<Record<string, string | undefined>> {
  if (existsSync('.env')) process.loadEnvFile()
  return process.env
}

/** Throws WrongSettings. */
export function readConfig(environment: Readonly<Record<string, string | undefined>>) {
  const named = Object.fromEntries(
    settingNames.flatMap((name) => (environment[name] === undefined ? [] : [[name, environment[name]]])),
  )
  const parsed = Settings.safeParse(named)
  if (parsed.success) return toConfig(parsed.data)
  const lines = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`)
  throw new WrongSettings(`These settings are wrong (see .env.example):\n${lines.join('\n')}`)
}

function toConfig(settings: z.infer<typeof Settings>) {
  const loopback = settings.HOST === 'localhost' || isLoopback(settings.HOST)
  // A PUBLIC_URL says that a proxy stands before us: then a loopback peer may be anybody.
  const local = settings.DATABASE_URL === null && loopback && settings.PUBLIC_URL === null
  const dataDir = path.resolve(settings.DATA_DIR)
  return {
    host: settings.HOST,
    port: settings.PORT,
    publicUrl: settings.PUBLIC_URL,
    trustedProxies: settings.TRUSTED_PROXIES,
    // Many proxies speak HTTP/1.0 or pipeline, which the other one refuses.
    httpDriver: settings.HTTP_DRIVER === 'auto' && settings.PUBLIC_URL !== null ? 'node' : settings.HTTP_DRIVER,
    tls: tlsOf(settings),
    dataDir,
    recordingsDir: path.join(dataDir, 'recordings'),
    databaseUrl: settings.DATABASE_URL,
    natsUrl: settings.NATS_URL,
    appSecret: settings.APP_SECRET,
    media: {
      address: settings.MEDIA_ADDRESS ?? plainAddressOf(settings.HOST) ?? '127.0.0.1',
      publicAddress: settings.MEDIA_PUBLIC_ADDRESS,
      ports: settings.MEDIA_PORTS,
    },
    sip: sipOf(settings, local),
    turn: turnOf(settings),
    /** On embedded defaults a receiver on this machine is what a first try has. */
    webhookAllowHosts: settings.WEBHOOK_ALLOW_HOSTS ?? (local ? ['127.0.0.1', 'localhost', '::1'] : []),
    deliveryRetention: settings.DELIVERY_RETENTION_DAYS * 24 * 3_600_000,
    email: emailOf(settings),
    voice: voiceConfigOf(settings),
    rateLimits: { perAccount: settings.RATE_LIMIT_PER_ACCOUNT, perAddress: settings.RATE_LIMIT_PER_ADDRESS },
    /** Everything on this machine, for this machine: the demo page may open calls without a key, the self-test may run. */
    demo: local,
    selfTest: settings.SELF_TEST === 'on' && local,
    shutdownGrace: settings.SHUTDOWN_GRACE_SECONDS * 1000,
    logLevel: settings.LOG_LEVEL,
  }
}

const tlsOf = ({ TLS_CERT, TLS_KEY }: z.infer<typeof Settings>) => pemsOf({ TLS_CERT }, { TLS_KEY })

/** The settings by their names, so that an error can name them. */
function pemsOf(certFile: Readonly<Record<string, string | null>>, keyFile: Readonly<Record<string, string | null>>) {
  const [[certName, cert], [keyName, key]] = [Object.entries(certFile)[0]!, Object.entries(keyFile)[0]!]
  if (cert === null && key === null) return null
  if (cert === null || key === null)
    throw new WrongSettings(`${certName} and ${keyName} go together: set both, or neither`)
  return { cert: readPem(certName, cert), key: readPem(keyName, key) }
}

/** This machine and private networks. Not link-local ones, where clouds keep their metadata. */
const nearby = ['127.0.0.0/8', '::1', ...privateUse]

/** Null: no telephone edge in this process. */
function sipOf(settings: z.infer<typeof Settings>, local: boolean) {
  if (settings.SIP === 'off') return null
  const { SIP_TLS_CERT, SIP_TLS_KEY, SIP_TLS_CA } = settings
  const address = settings.SIP_ADDRESS ?? plainAddressOf(settings.HOST) ?? '127.0.0.1'
  return {
    address,
    publicAddress: settings.SIP_PUBLIC_ADDRESS ?? settings.MEDIA_PUBLIC_ADDRESS,
    port: settings.SIP_PORT,
    tlsPort: settings.SIP_TLS_PORT,
    tls: pemsOf({ SIP_TLS_CERT }, { SIP_TLS_KEY }) ?? tlsOf(settings),
    tlsClient: {
      ca: SIP_TLS_CA === null ? null : readPem('SIP_TLS_CA', SIP_TLS_CA),
      verify: settings.SIP_TLS_VERIFY === 'on',
    },
    mediaPorts: settings.SIP_MEDIA_PORTS,
    /** On embedded defaults the softphone and the PBX of a first try are near. */
    allowHosts: settings.SIP_ALLOW_HOSTS ?? (local ? nearby : []),
    /** A drachtio-server in place of the embedded one. */
    drachtio: settings.DRACHTIO_URL === null ? null : drachtioOf(settings.DRACHTIO_URL),
  }
}

function drachtioOf(text: string) {
  const { hostname, port, password } = new URL(text)
  if (hostname === '' || password === '')
    throw new WrongSettings('DRACHTIO_URL must read like tcp://:secret@127.0.0.1:9022')
  return { host: hostname, port: port === '' ? 9022 : Number(port), secret: decodeURIComponent(password) }
}

function turnOf({ TURN_URLS, TURN_SECRET }: z.infer<typeof Settings>) {
  if (TURN_URLS.length === 0 && TURN_SECRET === null) return null
  if (TURN_URLS.length === 0 || TURN_SECRET === null)
    throw new WrongSettings('TURN_URLS and TURN_SECRET go together: set both, or neither')
  return { urls: TURN_URLS, secret: TURN_SECRET }
}

function emailOf({ SMTP_URL, EMAIL_FROM }: z.infer<typeof Settings>) {
  if (SMTP_URL === null && EMAIL_FROM === null) return null
  if (SMTP_URL === null || EMAIL_FROM === null)
    throw new WrongSettings('SMTP_URL and EMAIL_FROM go together: set both, or neither')
  return { smtpUrl: SMTP_URL, from: EMAIL_FROM }
}

/** Per provider; null where it is not set up. The embedded engine is always there. */
const voiceConfigOf = (settings: z.infer<typeof Settings>) => ({
  openai: openaiOf(settings),
  gemini: geminiOf(settings),
  cascade: cascadeOf(settings),
  embedded: { hearing: settings.EMBEDDED_HEARING },
})

function openaiOf(settings: z.infer<typeof Settings>) {
  const { OPENAI_API_KEY, OPENAI_REALTIME_URL, OPENAI_REALTIME_MODEL, OPENAI_REALTIME_VOICE } = settings
  const { OPENAI_TRANSCRIPTION_MODEL } = settings
  const others = { OPENAI_REALTIME_URL, OPENAI_REALTIME_MODEL, OPENAI_REALTIME_VOICE, OPENAI_TRANSCRIPTION_MODEL }
  if (OPENAI_API_KEY === null) return nothingWithout('OPENAI_API_KEY', others)
  return {
    apiKey: OPENAI_API_KEY,
    url: OPENAI_REALTIME_URL ?? 'wss://api.openai.com/v1/realtime',
    model: OPENAI_REALTIME_MODEL ?? 'gpt-realtime-2.1',
    voice: OPENAI_REALTIME_VOICE ?? 'marin',
    transcriptionModel: OPENAI_TRANSCRIPTION_MODEL ?? 'gpt-transcribe',
  }
}

function geminiOf(settings: z.infer<typeof Settings>) {
  const { GEMINI_API_KEY, GEMINI_LIVE_URL, GEMINI_LIVE_MODEL, GEMINI_LIVE_VOICE } = settings
  if (GEMINI_API_KEY === null)
    return nothingWithout('GEMINI_API_KEY', { GEMINI_LIVE_URL, GEMINI_LIVE_MODEL, GEMINI_LIVE_VOICE })
  return {
    apiKey: GEMINI_API_KEY,
    url: GEMINI_LIVE_URL ?? 'wss://generativelanguage.googleapis.com',
    model: GEMINI_LIVE_MODEL ?? 'gemini-3.8-live',
    /** Null: the provider's own choice. */
    voice: GEMINI_LIVE_VOICE,
  }
}

/** One address for all three parts, or one for each; a part's own goes first. */
function cascadeOf(settings: z.infer<typeof Settings>) {
  const { CASCADE_URL, CASCADE_CHAT_URL, CASCADE_TRANSCRIPTION_URL, CASCADE_SPEECH_URL } = settings
  const { CASCADE_API_KEY: apiKey, CASCADE_CHAT_MODEL, CASCADE_TRANSCRIPTION_MODEL, CASCADE_SPEECH_MODEL } = settings
  const { CASCADE_VOICE, CASCADE_SPEECH_RATE } = settings
  const parts = Object.entries({ CASCADE_CHAT_URL, CASCADE_TRANSCRIPTION_URL, CASCADE_SPEECH_URL })
  const [given] = [['CASCADE_URL', CASCADE_URL] as const, ...parts].filter(([, address]) => address !== null)
  if (given === undefined) {
    const models = { CASCADE_CHAT_MODEL, CASCADE_TRANSCRIPTION_MODEL, CASCADE_SPEECH_MODEL }
    return nothingWithout('CASCADE_URL', { CASCADE_API_KEY: apiKey, ...models, CASCADE_VOICE, CASCADE_SPEECH_RATE })
  }
  const need = <Value>(name: string, value: Value | null): Value => {
    if (value === null) throw new WrongSettings(`${given[0]} needs ${name} as well`)
    return value
  }
  const address = (own: string | null, name: string): string => need(`CASCADE_URL or ${name}`, own ?? CASCADE_URL)
  return {
    chat: {
      url: address(CASCADE_CHAT_URL, 'CASCADE_CHAT_URL'),
      model: need('CASCADE_CHAT_MODEL', CASCADE_CHAT_MODEL),
      apiKey,
    },
    transcription: {
      url: address(CASCADE_TRANSCRIPTION_URL, 'CASCADE_TRANSCRIPTION_URL'),
      model: CASCADE_TRANSCRIPTION_MODEL ?? 'whisper-1',
      apiKey,
    },
    speech: {
      url: address(CASCADE_SPEECH_URL, 'CASCADE_SPEECH_URL'),
      model: CASCADE_SPEECH_MODEL ?? 'tts-1',
      voice: CASCADE_VOICE ?? 'alloy',
      rateHz: CASCADE_SPEECH_RATE ?? (24_000 as const),
      apiKey,
    },
  }
}

/** Who sets what has no effect has forgotten something. */
function nothingWithout(name: string, others: Readonly<Record<string, string | number | null>>): null {
  const [idle] = Object.entries(others).find(([, value]) => value !== null) ?? []
  if (idle !== undefined) throw new WrongSettings(`${idle} needs ${name}: set both, or neither`)
  return null
}

function readPem(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new WrongSettings(`${name}: the file ${file} cannot be read`, { cause: error })
  }
}
