/**
 * Owns outbound calls that a client plans and a human being confirms: what is asked for, what is planned and shown, who may confirm it. The port
 * behind it places calls. docs/contract/mcp.md "Calls and confirmations".
 */
import type { CustomerInput } from './customer.ts'
import type { AccountId, DocumentId, PersonId, WorkerId } from './ids.ts'
import type { PhoneCall } from './phone-call.ts'

/** Ms. */
export const confirmationLifetime = 600_000
/** Of one client for one user. */
export const maxPendingConfirmations = 100
export const maxCallsAtOnce = 100

/** As it was asked for; its shape is valid. Ids are texts that somebody sent. */
export type WantedCall = {
  readonly workerId: string
  /** E.164. Absent: that of the person, else of the customer. */
  readonly phoneNumber?: string | undefined
  readonly personId?: string | undefined
  readonly customer?: CustomerInput | undefined
  /** Given to the call as background. */
  readonly context?: string | undefined
  /** Documents; none: all scripts of the worker. */
  readonly scriptIds?: readonly string[] | undefined
  readonly instructions?: string | undefined
  /** Ms since the epoch; absent: now. */
  readonly scheduledAt?: number | undefined
  /** In which that time was named, `+01:00`; absent: UTC. */
  readonly utcOffset?: string | undefined
}

/** As it is stored, shown and placed. JSON. */
export type PlannedCall = {
  readonly workerId: WorkerId
  readonly workerName: string
  readonly fromNumber: string
  readonly toNumber: string
  readonly personId: PersonId | null
  /** As the summary names who is called; null: nobody knows. */
  readonly calleeName: string | null
  readonly customer: CustomerInput | null
  readonly context: string | null
  /** What the call follows, by its title. */
  readonly scripts: readonly { readonly id: DocumentId; readonly title: string }[]
  readonly instructions: string | null
  readonly scheduledAt: number | null
  /** `+01:00`: in which the time is shown. */
  readonly utcOffset: string
}

/** What of the account and the worker bounds a call; null: nothing does. */
export type CallLimits = {
  readonly dailyMinutes: number | null
  /** Of the account and of the worker together: the smaller number. */
  readonly maxConcurrentCalls: number
  readonly maxCallsPerSecond: number | null
  readonly homeCountryOnly: boolean
}

export type PlannedCalls = { readonly calls: readonly PlannedCall[]; readonly limits: CallLimits }

export type ConfirmationKind = 'single' | 'batch'

/** `approved` and `denied` are a user's word on the approval page. */
export type ConfirmationState = 'pending' | 'approved' | 'denied' | 'consumed' | 'revoked'

/** To whom a token was given: nobody else can use it. */
export type ConfirmationHolder = {
  readonly accountId: AccountId
  readonly userId: string
  readonly clientId: string
}

export type Confirming = {
  readonly holder: ConfirmationHolder
  readonly kind: ConfirmationKind
  readonly token: string
  /** The user's word on the approval page is waited for. */
  readonly mustBeApproved?: boolean
}

/**
 * Throws Problem as creation does (docs/contract/rest.md "Refusals at creation"); paths are fields of WantedCall. Of several calls each bad one is named,
 * with its index in front.
 */
export type OutboundCalls = {
  /** Writes nothing. */
  plan(accountId: AccountId, wanted: readonly WantedCall[]): Promise<PlannedCalls>
  /** Without a confirmation. */
  place(accountId: AccountId, wanted: WantedCall): Promise<PhoneCall>
  /**
   * Takes the token and places what it stands for, all in one transaction: of several at once one does. What cannot be placed any more leaves the token as it
   * is. Calls of a batch are scheduled, for now unless a time was named. Throws Problem also: NOT_FOUND for an unknown token, CONFLICT for one that
   * cannot be used any more or not yet.
   */
  confirm(confirming: Confirming): Promise<PhoneCall[]>
}
