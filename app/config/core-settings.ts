/** Owns the settings of the process as a whole: where its data is, and how it begins and ends. */
import path from 'node:path'
import { z } from 'zod'
import { isNetwork } from '../../net/networks.ts'
import { ApiKey, HttpUrl, List, nothingWithout, optional, text, url, urls, WrongSettings } from './setting.ts'

/** Path-style: the bucket is the first part of the path. Keys and questions have no place in it. */
function isBucketUrl(address: string): boolean {
  const { username, password, search, hash, pathname } = new URL(address)
  return /^(\/[\w][\w.-]*)+$/.test(pathname) && `${username}${password}${search}${hash}` === ''
}

export const coreSettings = z.object({
  DATA_DIR: text.min(1).default('.data'),
  DATABASE_URL: optional(url(/^postgres(ql)?$/, 'postgres://')),
  DATABASE_TIMEOUT_SECONDS: z.coerce.number().min(1).max(60).default(5),
  RECORDING_RESERVE_MB: z.coerce.number().int('must be a whole number').min(0).max(1_000_000).default(256),
  RECORDINGS_URL: optional(
    HttpUrl.refine(isBucketUrl, 'must read like https://host/bucket, or https://host/bucket/folder, and nothing more'),
  ),
  RECORDINGS_REGION: optional(text.regex(/^[\w-]{1,64}$/, 'must be a name like us-east-1')),
  RECORDINGS_ACCESS_KEY_ID: optional(ApiKey),
  RECORDINGS_SECRET_ACCESS_KEY: optional(ApiKey),
  NATS_URL: optional(urls(/^(nats|tls)$/, 'nats:// or tls://')),
  APP_SECRET: optional(text.min(32, 'must be at least 32 characters')),
  SELF_TEST: z.enum(['on', 'off']).default('on'),
  DRAIN_TIMEOUT_SECONDS: z.coerce.number().min(0).max(86_400).default(900),
  SHUTDOWN_GRACE_SECONDS: z.coerce.number().min(0).max(3600).default(5),
  BAN_AFTER: z.coerce
    .number()
    .int('must be a whole number')
    .min(0)
    .max(10_000)
    .refine((count) => count !== 1, 'must be 0, or 2 and more')
    .default(10),
  BAN_SECONDS: z.coerce.number().int('must be a whole number').min(1).max(86_400).default(600),
  BAN_EXEMPT: List.default([]).refine((list) => list.every(isNetwork), 'must be addresses or networks like 10.0.0.0/8'),
  LOAD_GATE: z.enum(['on', 'off']).default('on'),
  LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('warn'),
  LOG_PERSONAL: z.enum(['on', 'off']).default('off'),
})

type Settings = z.infer<typeof coreSettings>

/** `isLocal`: everything on this machine, for this machine. */
export const coreOf = (settings: Settings, isLocal: boolean) => {
  const dataDir = path.resolve(settings.DATA_DIR)
  return {
    dataDir,
    recordingsDir: path.join(dataDir, 'recordings'),
    databaseUrl: settings.DATABASE_URL,
    /** Ms. */
    databaseTimeout: settings.DATABASE_TIMEOUT_SECONDS * 1000,
    /** Bytes on the disk of `dataDir` that recordings leave free. */
    recordingReserve: settings.RECORDING_RESERVE_MB * 1_000_000,
    recordingsBucket: bucketOf(settings),
    natsUrl: settings.NATS_URL,
    appSecret: settings.APP_SECRET,
    /** The demo page may open calls without a key, the self-test may run. */
    demo: isLocal,
    selfTest: settings.SELF_TEST === 'on' && isLocal,
    drainTimeout: settings.DRAIN_TIMEOUT_SECONDS * 1000,
    shutdownGrace: settings.SHUTDOWN_GRACE_SECONDS * 1000,
    bans: { banAfter: settings.BAN_AFTER, banFor: settings.BAN_SECONDS * 1000, exempt: settings.BAN_EXEMPT },
    /** New calls are refused while the node has no room for them. */
    loadGate: settings.LOAD_GATE === 'on',
    logLevel: settings.LOG_LEVEL,
    logsPersonal: settings.LOG_PERSONAL === 'on',
  }
}

/** Null: recordings stay in their folder. */
function bucketOf(settings: Settings) {
  const { RECORDINGS_URL, RECORDINGS_REGION, RECORDINGS_ACCESS_KEY_ID, RECORDINGS_SECRET_ACCESS_KEY } = settings
  if (RECORDINGS_URL === null)
    return nothingWithout('RECORDINGS_URL', {
      RECORDINGS_REGION,
      RECORDINGS_ACCESS_KEY_ID,
      RECORDINGS_SECRET_ACCESS_KEY,
    })
  if (RECORDINGS_ACCESS_KEY_ID === null || RECORDINGS_SECRET_ACCESS_KEY === null)
    throw new WrongSettings('RECORDINGS_URL needs RECORDINGS_ACCESS_KEY_ID and RECORDINGS_SECRET_ACCESS_KEY as well')
  return {
    url: RECORDINGS_URL,
    region: RECORDINGS_REGION ?? 'us-east-1',
    accessKeyId: RECORDINGS_ACCESS_KEY_ID,
    secretAccessKey: RECORDINGS_SECRET_ACCESS_KEY,
  }
}
