/**
 * Owns the port between the telephone edge and the rest: whose call is this, may it come in, which ways lead out. The edge knows SIP and no
 * accounts; who implements this knows accounts and no SIP.
 */
import { z } from 'zod'
import { Direction } from './call.ts'
import type { SetUpTurn } from './load-gate.ts'
import type { AccountId, CallId, TrunkId, WorkerId } from './ids.ts'
import { Instant } from './instant.ts'
import { pageOf, PlacePaging } from './paging.ts'
import type { DialogFacts } from './sip-dialog.ts'
import type { SipFacts } from './sip-facts.ts'
import type { MessageLadder } from './message-ladder.ts'
import type { TrunkSettings, TrunkState } from './trunk.ts'

/** A trunk was made, changed or taken away: whoever looks after trunks asks at once which are its own. The message says nothing. */
export const trunksSubject = 'sip.trunks'

/** Dialogs have been left to who inherits them: every edge that may ask telephones over looks at once. Asked, one of them answers. The message says nothing. */
export const leftDialogsSubject = 'sip.dialogs.left'

/** A trunk with its password in clear: never logged, never sent over the bus. */
export type TrunkAccess = {
  readonly id: TrunkId
  readonly accountId: AccountId
  readonly name: string
  readonly settings: TrunkSettings
  readonly password: string | null
  /** By host (of a gateway or registrar, in lower case): the realms that have taken the password there. Absent: it is not known whether any has. */
  readonly realms?: Readonly<Record<string, readonly string[]>>
  /** Of a trunk that has a certificate of its own; PEM, in clear. */
  readonly tls?: { readonly cert: string; readonly key: string } | null
}

export const RefusalReason = z.enum([
  /** Inbound: no trunk delivers calls from this address, and none that has the number asks for a password. */
  'unknown_source',
  /** No active worker of a trunk that may deliver from there has one of the numbers. */
  'unknown_number',
  'wrong_credentials',
  'worker_inactive',
  'account_at_capacity',
  'worker_at_capacity',
  'trunk_at_capacity',
  'too_many_calls_per_second',
  /** Inbound: too many calls of the trunk or the address ring, or were answered and never acknowledged. */
  'too_many_unacknowledged',
  /** Nothing of the offer can be answered. */
  'not_acceptable_here',
  'malformed',
  'service_stopping',
  /** Inbound: the node has no room for another call, whosever. */
  'node_overloaded',
  /** Inbound: the database does not answer, and the call cannot be taken without it. */
  'database_away',
  /** Outbound, and transfers: outside the account's allowed destinations. */
  'destination_not_allowed',
  'daily_minutes_used_up',
  /** Outbound: the number that it was to show. */
  'number_of_another_account',
  'no_trunk',
  /** Outbound: nobody answered there, or could be asked. */
  'gateway_unreachable',
])
export type RefusalReason = z.infer<typeof RefusalReason>

/** A call that was not let in or out, and why: one line in the log, one row for the API. */
export const Refusal = z.object({
  direction: Direction,
  reason: RefusalReason,
  /** For people: which rule, and how it is mended. Names no secret. */
  details: z.string(),
  /** What the other side was answered; null where nothing was. */
  sipStatus: z.number().int().nullable(),
  /** Null when it is not known whose call it was. */
  accountId: z.string().nullable(),
  trunkId: z.string().nullable(),
  callId: z.string().nullable(),
  /** Of the other side, with port. */
  address: z.string().nullable(),
  /** As they stood in the request. */
  calling: z.string().nullable(),
  called: z.string().nullable(),
})
export type Refusal = z.infer<typeof Refusal>

/** As the API tells it: alike ones of a minute are one. */
export const CallRefusal = Refusal.omit({ accountId: true }).extend({
  id: z.string(),
  count: z.number().int(),
  firstAt: z.string(),
  lastAt: z.string(),
})
export type CallRefusal = z.infer<typeof CallRefusal>
export const CallRefusalPage = pageOf(CallRefusal)

/** Times are of the last one of a row, `from` inclusive, `to` exclusive. */
export const CallRefusalQuery = PlacePaging.extend({
  direction: Direction.optional(),
  reason: RefusalReason.optional(),
  from: Instant.optional(),
  to: Instant.optional(),
})
export type CallRefusalQuery = z.infer<typeof CallRefusalQuery>

/** An INVITE before anybody let it in. */
export type Arrival = {
  /** Without port. */
  readonly address: string
  /** Numbers it may be for, the best first: To, Request-URI, Diversion; E.164 where it can be read as such, else as it stood. */
  readonly called: readonly string[]
  /** Of them those that were dialed, the Request-URI first: they say which account the call is for. Absent: all of them. */
  readonly dialed?: readonly string[]
  readonly calling: string | null
}

/** Where an arrival leads. */
export type InboundRoute = {
  readonly trunk: TrunkAccess
  readonly workerId: WorkerId
  /** The number of the worker that was called. */
  readonly toNumber: string
  /** The password must be proved (digest) before anything else. */
  readonly mustAuthenticate: boolean
  /** Ms since the epoch: so it was then, and the database cannot be asked now. Absent: it has just been asked. */
  readonly knownAt?: number
}

export type RefusedArrival = Pick<Refusal, 'reason' | 'details' | 'accountId' | 'trunkId'> & {
  readonly sipStatus: number
  /** Where the refusal says when to try again. */
  readonly retryAfterSeconds?: number
  /** The number that the caller is sent to instead; with the status 302. */
  readonly redirectTo?: string
}

export type InboundCall = {
  readonly route: InboundRoute
  /** Without port. */
  readonly address: string
  /** E.164; null when the caller withheld it or it is no such number. */
  readonly fromNumber: string | null
  /** The trunk proved that `fromNumber` is the caller's. Absent: it did not. */
  readonly isVerified?: boolean
  readonly sip?: SipFacts
}

/** `proved`: the realms that have taken the password there; `refused`: why a challenge was not answered since, for people. */
export type RealmNews = { readonly host: string; readonly proved: readonly string[]; readonly refused: string | null }

/** A dialog whose process died; it is this edge's to tell the peer. */
export type InheritedDialog = {
  readonly callId: CallId
  readonly dialog: DialogFacts
  /** How many edges have had it before. */
  readonly heirs: number
  /** Null: it is not there any more. */
  readonly trunk: TrunkAccess | null
}

/** A call whose telephone has come over. */
export type TakenCall = {
  /** Its leg is known on the bus. */
  readonly isThere: Promise<void>
  /** Nobody wants it here: its telephone is hung up. */
  drop(): void
}

/** What an edge does with a dialog that it has inherited. */
export type DialogHeir = {
  /** It asks anybody over at all. */
  mayAsk(): boolean
  /** Asks the telephone over to this edge. Null: it does not come, at the latest after a moment. Never rejects. */
  askOver(inherited: InheritedDialog): Promise<TakenCall | null>
  /** Resolves when the peer knows that its call is over, or cannot be told. */
  tell(inherited: InheritedDialog): Promise<void>
}

/** What is known of the dialogs of answered calls beside the edge that has them. */
export type Dialogs = {
  /** It is written down by and by, and again where it has changed. Never throws, never waits. */
  held(callId: CallId, trunkId: TrunkId, dialog: DialogFacts): void
  over(callId: CallId): void
  /** From now on dialogs whose processes died come here, each to one of all edges. Calls that do not go on here are ended while their peers are told. */
  inherit(heir: DialogHeir): { close(): Promise<void> }
  /** Another edge would ask telephones over. */
  haveHeirs(): Promise<boolean>
  /** Calls whose legs were here and are gone: their telephones are asked over by other edges, now. Resolves when that is written down. */
  leave(callIds: readonly CallId[]): Promise<void>
}

export type Telephony = {
  /** The messages of a call that is over, or of a browser's session of it. Never throws, never waits. Absent: they are not kept. */
  ladder?(callId: CallId, ladder: MessageLadder): void
  /** Absent: nothing is kept, and the peers of a process that dies are not told. */
  readonly dialogs?: Dialogs
  /** Is it the address of an active trunk, whosever: one it allows, or that of a gateway? Reads only. */
  knows(address: string): Promise<boolean>
  /** Reads only. */
  route(arrival: Arrival): Promise<InboundRoute | RefusedArrival>
  /**
   * Is this node too loaded for one more call? Null: no. Before anything is known of an INVITE, `route` is null and nothing is taken; with its
   * route the call counts as begun. Reads no database.
   */
  overload?(route: InboundRoute | null): RefusedArrival | null
  /**
   * The INVITE may be looked at: few are at a time, the others wait here, in their order. Whoever gets its turn says when the call has begun, or will
   * not. Absent: everybody's turn is now.
   */
  turn?(): Promise<SetUpTurn | RefusedArrival>
  /** Takes the places of account, worker and trunk and stores the call; nothing runs yet. */
  receive(call: InboundCall): Promise<{ readonly callId: CallId } | RefusedArrival>
  /** The leg of the call listens to its actor: the call may begin. False: it cannot, the call is ended by itself. */
  begin(callId: CallId): Promise<boolean>
  /**
   * Ways out for a worker's call in the order they are to be tried: the trunk that was chosen when the call got its turn, then the others as
   * they were made, those left out that carry as many calls as they may. Nobody else's call takes the place of this one meanwhile.
   */
  waysOut(accountId: AccountId, workerId: WorkerId, callId: CallId): Promise<readonly TrunkAccess[] | RefusedArrival>
  /** May this account call, or pass a caller on to, this number? Null: yes. */
  refusalOf(accountId: AccountId, toNumber: string): Promise<RefusedArrival | null>
  /**
   * May somebody be called for this call, by the word of its actor of `epoch`? Once in the life of a call. `passed_on`: the call is over, or
   * another actor has it; it is none of this one's business any more.
   */
  mayDial(callId: CallId, epoch: number): Promise<'may' | 'was_dialed' | 'passed_on'>
  /** The trunk that carries an outbound call now: counted against its limit until the call is over. */
  carriedBy(callId: CallId, trunkId: TrunkId): Promise<void>
  /** Never throws, never waits; many alike are counted together. */
  refused(refusal: Refusal): void
  /**
   * Trunks whose registration and gateways this node looks after from now until `until` (ms since the epoch); asked again before that. No
   * two nodes have the same one.
   */
  keep(): Promise<{ readonly trunks: readonly TrunkAccess[]; readonly until: number }>
  /** Null: the account has no such trunk. Absent: nobody's trunks are examined here. */
  trunkOf?(accountId: AccountId, trunkId: TrunkId): Promise<TrunkAccess | null>
  /** Addresses of a name that calls of the trunk may come from: until it is told anew, for a day at most. */
  found(trunkId: TrunkId, source: { readonly name: string; readonly addresses: readonly string[] }): Promise<void>
  /** The first realms of a host stay; nothing of them is told again until the operator has them forgotten. */
  learnRealm(trunkId: TrunkId, news: RealmNews): Promise<void>
  report(trunkId: TrunkId, state: Omit<TrunkState, 'updatedAt'>): Promise<void>
}
