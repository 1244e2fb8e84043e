/** Owns the caller's own receiver of webhooks: every event of the account, verified, and the tools that a scenario brings along. */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { openWebhookReceiver, type ReceivedDelivery } from '../callers/webhook-receiver.ts'
import type { Deployment } from './deployment.ts'
import type { ScenarioTool } from './scenario.ts'

export type HeardEvent = {
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
  /** By performance.now. */
  readonly at: number
}

export type ToolUse = { readonly name: string; readonly arguments: unknown; readonly at: number }

export type Events = {
  /** Those of a call, in the order in which they came. */
  of(callId: string): readonly HeardEvent[]
  /** What was asked of tools of a call: of the scenario's and of the worker's own. */
  toolsOf(callId: string): readonly ToolUse[]
  /** As external tools of a call. */
  offer(tools: readonly ScenarioTool[]): Readonly<Record<string, unknown>>[]
  close(): Promise<void>
}

/** Older events are forgotten. */
const mostEvents = 20_000
const ToolCall = z.object({ callId: z.string(), name: z.string(), arguments: z.unknown() })

export async function openEvents(deployment: Deployment): Promise<Events> {
  const heard: HeardEvent[] = []
  const offered = new Map<string, ScenarioTool>()
  const toolSecret = `whsec_${randomBytes(32).toString('base64url')}`
  let eventSecret: string | null = null
  const receiver = await openWebhookReceiver({
    secretOf: (path) => (path.startsWith('/tools/') ? toolSecret : eventSecret),
    answer(delivery, response) {
      const tool = offered.get(delivery.path)
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(tool ? JSON.stringify({ result: tool.result }) : '{}')
      if (!tool) heard.push(eventOf(delivery))
      heard.splice(0, heard.length - mostEvents)
    },
  })
  const subscription = z.object({ id: z.string(), signingSecret: z.string() }).parse(
    await deployment
      .ask('POST', '/webhook-subscriptions', { eventType: '*', url: `${receiver.url}/events` })
      .catch(async (error: unknown) => {
        await receiver.close()
        throw error
      }),
  )
  eventSecret = subscription.signingSecret
  const of = (callId: string): HeardEvent[] => heard.filter(({ data }) => data['callId'] === callId)
  return {
    of,
    toolsOf: (callId) =>
      of(callId).flatMap(({ type, data, at }) => {
        const called = type === 'call.tool_call' ? ToolCall.safeParse(data) : null
        return called?.success ? [{ name: called.data.name, arguments: called.data.arguments, at }] : []
      }),
    offer: (tools) =>
      tools.map((tool) => {
        const path = `/tools/${offered.size}`
        offered.set(path, tool)
        const { name, description, inputSchema } = tool
        const deliveryUrl = `${receiver.url}${path}`
        return { name, description, ...(inputSchema && { inputSchema }), deliveryUrl, signingSecret: toolSecret }
      }),
    async close() {
      // A service that is gone already keeps no subscription of ours.
      await deployment.ask('DELETE', `/webhook-subscriptions/${subscription.id}`).catch(() => undefined)
      await receiver.close()
    },
  }
}

const eventOf = ({ type, data }: ReceivedDelivery): HeardEvent => ({
  type,
  data: typeof data === 'object' && data !== null ? (data as HeardEvent['data']) : {},
  at: performance.now(),
})
