/** Owns what creating and joining a web call takes and gives, and the port between the front door and the call. docs/contract/rest.md "Web calls". */
import { z } from 'zod'
import type { AskedBy } from './asked-by.ts'
import { CustomerInput } from './customer.ts'
import { ExternalTools } from './external-tool.ts'
import type { Once } from './idempotency.ts'
import type { AccountId, CallId } from './ids.ts'
import { Metadata } from './json.ts'
import { Language } from './language.ts'
import type { Problem } from './problem.ts'
import { WebOrigin } from './web-origin.ts'

export const tokenLifetime = 120_000
export const resumeWindow = 30_000

export const WebCallRequest = z.strictObject({
  workerId: z.string(),
  instructions: z.string().max(100_000).optional(),
  customer: CustomerInput.optional(),
  context: z.string().max(100_000).optional(),
  locale: Language.optional(),
  voiceId: z.string().min(1).max(200).optional(),
  temperature: z.number().min(0).max(2).optional(),
  llmProvider: z.enum(['voice_provider_a', 'voice_provider_b']).optional(),
  externalTools: ExternalTools.optional(),
  allowedOrigins: z.array(WebOrigin).max(100).optional(),
  metadata: Metadata.optional(),
})
export type WebCallRequest = z.infer<typeof WebCallRequest>

export const IceServer = z.object({
  urls: z.array(z.string()),
  username: z.string().optional(),
  credential: z.string().optional(),
})

export const WebCallSession = z.object({
  callId: z.string(),
  sessionId: z.string(),
  signalingUrl: z.string(),
  token: z.string(),
  iceServers: z.array(IceServer),
  expiresAt: z.string(),
})
export type WebCallSession = z.infer<typeof WebCallSession>

/** What the actors give for a created call; the API adds the addresses a browser reaches this service by. */
export type CreatedWebCall = {
  readonly callId: CallId
  readonly sessionId: string
  readonly token: string
  readonly expiresAt: string
}

/**
 * The call side, as the API sees it. Throws Problem for what the request cannot have (unknown or inactive worker, no capacity), and
 * IDEMPOTENCY_KEY_REUSED. A repeated request with the same `once` gives the first one's answer.
 */
export type CreateWebCall = (
  accountId: AccountId,
  request: WebCallRequest,
  once?: Once | null,
  asked?: AskedBy,
) => Promise<CreatedWebCall>

/** The call of a client that comes back is over by now, in this way. */
export type CameTooLate = { readonly ended: string }

export type Admitted = {
  readonly callId: CallId
  readonly sessionId: string
  /** A new one at every admission; the old one is void. */
  readonly resumeToken: string
}

/** The call side, as the gateway sees it. Every method answers before any upgrade. */
export type Admission = {
  /** Takes the token (single use, atomically) when it is good and the origin is allowed, and tells the call that its client is here. */
  admit(token: string, origin: string | null): Promise<Admitted | Problem>
  /** The same for a client that lost its socket. The token is taken only when it is good and the origin is allowed. */
  resume(resumeToken: string, origin: string | null): Promise<Admitted | CameTooLate | Problem>
  /** May a resumed session that another process had go on in this one? Null: yes, and it counts as a call that begins here. */
  arrive(): Promise<Problem | null>
  /** Of one that was refused: was it ever a token of ours? A made-up one is a guess, a used one an honest mistake. */
  isOurs(token: string): Promise<boolean>
}
