/** Owns what a check works with: a call that never was, its signed deliveries, and the way to the receiver. */
import type { EventType } from '../../model/events.ts'
import type { NewId } from '../../model/ids.ts'
import { headersOf, toSigningKey } from '../../actors/webhooks/sign.ts'
import type { Probe, ProbeAnswer, SignedRequest } from './probe.ts'
import { createSampleCall, type SampleCall } from './sample-events.ts'
import type { Finding } from './verdicts.ts'

export type CheckGroup = 'deliveries' | 'signatures' | 'hooks'

export type Check = {
  /** As `--only` takes it. */
  readonly name: string
  readonly group: CheckGroup
  readonly expected: string
  run(stage: Stage): Promise<Finding>
}

/** What a check changes about a delivery that is otherwise as the service would send it. */
type Change = {
  readonly delivery?: 'sync' | 'async'
  readonly eventId?: string
  readonly attempt?: number
  readonly sentAt?: number
  readonly secret?: string
  /** The JSON text to the letter, signed as it is. */
  readonly body?: string
}

/** `type` is any text here: events to come have names that nobody knows yet. */
type AnyEvent = { readonly type: string; readonly data: Readonly<Record<string, unknown>> }

export type Stage = {
  readonly call: SampleCall
  readonly now: () => number
  newEventId(): string
  sign(event: AnyEvent, change?: Change): SignedRequest
  post(request: SignedRequest, mode?: 'sync' | 'async'): Promise<ProbeAnswer>
  /** Signs and posts. */
  deliver(event: AnyEvent, change?: Change): Promise<ProbeAnswer>
  /** How many connections were dialled so far. */
  connections(): number
}

type Deps = {
  readonly probe: Probe
  readonly secret: string
  readonly newId: NewId
  readonly now: () => number
  readonly accountId: string
  /** Those of the subscription. */
  readonly customHeaders: Readonly<Record<string, string>>
  readonly timeouts: { readonly sync: number; readonly async: number }
}

export function createStage({ probe, secret, newId, now, accountId, customHeaders, timeouts }: Deps): Stage {
  const newEventId = (): string => newId<'delivery'>()

  function sign(event: AnyEvent, change: Change = {}): SignedRequest {
    const body = change.body ?? JSON.stringify(event)
    const { delivery = 'async', eventId = newEventId(), attempt = 1, sentAt = now() } = change
    const outgoing = { eventId, eventAt: sentAt, delivery, accountId, attempt, sentAt, body, customHeaders }
    const headers = headersOf({ ...outgoing, type: event.type as EventType }, toSigningKey(change.secret ?? secret))
    return { headers, body }
  }
  const post = (request: SignedRequest, mode: 'sync' | 'async' = 'async') =>
    probe.post(request, { timeout: timeouts[mode], answer: mode === 'sync' ? 'whole' : 'status' })
  return {
    call: createSampleCall({ newId, now, accountId }),
    now,
    newEventId,
    sign,
    post,
    deliver: (event, change) => post(sign(event, change), change?.delivery),
    connections: () => probe.connections(),
  }
}
