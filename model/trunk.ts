/** Owns SIP trunks: how an account reaches the telephone network. docs/contract/rest.md "Trunks". */
import { z } from 'zod'
import { toIso } from './clock.ts'
import type { AccountId, TrunkId, WorkerId } from './ids.ts'
import { Network } from './network.ts'
import { oneLine } from './one-line.ts'
import type { Issue } from './problem.ts'
import { CustomHeaders } from './webhook.ts'

const HostName = z
  .string()
  .regex(
    /^(?=.{1,253}$)(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$/,
    'must be a host name or an IP address',
  )
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
  /** Every inbound call must prove the password, also one from an allowed address. */
  authenticateInbound: z.boolean().optional(),
  /**
   * Where the caller's number of an outbound call stands: in From, in From and P-Asserted-Identity, or in P-Asserted-Identity with the
   * username in From, as a PBX wants it of a registered line.
   */
  callerId: z.enum(['from', 'identity', 'username']).optional(),
  /** P-Asserted-Identity of inbound calls is believed, and its number is who calls (RFC 3325). */
  trustsIdentity: z.boolean().optional(),
  /** In To, From and the Request-URI in place of the gateway's host. */
  domain: HostName.optional(),
  /** How Refer-To names a number: Twilio wants `tel:` or the trunk's domain. */
  transferTo: z.enum(['sip', 'tel']).optional(),
  /** SRTP by SDES. Absent: on calls over TLS. */
  encryption: z.enum(['none', 'sdes']).optional(),
  /** OPTIONS to each gateway now and then: those that do not answer are tried last. Absent: yes. */
  qualify: z.boolean().optional(),
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

/** What settings need of each other: authentication and caller ID a username, REGISTER a username and a gateway. */
export function trunkIssuesOf(settings: TrunkSettings, passwordSet: boolean): Issue[] {
  const { register, username, gateways = [], callerId, authenticateInbound } = settings
  const issues: Issue[] = []
  if (register && (!username || gateways.length === 0))
    issues.push({ path: 'register', message: 'needs a username and a gateway' })
  if (callerId === 'username' && !username) issues.push({ path: 'callerId', message: 'needs a username to show' })
  if (authenticateInbound && (!username || !passwordSet))
    issues.push({ path: 'authenticateInbound', message: 'needs a username and a password to be proved' })
  return issues
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

/** How a trunk does at this moment, as the node sees it that keeps it. */
export const TrunkState = z.object({
  registration: z.enum(['none', 'registering', 'registered', 'failed']),
  /** The last answer to REGISTER, or why there was none. */
  registrationDetails: z.string().nullable(),
  registeredUntil: z.string().nullable(),
  gateways: z.array(
    z.object({
      host: z.string(),
      port: z.number().int().nullable(),
      reachable: z.boolean().nullable(),
      details: z.string().nullable(),
      checkedAt: z.string().nullable(),
    }),
  ),
  updatedAt: z.string().nullable(),
})
export type TrunkState = z.infer<typeof TrunkState>

/** What a node reported last, as it stands to the settings of now: gateways and a registration that are gone are not told of. */
export function trunkStateOf(settings: TrunkSettings, told: TrunkState | null): TrunkState {
  const registered = settings.register ? told : null
  const gateways = (settings.gateways ?? []).map(({ host, port = null }) => {
    const known = told?.gateways.find((gateway) => gateway.host === host && gateway.port === port)
    return known ?? { host, port, reachable: null, details: null, checkedAt: null }
  })
  return {
    registration: registered?.registration ?? 'none',
    registrationDetails: registered?.registrationDetails ?? null,
    registeredUntil: registered?.registeredUntil ?? null,
    gateways,
    updatedAt: told?.updatedAt ?? null,
  }
}

/** Trunks, as the API sees them: sealing passwords is none of its business. Null: the account has no such trunk. */
export type Trunks = {
  /** In the order they were made. */
  list(accountId: AccountId): Promise<Trunk[]>
  find(accountId: AccountId, id: TrunkId): Promise<Trunk | null>
  stateOf(accountId: AccountId, id: TrunkId): Promise<TrunkState | null>
  /** Throws Problem VALIDATION_FAILED for workers the account has not got, and for settings that do not go together. */
  create(accountId: AccountId, request: TrunkRequest): Promise<Trunk>
  /** Throws like `create`. */
  change(accountId: AccountId, id: TrunkId, change: TrunkChange): Promise<Trunk | null>
  /** False: there was none. */
  remove(accountId: AccountId, id: TrunkId): Promise<boolean>
}
