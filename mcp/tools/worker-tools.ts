/** Owns the tools that read and change workers. docs/contract/mcp.md "Workers". */
import { z } from 'zod'
import type { Clock } from '../../model/clock.ts'
import { toIso } from '../../model/clock.ts'
import type { AccountId } from '../../model/ids.ts'
import type { McpScope } from '../../model/mcp-access.ts'
import { accountDefaultsOf, effectiveConfigOf, WorkerConfig } from '../../model/worker.ts'
import { WorkerChange } from '../../model/worker-resource.ts'
import { findAccount } from '../../store/accounts.ts'
import type { Sql } from '../../store/sql.ts'
import { changeWorker, findWorker, listWorkers, type Worker } from '../../store/workers.ts'
import { camelFields } from '../snake-case.ts'
import { noSuch, reachesWorker, workerGiven } from './reach.ts'
import { adminPrefix, defineMcpTool, hints, type McpTool } from './tool.ts'

export type WorkerToolDeps = {
  readonly sql: Sql
  readonly clock: Pick<Clock, 'now'>
  /** Accounts may give workers numbers that are nobody's. */
  readonly mayClaimNumbers: boolean
  /** What the tools of a worker are may have changed. */
  readonly toolsChanged: (accountId: AccountId) => void
}

const scopes: readonly McpScope[] = ['account_admin', 'admin']

export const WorkerId = z.string().describe('The id of the worker, as list_workers tells it.')

const summary = {
  worker_id: z.string(),
  name: z.string(),
  language: z.string().describe('A BCP 47 language tag.'),
  inbound_phone_number: z.string().nullable(),
  outbound_phone_number: z.string().nullable().describe('A worker without one cannot place outbound calls.'),
  is_active: z.boolean(),
}
const WorkerSummary = z.object(summary)
const WorkerDetails = z.object({
  ...summary,
  max_concurrent_calls: z.number().int().nullable().describe('Null: as many as the account may.'),
  config: WorkerConfig.describe('Call behaviour as it is set; what is not named has its default.'),
  effective_config: WorkerConfig.describe('What its calls start from: defaults of account and service filled in.'),
  created_at: z.string(),
  updated_at: z.string(),
})

/** The fields that the contract names; `null` takes away what a worker may be without. */
const settings = {
  name: WorkerChange.shape.name,
  language: WorkerChange.shape.language,
  inbound_phone_number: WorkerChange.shape.inboundPhoneNumber.describe('E.164; null takes it away.'),
  outbound_phone_number: WorkerChange.shape.outboundPhoneNumber.describe('E.164; null takes it away.'),
  is_active: WorkerChange.shape.isActive,
  config: WorkerChange.shape.config.describe(
    'Merged key by key of its top level: what is not named keeps its value, null takes a key away.',
  ),
}

export function workerTools({ sql, clock, mayClaimNumbers, toolsChanged }: WorkerToolDeps): McpTool[] {
  const numberRule = mayClaimNumbers ? 'claim' : 'only_assigned'
  const detailsOf = async (worker: Worker) => {
    const account = await findAccount(sql, worker.accountId)
    return toDetails(worker, accountDefaultsOf(account?.config ?? {}))
  }
  return [
    defineMcpTool({
      name: `${adminPrefix}list_workers`,
      title: 'List workers',
      description: 'Lists the voice agents (workers) of the account with their languages, numbers and active state.',
      annotations: hints.reads,
      scopes,
      input: z.strictObject({}),
      output: z.object({ workers: z.array(WorkerSummary) }),
      async run(_, { access }) {
        const workers = await listWorkers(sql, access.accountId)
        return { content: { workers: workers.filter(({ id }) => reachesWorker(access, id)).map(toSummary) } }
      },
    }),
    defineMcpTool({
      name: `${adminPrefix}get_worker_details`,
      title: 'Get a worker',
      description: 'The full configuration of one worker: config, language, telephone numbers, active state.',
      annotations: hints.reads,
      scopes,
      input: z.strictObject({ worker_id: WorkerId }),
      output: WorkerDetails,
      async run({ worker_id }, { access }) {
        const worker = await findWorker(sql, access.accountId, workerGiven(access, worker_id))
        if (!worker) throw noSuch('worker_id', 'worker')
        return { content: await detailsOf(worker) }
      },
    }),
    defineMcpTool({
      name: `${adminPrefix}update_worker_settings`,
      title: 'Change a worker',
      description:
        'Changes settings of a worker; only what is named changes, and config is merged key by key. Confirm with the user before you change voice settings.',
      annotations: hints.changes,
      scopes,
      input: z.strictObject({ worker_id: WorkerId, ...settings }),
      output: WorkerDetails,
      async run({ worker_id, ...named }, { access }) {
        const { accountId } = access
        const workerId = workerGiven(access, worker_id)
        const change = camelFields(named) as WorkerChange
        const worker = await changeWorker(sql, { accountId, workerId, change, numberRule, now: clock.now() })
        if (!worker) throw noSuch('worker_id', 'worker')
        toolsChanged(accountId)
        return { content: await detailsOf(worker) }
      },
    }),
  ]
}

const toSummary = ({ id, name, language, inboundPhoneNumber, outboundPhoneNumber, isActive }: Worker) => ({
  worker_id: id,
  name,
  language,
  inbound_phone_number: inboundPhoneNumber,
  outbound_phone_number: outboundPhoneNumber,
  is_active: isActive,
})

const toDetails = (worker: Worker, defaults: WorkerConfig) => ({
  ...toSummary(worker),
  max_concurrent_calls: worker.maxConcurrentCalls,
  config: worker.config,
  effective_config: effectiveConfigOf(defaults, worker.config),
  created_at: toIso(worker.createdAt),
  updated_at: toIso(worker.updatedAt),
})
