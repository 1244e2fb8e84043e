/**
 * Owns what is answered beside the REST API at paths of its own, behind the same rim: request ids, the access log, budgets of requests, and the
 * one shape of errors for a Problem that is thrown.
 */
import type { AccountId } from '../../model/ids.ts'
import type { RequestInfo } from '../../model/listener.ts'
import type { TokenBucket } from '../token-bucket.ts'

/** One request, as far as the rim knows it. */
export type Asked = {
  readonly info: RequestInfo
  readonly requestId: string
  /** Whom the request was charged to so far: what the answer tells of. */
  charged: TokenBucket | null
}

export type Beside = {
  /** An exact path; or with `/*` at its end what is below it, and itself. */
  readonly path: string
  /** Every method comes here. */
  fetch(request: Request, info: RequestInfo, asked: Asked): Promise<Response>
  /** True: it decides itself whom a request is charged to. Absent: its address. */
  readonly chargesItself?: boolean
}

/** The budgets of requests as somebody uses them who is asked beside the API. Every method throws Problem RATE_LIMITED when nothing is left. */
export type Charge = {
  chargeAddress(asked: Asked, purpose?: string): void
  /** Before the database is asked about a key: one that was never good is charged to its address. */
  beforeKey(asked: Asked, key: string | undefined): void
  /** When the key proved good: its account is charged instead. */
  goodKey(asked: Asked, key: string, accountId: AccountId): void
  /** When nobody has the key, or not any more. */
  wrongKey(asked: Asked, key: string | undefined): void
}
