/** Owns what the API is built from and what its routes see of one request. */
import type { KeyObject } from 'node:crypto'
import type { OpenAPIHono } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import type { Clock } from '../model/clock.ts'
import type { AccountId, NewId, WorkerId } from '../model/ids.ts'
import type { RequestInfo } from '../model/listener.ts'
import type { Log } from '../model/log.ts'
import type { RecordingStore } from '../model/recording-store.ts'
import type { CreateWebCall, WebCallSession } from '../model/web-call.ts'
import type { SubscriptionRequest, WebhookSubscription } from '../model/webhook.ts'
import type { Sql } from '../store/sql.ts'

/** Webhook subscriptions need a key to seal their secrets with, which the API has no business to know. */
export type Subscriptions = {
  /** Throws Problem VALIDATION_FAILED for a worker the account has not got. */
  create(accountId: AccountId, request: SubscriptionRequest): Promise<WebhookSubscription>
  /** With a worker: only those of this worker. */
  list(accountId: AccountId, workerId: WorkerId | null): Promise<WebhookSubscription[]>
}

export type ApiDeps = {
  readonly sql: Sql
  readonly createWebCall: CreateWebCall
  readonly subscriptions: Subscriptions
  readonly recordings: RecordingStore
  /** Signs links to recordings. A KeyObject: a raw key costs several times as much at every use. */
  readonly recordingUrlKey: KeyObject
  /** Asked for every web call, because TURN credentials live for a limited time. */
  readonly iceServers: () => WebCallSession['iceServers']
  /** The address clients know this service by; null: whatever host a request names. */
  readonly publicUrl: string | null
  /** Whose agent the page at `/` calls without a key. Given only where the listener is bound to a loopback address. */
  readonly demo: { readonly accountId: AccountId; readonly workerId: WorkerId } | null
  readonly log: Log
  readonly clock: Clock
  readonly newId: NewId
}

export type ApiEnv = {
  Bindings: { readonly info: RequestInfo; readonly requestId: string }
  /** Of the key; set for everything that asks for one. */
  Variables: { accountId: AccountId }
}

export type Api = OpenAPIHono<ApiEnv>
export type Middleware = MiddlewareHandler<ApiEnv>
