/** Owns the tools that tell of the account itself, and never of its secrets. docs/contract/mcp.md "Account". */
import { z } from 'zod'
import { toIso } from '../../model/clock.ts'
import type { Subscriptions } from '../../model/webhook.ts'
import { findAccount } from '../../store/accounts.ts'
import type { Sql } from '../../store/sql.ts'
import { noSuch } from './reach.ts'
import { adminPrefix, defineMcpTool, hints, type McpTool } from './tool.ts'

export type AccountToolDeps = {
  readonly sql: Sql
  readonly subscriptions: Pick<Subscriptions, 'list'>
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

export const accountTools = ({ sql, subscriptions }: AccountToolDeps): McpTool[] => [
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
      webhooks: WebhookStatus,
    }),
    async run(_, { access: { accountId } }) {
      const [account, hooks] = await Promise.all([findAccount(sql, accountId), subscriptions.list(accountId, null)])
      if (!account) throw noSuch('account_id', 'account')
      const { id, name, slug, createdAt } = account
      const listed = hooks.map(({ eventType, workerId, enabled, failingSince }) => ({
        event_type: eventType,
        worker_id: workerId,
        enabled,
        failing_since: failingSince ?? null,
      }))
      const webhooks = { configured: hooks.some(({ enabled }) => enabled), subscriptions: listed }
      return { content: { account_id: id, name, slug, created_at: toIso(createdAt), webhooks } }
    },
  }),
]
