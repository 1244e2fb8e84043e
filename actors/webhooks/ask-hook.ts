/**
 * Owns asking a sync hook: one signed request, one attempt, everything bounded; the answer is JSON that can be stored, or what was wrong.
 * What the JSON must look like is for the asker to say. docs/contract/webhooks.md "Sync rules".
 */
import type { NewId } from '../../model/ids.ts'
import { flawOf, storableText, type Json } from '../../model/json.ts'
import { noTelemetry, type Telemetry } from '../../model/telemetry.ts'
import { maxHookTimeout } from '../../model/webhook.ts'
import type { SendResult, WebhookSender } from './sender.ts'
import { headersOf, sendSigned, toSigningKey, type SigningKeys } from './sign.ts'

type Deps = {
  readonly sender: Pick<WebhookSender, 'send'>
  readonly now: () => number
  readonly newId: NewId
  readonly telemetry?: Telemetry
}

export type HookQuestion = {
  readonly type: 'call.worker_request' | 'call.tool_call'
  readonly url: string
  /** In plaintext; used to the letter. */
  readonly secret: string
  /** The one before it, while receivers may know that one. */
  readonly formerSecret?: string | null
  /** Custom ones; the service's own are added and win. */
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds over everything, the whole answer included; 10 s at the very most. */
  readonly timeout: number
  readonly accountId: string
  /** Whose call it is about. */
  readonly callId?: string
  /** Of the request of REST that placed it. */
  readonly requestId?: string | null
  readonly data: object
  /** Ends the question as failed. */
  readonly signal?: AbortSignal
}

export type HookAnswer =
  | { readonly kind: 'answered'; readonly status: number; readonly body: string; readonly json: Json }
  /** `details` is for the log, the one of the call too: it can be stored. `status` and `body` are null and empty when there was no HTTP answer. */
  | {
      readonly kind: 'failed'
      readonly details: string
      readonly timedOut: boolean
      readonly status: number | null
      readonly body: string
    }

/** Characters. */
export const maxDetails = 500

/** Never throws. */
export async function askHook(deps: Deps, question: HookQuestion): Promise<HookAnswer> {
  const { sender, now, newId, telemetry = noTelemetry } = deps
  const { type, url, accountId, data, signal, callId, requestId = null } = question
  const body = JSON.stringify({ type, data })
  const at = now()
  const event = { type, eventId: newId<'delivery'>(), eventAt: at, delivery: 'sync', accountId, attempt: 1 } as const
  const until = at + Math.min(question.timeout, maxHookTimeout)
  const span = telemetry.span('hook.ask', { hook: type }, { eventId: event.eventId, ...(callId && { callId }) })
  const result = await sendSigned(signingKeysOf(question), (keys) => {
    const { traceparent } = span
    const about = { ...event, requestId, ...(traceparent && { traceparent }) }
    const sent = { ...about, sentAt: at, body, customHeaders: question.headers }
    const headers = headersOf(sent, ...keys)
    const timeout = Math.max(1, until - now())
    return sender.send({ url, headers, body, timeout, answer: 'whole', ...(signal && { signal }) })
  })
  const answer = answerOf(result)
  span.end(answer.kind === 'answered' ? 'ok' : 'failed')
  if (answer.kind === 'failed') {
    const reason = result.kind === 'failed' ? result.reason : 'answer'
    telemetry.count('hook.failures', { hook: type, reason })
  }
  return answer
}

export const signingKeysOf = ({ secret, formerSecret }: Pick<HookQuestion, 'secret' | 'formerSecret'>): SigningKeys =>
  formerSecret ? [toSigningKey(secret), toSigningKey(formerSecret)] : [toSigningKey(secret)]

/** An empty body of a 2xx is the empty object. */
function answerOf(result: SendResult): HookAnswer {
  if (result.kind === 'failed') {
    const details = storableText(`${result.reason}: ${result.details}`, maxDetails)
    return { kind: 'failed', details, timedOut: result.reason === 'timeout', status: null, body: '' }
  }
  const { status, body } = result
  const failed = (text: string): HookAnswer => {
    // It may quote a key of the answer.
    const details = storableText(text, maxDetails)
    return { kind: 'failed', details, timedOut: false, status, body }
  }
  if (status < 200 || status > 299) return failed(`answered with status ${status}`)
  const json = parseJson(body.trim() === '' ? '{}' : body)
  if (json === undefined) return failed('the answer is no JSON')
  const flaw = flawOf(json)
  if (flaw) return failed(`the answer cannot be stored: ${flaw.path.join('.')} ${flaw.message}`)
  return { kind: 'answered', status, body, json }
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    // Undefined is no JSON value, so it stands for "none".
    return undefined
  }
}
