/** Owns the tools that tell of the account itself, and never of its secrets. docs/contract/mcp.md "Account". */
import { z } from 'zod'
import { toIso } from '../../model/clock.ts'
import { Role } from '../../model/user.ts'
import type { Subscriptions } from '../../model/webhook.ts'
import { findAccount } from '../../store/accounts.ts'
import { listMembers } from '../../store/memberships.ts'
import type { Sql } from '../../store/sql.ts'
import { hasTrunk, listWorkerReach, type WorkerReach } from '../../store/telephony.ts'
import { listWorkers, type Worker } from '../../store/workers.ts'
import { noSuch } from './reach.ts'
import { adminPrefix, defineMcpTool, hints, type McpTool } from './tool.ts'

/** What an account can be connected to, and whether that is set up. Never with what: no address, no key. */
export const Integration = z.object({
  type: z.string(),
  category: z.enum(['telephony', 'voice', 'email', 'webhooks', 'knowledge', 'extraction', 'storage']),
  configured: z.boolean(),
  configured_by: z
    .enum(['service', 'account'])
    .describe('Who sets it up: the operator of the service, or the account.'),
})
export type Integration = z.infer<typeof Integration>

export type AccountToolDeps = {
  readonly sql: Sql
  readonly subscriptions: Pick<Subscriptions, 'list'>
  /** Those that the operator sets up. */
  readonly integrations: readonly Integration[]
}

const WebhookStatus = z.object({
  configured: z.boolean(),
  subscriptions: z.array(
    z.object({
      event_type: z.string(),
      worker_id: z.string().nullable().describe('Null: of all workers.'),
      enabled: z.boolean(),
      failing_since: z.string().nullable(),
    }),
  ),
})

const WorkerTelephony = z.object({
  worker_id: z.string(),
  name: z.string(),
  is_active: z.boolean(),
  has_outbound_number: z.boolean(),
  has_inbound_number: z.boolean(),
  telephony_provider: z.literal('sip_trunk').nullable().describe('Null: no active trunk is linked to the worker.'),
  can_dial_out: z.boolean().describe('A trunk of the worker dials out.'),
  can_take_calls: z.boolean().describe('A trunk of the worker takes calls in.'),
})

export const accountTools = ({ sql, subscriptions, integrations }: AccountToolDeps): McpTool[] => [
  defineMcpTool({
    name: `${adminPrefix}get_telephony_status`,
    title: 'Get the telephony of the workers',
    description:
      'Tells of each worker whether it has an outbound and an inbound number, and which telephony provider carries its calls.',
    annotations: hints.reads,
    scopes: ['account_admin'],
    input: z.strictObject({}),
    output: z.object({ workers: z.array(WorkerTelephony) }),
    async run(_, { access: { accountId } }) {
      const [workers, reached] = await Promise.all([listWorkers(sql, accountId), listWorkerReach(sql, accountId)])
      const reachOf = new Map(reached.map((reach) => [reach.workerId, reach]))
      return { content: { workers: workers.map((worker) => toTelephony(worker, reachOf.get(worker.id))) } }
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}list_integrations`,
    title: 'List integrations',
    description: 'Lists what the account can be connected to, and whether each is configured. Never any credentials.',
    annotations: hints.reads,
    scopes: ['account_admin'],
    input: z.strictObject({}),
    output: z.object({ integrations: z.array(Integration) }),
    async run(_, { access: { accountId } }) {
      const [trunk, hooks] = await Promise.all([hasTrunk(sql, accountId), subscriptions.list(accountId, null)])
      const ofAccount = { configured_by: 'account' as const }
      const own: Integration[] = [
        { type: 'sip_trunk', category: 'telephony', configured: trunk, ...ofAccount },
        { type: 'webhooks', category: 'webhooks', configured: hooks.some(({ enabled }) => enabled), ...ofAccount },
      ]
      return { content: { integrations: [...own, ...integrations] } }
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}get_account_info`,
    title: 'Get the account',
    description: 'Basic facts of the account, and whether its webhooks are configured. No secrets.',
    annotations: hints.reads,
    scopes: ['account_admin'],
    input: z.strictObject({}),
    output: z.object({
      account_id: z.string(),
      name: z.string(),
      slug: z.string(),
      created_at: z.string(),
      memberships: z.array(
        z.object({
          user_id: z.string(),
          name: z.string().nullable(),
          email: z.string(),
          role: Role,
          is_you: z.boolean(),
        }),
      ),
      webhooks: WebhookStatus,
    }),
    async run(_, { access: { accountId, userId } }) {
      const [account, members, hooks] = await Promise.all([
        findAccount(sql, accountId),
        listMembers(sql, accountId),
        subscriptions.list(accountId, null),
      ])
      if (!account) throw noSuch('account_id', 'account')
      const { id, name, slug, createdAt } = account
      const listed = hooks.map(({ eventType, workerId, enabled, failingSince }) => ({
        event_type: eventType,
        worker_id: workerId,
        enabled,
        failing_since: failingSince ?? null,
      }))
      const webhooks = { configured: hooks.some(({ enabled }) => enabled), subscriptions: listed }
      const memberships = members.map(({ userId: user_id, name: called, email, role }) => ({
        user_id,
        name: called,
        email,
        role,
        is_you: user_id === userId,
      }))
      return { content: { account_id: id, name, slug, created_at: toIso(createdAt), memberships, webhooks } }
    },
  }),
]

function toTelephony(worker: Worker, reach: WorkerReach | undefined): z.infer<typeof WorkerTelephony> {
  return {
    worker_id: worker.id,
    name: worker.name,
    is_active: worker.isActive,
    has_outbound_number: worker.outboundPhoneNumber !== null,
    has_inbound_number: worker.inboundPhoneNumber !== null,
    telephony_provider: reach ? 'sip_trunk' : null,
    can_dial_out: reach?.dialsOut ?? false,
    can_take_calls: reach?.takesIn ?? false,
  }
}
