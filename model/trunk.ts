/** Owns SIP trunks: how an account reaches the telephone network. decisions.md, Identity, accounts, keys ("management REST"). */
import { z } from 'zod'
import { toIso } from './clock.ts'
import type { AccountId, TrunkId, WorkerId } from './ids.ts'
import { isNetwork } from './network.ts'
import { oneLine } from './one-line.ts'
import type { Issue } from './problem.ts'
import { CustomHeaders } from './webhook.ts'

const HostName = z
  .string()
  .regex(
    /^(?=.{1,253}$)(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$/,
    'must be a host name or an IP address',
  )
const Network = z.string().refine(isNetwork, 'must be an IP address or a network like 203.0.113.0/24')
const Direction = z.enum(['inbound', 'outbound', 'both'])
/** Written into the headers of SIP. */
const OptionalText = z.string().min(1).max(200).refine(oneLine, 'must be one line').nullable().optional()

/** Where calls are sent, in order of preference. Without a port DNS decides (RFC 3263). */
const Gateway = z.strictObject({
  host: HostName,
  port: z.number().int().min(1).max(65_535).optional(),
  transport: z.enum(['udp', 'tcp', 'tls']).optional(),
})

/** What the call itself says, in full and in the compact forms of RFC 3261 section 7.3.3. */
const ownHeaders =
  /^(via|v|from|f|to|t|call-id|i|cseq|contact|m|max-forwards|route|record-route|authorization|[cel]|require|supported|k|allow)$/i
const SipHeaders = CustomHeaders.superRefine((headers, context) => {
  for (const name of Object.keys(headers).filter((header) => ownHeaders.test(header)))
    context.addIssue({ code: 'custom', path: [name], message: 'is a header the call sets itself' })
})

export const TrunkSettings = z.strictObject({
  gateways: z.array(Gateway).max(10).optional(),
  /** Who may deliver inbound calls. */
  allowedAddresses: z.array(Network).max(100).optional(),
  username: OptionalText,
  realm: OptionalText,
  /** REGISTER at the first gateway. */
  register: z.boolean().optional(),
  /** In order of preference. */
  codecs: z
    .array(z.enum(['PCMU', 'PCMA', 'G722', 'opus']))
    .max(4)
    .optional(),
  headers: SipHeaders.optional(),
  /** Put in front of every dialed number. */
  numberPrefix: z
    .string()
    .regex(/^[0-9*#+]{0,16}$/, 'must be digits, *, # or +')
    .optional(),
  maxConcurrentCalls: z.number().int().min(0).max(100_000).nullable().optional(),
  maxCallsPerSecond: z.number().min(0).max(1000).nullable().optional(),
})
export type TrunkSettings = z.infer<typeof TrunkSettings>

/** What the settings must say together: REGISTER needs somebody to register, and somewhere. */
export function registrationIssueOf({ register, username, gateways }: TrunkSettings): Issue | null {
  if (!register || (username && gateways && gateways.length > 0)) return null
  return { path: 'register', message: 'needs a username and a gateway' }
}

const fields = {
  name: z.string().min(1).max(200),
  direction: Direction.optional(),
  isActive: z.boolean().optional(),
  /** Write-only. */
  password: z.string().min(1).max(500).nullable().optional(),
  /** Whose calls go this way; replaces the whole list. */
  workerIds: z.array(z.string()).max(1000).optional(),
  ...TrunkSettings.shape,
}

export const TrunkRequest = z.strictObject(fields)
export type TrunkRequest = z.infer<typeof TrunkRequest>
/** What is not named stays. */
export const TrunkChange = z.strictObject(fields).partial()
export type TrunkChange = z.infer<typeof TrunkChange>

export const Trunk = z.object({
  id: z.string(),
  accountId: z.string(),
  name: z.string(),
  direction: Direction,
  isActive: z.boolean(),
  passwordSet: z.boolean(),
  workerIds: z.array(z.string()),
  ...TrunkSettings.shape,
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type Trunk = z.infer<typeof Trunk>

export type TrunkFacts = {
  readonly id: TrunkId
  readonly accountId: AccountId
  readonly name: string
  readonly direction: z.infer<typeof Direction>
  readonly isActive: boolean
  readonly passwordSet: boolean
  readonly workerIds: readonly WorkerId[]
  readonly config: TrunkSettings
  readonly createdAt: number
  readonly updatedAt: number
}

export function toTrunk({ config, createdAt, updatedAt, workerIds, ...facts }: TrunkFacts): Trunk {
  return { ...config, ...facts, workerIds: [...workerIds], createdAt: toIso(createdAt), updatedAt: toIso(updatedAt) }
}

/** Trunks, as the API sees them: sealing passwords is none of its business. Null: the account has no such trunk. */
export type Trunks = {
  /** In the order they were made. */
  list(accountId: AccountId): Promise<Trunk[]>
  find(accountId: AccountId, id: TrunkId): Promise<Trunk | null>
  /** Throws Problem VALIDATION_FAILED for workers the account has not got, and for settings that do not go together. */
  create(accountId: AccountId, request: TrunkRequest): Promise<Trunk>
  /** Throws like `create`. */
  change(accountId: AccountId, id: TrunkId, change: TrunkChange): Promise<Trunk | null>
  /** False: there was none. */
  remove(accountId: AccountId, id: TrunkId): Promise<boolean>
}
