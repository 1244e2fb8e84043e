/**
 * Owns what the service told the account: a receiver of its webhooks as a customer would write one, which keeps every event and every question for
 * a tool, call by call, and answers at once.
 */
import { randomBytes } from 'node:crypto'
import { openWebhookReceiver, type ReceivedDelivery } from '../callers/webhook-receiver.ts'
import { toolAt } from './conversation.ts'

type Fields = Readonly<Record<string, unknown>>

export type ToldEvent = { readonly id: string; readonly type: string; readonly at: number; readonly fields: Fields }
export type AskedTool = { readonly toolCallId: string; readonly turn: number; readonly at: number }

export type ToldCall = {
  /** In the order in which they came; those that came again under their id are in `again`. */
  readonly events: readonly ToldEvent[]
  readonly again: number
  readonly tools: readonly AskedTool[]
}

export type Told = {
  /** Where events go, and questions about calls. */
  readonly eventsUrl: string
  readonly questionsUrl: string
  /** What is sent there is signed with these. */
  trust(secrets: { readonly events: string; readonly questions: string }): void
  of(callId: string): ToldCall
  refused(): number
  close(): Promise<void>
}

const nothing: ToldCall = { events: [], again: 0, tools: [] }

export async function openTold(): Promise<Told> {
  const toolSecret = `whsec_${randomBytes(32).toString('base64')}`
  const secrets = new Map([['/tool', toolSecret]])
  const calls = new Map<string, ToldCall>()
  const change = (callId: string, next: (call: ToldCall) => ToldCall): void =>
    void calls.set(callId, next(calls.get(callId) ?? nothing))

  /** What stands in the answer's body. */
  function take({ path, type, eventId, data }: ReceivedDelivery): unknown {
    const fields = data as Fields
    const callId = String(fields['callId'])
    const at = performance.now()
    if (path === '/questions') return { tools: [toolAt(`${receiver.url}/tool`, toolSecret)] }
    if (path === '/tool') {
      const turn = Number((fields['arguments'] as Fields | undefined)?.['turn'])
      const asked = { toolCallId: String(fields['toolCallId']), turn, at }
      change(callId, (call) => ({ ...call, tools: [...call.tools, asked] }))
      return { result: turn }
    }
    change(callId, (call) =>
      call.events.some(({ id }) => id === eventId)
        ? { ...call, again: call.again + 1 }
        : { ...call, events: [...call.events, { id: eventId, type, at, fields }] },
    )
    return {}
  }
  const receiver = await openWebhookReceiver({
    secretOf: (path) => secrets.get(path) ?? null,
    answer: (delivery, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(take(delivery))),
  })
  return {
    eventsUrl: `${receiver.url}/events`,
    questionsUrl: `${receiver.url}/questions`,
    trust({ events, questions }) {
      secrets.set('/events', events).set('/questions', questions)
    },
    of: (callId) => calls.get(callId) ?? nothing,
    refused: () => receiver.counts().refused,
    close: () => receiver.close(),
  }
}
