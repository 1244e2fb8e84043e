/** Owns SIP trunks: how an account reaches the telephone network. docs/contract/rest.md "Trunks". */
import { z } from 'zod'
import { toIso } from './clock.ts'
import type { AccountId, TrunkId, WorkerId } from './ids.ts'
import { Network } from './network.ts'
import { NumberFormat } from './number-format.ts'
import { oneLine } from './one-line.ts'
import { removable } from './removable.ts'
import type { Issue } from './problem.ts'
import { CustomHeaders } from './webhook.ts'

const HostName = z
  .string()
  .regex(
    /^(?=.{1,253}$)(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$/,
    'must be a host name or an IP address',
  )
/** Written where a peer looks us up, and checks our certificate by. */
const DomainName = z.string().regex(/^(?=.{1,253}$)(?:[A-Za-z0-9_-]+\.)*[A-Za-z][A-Za-z0-9-]*$/, 'must be a host name')
const Direction = z.enum(['inbound', 'outbound', 'both'])
/** Written into the headers of SIP. */
const OptionalText = z.string().min(1).max(200).refine(oneLine, 'must be one line').nullable().optional()

/** Where calls are sent, in order of preference. Without a port DNS decides (RFC 3263). */
const Gateway = z.strictObject({
  host: HostName,
  port: z.number().int().min(1).max(65_535).optional(),
  transport: z.enum(['udp', 'tcp', 'tls']).optional(),
})
export type Gateway = z.infer<typeof Gateway>

const isNetwork = (text: string): boolean => Network.safeParse(text).success
const Source = z
  .string()
  .refine(
    (text) => isNetwork(text) || DomainName.safeParse(text).success,
    'must be an IP address, a network like 203.0.113.0/24, or a host name',
  )

/** What a PBX calls a line of its own by: the user of a SIP URI that is no telephone number. */
const Extension = z.strictObject({
  user: z.string().regex(/^[A-Za-z0-9_.!~*'()&=+$#%-]{1,64}$/, 'must be the user of a SIP URI, 64 characters at most'),
  /** One of the trunk's workers; absent: the oldest active one. */
  workerId: z.string().optional(),
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
  /** Who may deliver inbound calls; names are looked up again and again. */
  allowedAddresses: z.array(Source).max(100).optional(),
  username: OptionalText,
  /** Who proves the password, where that is another name than the one the line has. Absent: `username`. */
  authUsername: OptionalText,
  /** The only one that the password is proved to, and the one that our own challenges name. Absent: the first that took it, see TrunkState. */
  realm: OptionalText,
  /** Of challenges, theirs and ours (RFC 7616 section 3.4). `optional`: for a peer that knows none. Absent: required. */
  digestQop: z.enum(['required', 'optional']).optional(),
  /** By which users the trunk's peers call its workers, besides their numbers and `username`. */
  extensions: z.array(Extension).max(100).optional(),
  numberFormat: NumberFormat.nullable().optional(),
  /** Every inbound call must prove the password, also one from an allowed address. */
  authenticateInbound: z.boolean().optional(),
  /**
   * Where the caller's number of an outbound call stands: in From, in From and P-Asserted-Identity, or in P-Asserted-Identity with the
   * username in From, as a PBX wants it of a registered line.
   */
  callerId: z.enum(['from', 'identity', 'username']).optional(),
  /**
   * Which header the caller's number stands in besides From: P-Asserted-Identity among those who trust each other, P-Preferred-Identity as a
   * line asks its carrier for a number (RFC 3325). Named without `callerId` it means `identity`. Absent: `asserted`.
   */
  identityHeader: z.enum(['asserted', 'preferred']).optional(),
  /** In front of the number in From and identity headers. */
  displayName: OptionalText,
  /** P-Asserted-Identity of inbound calls is believed, and its number is who calls (RFC 3325). */
  trustsIdentity: z.boolean().optional(),
  /** In To, From and the Request-URI in place of the gateway's host. */
  domain: HostName.optional(),
  /** In From and identity headers in place of `domain`: carriers that want our name there and theirs in the Request-URI. */
  fromDomain: HostName.nullable().optional(),
  /** In Contact and Via in place of our address, as peers want it that know us by the name in our certificate. */
  publicName: DomainName.nullable().optional(),
  /** How Refer-To names a number: Twilio wants `tel:` or the trunk's domain. */
  transferTo: z.enum(['sip', 'tel']).optional(),
  /** PEM, its chain behind it: shown to those called over TLS who ask for one. Absent: that of the service. */
  tlsCertificate: z.string().min(1).max(20_000).nullable().optional(),
  /** SRTP by SDES. Absent: on calls over TLS. */
  encryption: z.enum(['none', 'sdes']).optional(),
  /** OPTIONS to each gateway now and then: those that do not answer are tried last. Absent: yes. */
  qualify: z.boolean().optional(),
  /** REGISTER at the registrar, else at the first gateway. */
  register: z.boolean().optional(),
  /** Where a trunk registers that sends its calls elsewhere. */
  registrar: Gateway.nullable().optional(),
  /** Carriers with several gateways that do not know of each other want a registration at each. */
  registerWith: z.enum(['first', 'every']).optional(),
  /** Seconds that a registration is asked for; absent: 600. */
  registerExpires: z.number().int().min(60).max(86_400).nullable().optional(),
  /** By way of which everything goes to the trunk (RFC 3261 section 8.1.2); its gateways stand in the Request-URI. */
  outboundProxy: Gateway.nullable().optional(),
  /** In order of preference. */
  codecs: z
    .array(z.enum(['PCMU', 'PCMA', 'G722', 'opus']))
    .max(4)
    .optional(),
  /** `{from}` and `{to}` stand for the numbers of the call. */
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

/** What the settings are judged by besides themselves. */
export type TrunkSurroundings = { readonly passwordSet: boolean; readonly workerIds: readonly string[] }

/** What settings need of each other: authentication and caller ID a username, REGISTER a username and a gateway. */
export function trunkIssuesOf(settings: TrunkSettings, { passwordSet, workerIds }: TrunkSurroundings): Issue[] {
  const { register, username, callerId, authenticateInbound } = settings
  const issues: Issue[] = []
  if (register && (!username || registrarsOf(settings).length === 0))
    issues.push({ path: 'register', message: 'needs a username and a gateway or registrar' })
  if (settings.registrar && settings.registerWith === 'every')
    issues.push({
      path: 'registerWith',
      message: 'must not be every where registrar names another place than the gateways',
    })
  if (callerId === 'username' && !username) issues.push({ path: 'callerId', message: 'needs a username to show' })
  if (authenticateInbound && (!authUserOf(settings) || !passwordSet))
    issues.push({ path: 'authenticateInbound', message: 'needs a username and a password to be proved' })
  return [...issues, ...numberIssuesOf(settings), ...extensionIssuesOf(settings, workerIds)]
}

/** Who proves the password of the trunk, to others and to us. */
export const authUserOf = ({ authUsername, username }: TrunkSettings): string | null => authUsername ?? username ?? null

/** Where a trunk that registers does so. */
export function registrarsOf({ registrar, registerWith, gateways = [] }: TrunkSettings): readonly Gateway[] {
  if (registrar) return [registrar]
  return registerWith === 'every' ? gateways : gateways.slice(0, 1)
}

/**
 * The names that calls of the trunk come from: those that are allowed, and where a trunk is registered, whose calls come back from there. Of
 * each once.
 */
export function sourceNamesOf(settings: TrunkSettings): string[] {
  const places = settings.register ? [...registrarsOf(settings), ...(settings.gateways ?? [])] : []
  const named = [...(settings.allowedAddresses ?? []), ...places.map(({ host }) => host)]
  const names = named.filter((text) => !isNetwork(text) && DomainName.safeParse(text).success)
  return [...new Set(names.map((name) => name.toLowerCase()))]
}

function numberIssuesOf({ numberFormat }: TrunkSettings): Issue[] {
  if (!numberFormat || numberFormat.countryCode !== undefined) return []
  const isNational = numberFormat.called === 'national' || numberFormat.calling === 'national'
  return isNational ? [{ path: 'numberFormat.countryCode', message: 'is needed for national numbers' }] : []
}

function extensionIssuesOf({ extensions = [] }: TrunkSettings, workerIds: readonly string[]): Issue[] {
  return extensions.flatMap(({ user, workerId }, index) => {
    const isFirst = extensions.findIndex((extension) => extension.user === user) === index
    return [
      ...(isFirst ? [] : [{ path: `extensions.${index}.user`, message: 'is there twice' }]),
      ...(workerId === undefined || workerIds.includes(workerId)
        ? []
        : [{ path: `extensions.${index}.workerId`, message: 'must be one of the workerIds of the trunk' }]),
    ]
  })
}

const fields = {
  name: z.string().min(1).max(200),
  direction: Direction.optional(),
  isActive: z.boolean().optional(),
  /** Write-only; 8 characters or more, where calls may come in by it. */
  password: z.string().min(1).max(500).nullable().optional(),
  /** Of `tlsCertificate`; write-only. */
  tlsKey: z.string().min(1).max(20_000).nullable().optional(),
  /** Whose calls go this way; replaces the whole list. */
  workerIds: z.array(z.string()).max(1000).optional(),
  ...TrunkSettings.shape,
}

/** Characters of a password by which calls come in: anybody may guess at it. One that a carrier gave us, for calls out only, is as it is. */
export const minPasswordLength = 8

type WithPassword = { readonly password?: string | null | undefined; readonly direction?: string | undefined }

function requireLongPassword({ password, direction }: WithPassword, context: z.RefinementCtx): void {
  if (!password || password.length >= minPasswordLength || direction === 'outbound') return
  const message = `must have at least ${minPasswordLength} characters, unless direction is outbound`
  context.addIssue({ code: 'custom', path: ['password'], message })
}

export const TrunkRequest = z.strictObject(fields).superRefine(requireLongPassword)
export type TrunkRequest = z.infer<typeof TrunkRequest>
/** What is not named stays; null takes a setting away. */
export const TrunkChange = z
  .strictObject({ ...fields, ...removable(TrunkSettings.shape) })
  .partial()
  .superRefine(requireLongPassword)
export type TrunkChange = z.infer<typeof TrunkChange>

export const Trunk = z.object({
  id: z.string(),
  accountId: z.string(),
  name: z.string(),
  direction: Direction,
  isActive: z.boolean(),
  passwordSet: z.boolean(),
  /** Only where there is one. */
  tlsKeySet: z.literal(true).optional(),
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
  readonly tlsKeySet: boolean
  readonly workerIds: readonly WorkerId[]
  readonly config: TrunkSettings
  readonly createdAt: number
  readonly updatedAt: number
}

export function toTrunk({ config, createdAt, updatedAt, workerIds, tlsKeySet, ...facts }: TrunkFacts): Trunk {
  const times = { createdAt: toIso(createdAt), updatedAt: toIso(updatedAt) }
  return { ...config, ...facts, ...(tlsKeySet && { tlsKeySet }), workerIds: [...workerIds], ...times }
}

/** How a trunk does at this moment, as the node sees it that keeps it. */
export const TrunkState = z.object({
  registration: z.enum(['none', 'registering', 'registered', 'failed']),
  /** The last answer to REGISTER, or why there was none. */
  registrationDetails: z.string().nullable(),
  registeredUntil: z.string().nullable(),
  /** Of a trunk that registers at several places: the three above tell the worst of them. */
  registrations: z
    .array(
      z.object({
        host: z.string(),
        port: z.number().int().nullable(),
        registration: z.enum(['registering', 'registered', 'failed']),
        registrationDetails: z.string().nullable(),
        registeredUntil: z.string().nullable(),
      }),
    )
    .optional(),
  gateways: z.array(
    z.object({
      host: z.string(),
      port: z.number().int().nullable(),
      reachable: z.boolean().nullable(),
      details: z.string().nullable(),
      checkedAt: z.string().nullable(),
    }),
  ),
  /** To whom the password is proved, by the host of the gateway or registrar; only where somebody has asked. */
  realms: z
    .array(
      z.object({
        host: z.string(),
        /** Learned at the first success there: no other is answered. */
        realms: z.array(z.string()),
        /** Why a challenge was not answered since, and how to accept it. */
        refused: z.string().nullable(),
      }),
    )
    .optional(),
  updatedAt: z.string().nullable(),
})
export type TrunkRealm = { readonly host: string; readonly realms: string[]; readonly refused: string | null }
export type TrunkState = z.infer<typeof TrunkState>

/** What a node reported last, as it stands to the settings of now: gateways and a registration that are gone are not told of. */
export function trunkStateOf(
  settings: TrunkSettings,
  told: Omit<TrunkState, 'realms'> | null,
  realms: readonly TrunkRealm[] = [],
): TrunkState {
  const registered = settings.register ? told : null
  const gateways = (settings.gateways ?? []).map(({ host, port = null }) => {
    const known = told?.gateways.find((gateway) => gateway.host === host && gateway.port === port)
    return known ?? { host, port, reachable: null, details: null, checkedAt: null }
  })
  return {
    registration: registered?.registration ?? 'none',
    registrationDetails: registered?.registrationDetails ?? null,
    registeredUntil: registered?.registeredUntil ?? null,
    ...(registered?.registrations && { registrations: registered.registrations }),
    gateways,
    ...(realms.length > 0 && { realms: [...realms] }),
    updatedAt: told?.updatedAt ?? null,
  }
}

/** Who asks. An account opens a trunk to networks of a size that a carrier has, the operator to any. */
export type TrunkAuthor = 'account' | 'operator'

/** Trunks, as the API sees them: sealing passwords is none of its business. Null: the account has no such trunk. Absent, the author is the operator. */
export type Trunks = {
  /** In the order they were made. */
  list(accountId: AccountId): Promise<Trunk[]>
  find(accountId: AccountId, id: TrunkId): Promise<Trunk | null>
  stateOf(accountId: AccountId, id: TrunkId): Promise<TrunkState | null>
  /**
   * Throws Problem VALIDATION_FAILED for workers the account has not got, for settings that do not go together, and for networks that are too wide
   * for the author.
   */
  create(accountId: AccountId, request: TrunkRequest, author?: TrunkAuthor): Promise<Trunk>
  /** Throws like `create`. A wide network that the trunk has already may stay. */
  change(accountId: AccountId, id: TrunkId, change: TrunkChange, author?: TrunkAuthor): Promise<Trunk | null>
  /** False: there was none. */
  remove(accountId: AccountId, id: TrunkId): Promise<boolean>
}
