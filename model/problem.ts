/** Owns the second kind of error (style: outcome, problem, bug): what the client asked cannot be done. Rendered in one place per edge. */
import { z } from 'zod'

/** Stable codes; `localizedKey` and the HTTP status follow from them. docs/contract/rest.md "Errors". */
export const problemStatus = {
  VALIDATION_FAILED: 400,
  INVALID_JSON: 400,
  TELEPHONY_INTEGRATION_NOT_SETUP: 400,
  TELEPHONY_INTEGRATION_NOT_ADDED_TO_WORKER: 400,
  TELEPHONY_TRANSPORT_NOT_SUPPORTED: 400,
  TELEPHONY_SERVICE_PROVIDER_UNAVAILABLE: 400,
  CALL_SCRIPT_NOT_CONFIGURED: 400,
  WEB_CALL_CAPACITY_EXCEEDED: 400,
  WORKER_INACTIVE: 400,
  INVALID_TOOL: 400,
  UNAUTHORIZED: 401,
  ORIGIN_NOT_ALLOWED: 403,
  INSUFFICIENT_SCOPE: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  IDEMPOTENCY_KEY_REUSED: 409,
  PRECONDITION_FAILED: 412,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  RANGE_NOT_SATISFIABLE: 416,
  UPGRADE_REQUIRED: 426,
  RATE_LIMITED: 429,
  INTERNAL: 500,
  SERVICE_UNAVAILABLE: 503,
} as const

export type ProblemType = keyof typeof problemStatus

export const Issue = z.object({ path: z.string(), message: z.string() })
export type Issue = z.infer<typeof Issue>

/** `status`: another than that of the type: what the whole service lacks is 503, and not the request's fault. `allow`: of METHOD_NOT_ALLOWED. */
type ProblemOver = {
  readonly status?: 503
  readonly retryAfterSeconds?: number
  readonly allow?: readonly string[]
}

export class Problem extends Error {
  override readonly name = 'Problem'
  readonly type: ProblemType
  readonly issues: readonly Issue[] | null
  readonly status: number
  /** Null: about what a restart takes, where the status says that trying again helps. */
  readonly retryAfterSeconds: number | null
  /** The methods that are known where another one was used; empty for every other type. */
  readonly allow: readonly string[]
  /** `details` is a sentence for the person who reads the answer; it never carries anything of the inside. */
  constructor(type: ProblemType, details: string, issues: readonly Issue[] | null = null, over: ProblemOver = {}) {
    super(details)
    this.type = type
    this.issues = issues
    this.status = over.status ?? problemStatus[type]
    this.retryAfterSeconds = over.retryAfterSeconds ?? null
    this.allow = over.allow ?? []
  }
}

export const notFound = (): Problem => new Problem('NOT_FOUND', 'No such resource.')

/** RFC 9110 section 15.5.6: whoever is told so is told what goes, too. */
export const methodNotAllowed = (allow: readonly string[]): Problem =>
  new Problem('METHOD_NOT_ALLOWED', `Here only ${allow.join(', ')}.`, null, { allow })

/** What a request holds is not valid: each fault by the path of its field. */
export const invalidFields = (issues: readonly Issue[]): Problem =>
  new Problem('VALIDATION_FAILED', 'Some fields are not valid; see issues.', issues)

/** The one error shape of REST and signaling. docs/contract/rest.md "Errors". */
export const ErrorBody = z.object({
  statusCode: z.number().int(),
  type: z.string(),
  localizedKey: z.string(),
  details: z.string(),
  requestId: z.string(),
  issues: z.array(Issue).optional(),
})
export type ErrorBody = z.infer<typeof ErrorBody>

export function errorBodyOf(problem: Problem, requestId: string): ErrorBody {
  return {
    statusCode: problem.status,
    type: problem.type,
    localizedKey: `errors.${camelCaseOf(problem.type)}`,
    details: problem.message,
    requestId,
    ...(problem.issues && { issues: [...problem.issues] }),
  }
}

const camelCaseOf = (type: string): string =>
  type.toLowerCase().replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
