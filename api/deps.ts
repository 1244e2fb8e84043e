/** Owns what the API is built from and what its routes see of one request. */
import type { KeyObject } from 'node:crypto'
import type { OpenAPIHono } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import type { KeyScope } from '../model/api-key.ts'
import type { Actor, Ending } from '../model/audit.ts'
import type { Bus } from '../model/bus.ts'
import type { CaptureCall } from '../model/call-capture.ts'
import type { Clock } from '../model/clock.ts'
import type { ErasePerson } from '../model/erasure.ts'
import type { AccountId, ApiKeyId, NewId, WorkerId } from '../model/ids.ts'
import type { Knowledge } from '../model/knowledge.ts'
import type { LoadGate } from '../model/load-gate.ts'
import type { Log } from '../model/log.ts'
import type { Telemetry } from '../model/telemetry.ts'
import type { CreatePhoneCall, DeleteCall, EndCall, PauseRecording, ProcessAgain } from '../model/phone-call.ts'
import type { RecordingStore } from '../model/recording-store.ts'
import type { PriceTable } from '../model/price-table.ts'
import type { CheckReplay } from '../model/replay-check.ts'
import type { Problem } from '../model/problem.ts'
import type { Readiness } from '../model/roles.ts'
import type { ScriptCheck } from '../model/script-check.ts'
import type { Supervise } from '../model/supervision.ts'
import type { Toolbox } from '../model/tool.ts'
import type { Trunks } from '../model/trunk.ts'
import type { CreateWebCall, WebCallSession } from '../model/web-call.ts'
import type { PageSessions, Role } from '../model/user.ts'
import type { Subscriptions } from '../model/webhook.ts'
import type { Asked, Beside } from '../net/http/beside.ts'
import type { UsedCall } from '../store/call-usage.ts'
import type { AuditLog } from '../store/audit.ts'
import type { Sql } from '../store/sql.ts'
import type { RateLimits } from './rate-limit.ts'

export type ApiDeps = {
  readonly sql: Sql
  /** Of what runs. */
  readonly bus: Bus
  /** The connections of calls, which /health asks by; absent: `sql`. Readers that hold all of theirs make the service slow for readers, not ill. */
  readonly callSql?: Sql
  /** Absent: the API makes one of its own. */
  readonly audit?: AuditLog
  readonly createWebCall: CreateWebCall
  readonly createPhoneCall: CreatePhoneCall
  readonly endCall: EndCall
  readonly processAgain: ProcessAgain
  readonly pauseRecording: PauseRecording
  readonly captureCall: CaptureCall
  readonly deleteCall: DeleteCall
  readonly checkReplay: CheckReplay
  readonly erasePerson: ErasePerson
  readonly tools: Toolbox
  /** How people listen to calls and take them over. Absent: nobody can. */
  readonly supervise?: Supervise
  /** Of people who are signed in. Absent: only keys are taken, and there is no console. */
  readonly sessions?: PageSessions
  readonly knowledge: Knowledge
  readonly subscriptions: Subscriptions
  readonly trunks: Trunks
  /** Accounts may give workers numbers that are nobody's; false: only those that the operator assigned. Absent: they may. */
  readonly mayClaimNumbers?: boolean
  /** Of call scripts; absent: nothing is told of their errors. */
  readonly checkScript?: ScriptCheck
  readonly recordings: RecordingStore
  /** Signs links to recordings. A KeyObject: a raw key costs several times as much at every use. */
  readonly recordingUrlKey: KeyObject
  readonly formerRecordingUrlKeys?: readonly KeyObject[]
  /** Asked for every web call, because TURN credentials live for a limited time. */
  readonly iceServers: () => WebCallSession['iceServers']
  /** The address clients know this service by; null: whatever host a request names. */
  readonly publicUrl: string | null
  /** What calls cost; absent or null: nobody knows. */
  readonly prices?: PriceTable | null
  /** Where browsers join web calls; absent or null: below the address that clients know this service by. */
  readonly signalingUrl?: string | null
  /** What is answered below other paths behind the same rim. Absent: nothing. */
  readonly beside?: readonly Beside[]
  /** Whose agent the page at `/` calls without a key. Given only where the listener is bound to a loopback address. */
  readonly demo: { readonly accountId: AccountId; readonly workerId: WorkerId; readonly token?: string } | null
  readonly rateLimits: RateLimits
  /** What matters and is not set, in sentences for owners. Absent: nothing. */
  readonly notes?: readonly string[]
  /** Does this node begin calls? Absent: whenever it is asked. */
  readonly newCalls?: LoadGate['newCalls']
  /** May the roles of this process take new calls? Absent: they may. */
  readonly readiness?: () => Readiness
  /** Why what a request would create cannot be created now, whosever; asked before its key is looked up. Takes nothing. */
  readonly noRoomFor?: (creates: 'web_call' | 'phone_call' | null) => Problem | null
  readonly log: Log
  readonly telemetry?: Telemetry
  readonly clock: Clock
  readonly newId: NewId
}

/** What every process answers by, also one that leaves REST to others. */
export type RimDeps = Pick<
  ApiDeps,
  'sql' | 'callSql' | 'beside' | 'rateLimits' | 'newCalls' | 'readiness' | 'log' | 'clock' | 'newId' | 'telemetry'
>

export type ApiEnv = {
  Bindings: Asked
  /** Of the key, or of who is signed in; set for everything that asks for one. */
  Variables: {
    accountId: AccountId
    /** Null: somebody who is signed in. */
    keyId: ApiKeyId | null
    /** Of who is signed in; null: a key asks. */
    role: Role | null
    /** Whom the audit log names. */
    actor: Actor
    /** Of the key. */
    scopes: readonly KeyScope[]
    /** Of the entry in the audit log that was begun for this request. */
    endEntry?: (ending: Ending) => Promise<void>
    /** The call of this account that the path names, null when it has none; unset where it was not read together with the key. */
    call?: UsedCall | null
  }
}

export type Api = OpenAPIHono<ApiEnv>
export type Middleware = MiddlewareHandler<ApiEnv>
