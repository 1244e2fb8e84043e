/** Owns steps of calls as actors write them, at random too, and every row that is to come of them. */
import { createSecretKey, randomBytes } from 'node:crypto'
import type { Effect } from '../../actors/call/call-event.ts'
import { toCallStep } from '../../actors/call/call-step.ts'
import type { CallId } from '../../model/ids.ts'
import type { Json } from '../../model/json.ts'
import { claimCall } from '../../store/call-steps.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import type { CallStep } from '../../store/write-steps.ts'
import type { Random } from '../fake/random.ts'
import { createTenant, newId, type Tenant } from './tenant.ts'

const box = createSecretBox(createSecretKey(randomBytes(32)))
export const nodeId = newId<'node'>()
const start = Date.UTC(2026, 0, 5, 12)

export type Actor = {
  readonly callId: CallId
  readonly tenant: Tenant
  readonly epoch: number
  version: number
  turns: number
}

export async function openTenant(sql: Sql, events: readonly ('*' | 'call.transcript' | 'call.ended')[], workers = 1) {
  const tenant = await createTenant(sql, { slug: newId(), config: { transcriptEvents: 'interim' } })
  for (let worker = 0; worker < workers; worker++)
    for (const eventType of events) {
      const request = { eventType, url: 'https://example.com/hook', ...(worker > 0 && { workerId: tenant.workerId }) }
      await createSubscription(sql, box, { accountId: tenant.accountId, request, newId, now: start })
    }
  return tenant
}

/** Calls that this node has, under ids that the test gives. */
export async function openCalls(
  sql: Sql,
  ids: readonly string[],
  tenantOf: (index: number) => Tenant,
): Promise<Actor[]> {
  await sql`insert into nodes (id, lease_until) values (${nodeId}, 'infinity') on conflict do nothing`
  const rows = ids.map((id, index) => ({
    id,
    ...tenantOf(index),
    sessionId: 's',
    direction: 'inbound',
    transport: 'sip_trunk',
    progress: 'ringing',
    snapshot: sql.json({}),
    metadata: sql.json({ order: index, b: [1, { long: 'x' }] }),
    createdAt: start,
  }))
  await sql`insert into calls ${sql(rows)}`
  return Promise.all(
    rows.map(async (row, index) => {
      const claim = (await claimCall(sql, row.id as CallId, nodeId))!
      return { callId: row.id as CallId, tenant: tenantOf(index), epoch: claim.epoch, version: claim.version, turns: 0 }
    }),
  )
}

export function stepOf(
  actor: Actor,
  effects: readonly Effect[],
  over: { finished?: boolean; dormant?: boolean } = {},
): CallStep {
  const { callId, epoch, version, tenant } = actor
  const at = start + version * 1_000
  return toCallStep({
    tenure: { callId, accountId: tenant.accountId, nodeId, epoch, version },
    next: { snapshot: { version: version + 1 }, dormant: false, finished: false, ...over },
    logged: { event: { type: 'noted', key: 'step', value: version }, effects: effects as Json, ignored: false, at },
  })
}

const turn = (text: string, from = 0, to = 900) =>
  ({ role: 'user', text, from, to, confidence: 0.5, source: 'embedded', latency: null }) as const
export const says = (actor: Actor, text: string): Effect => ({
  type: 'store_turn',
  index: actor.turns++,
  turn: turn(text),
})

/** What a call may do in a step, at random. */
export function randomEffects(random: Random, actor: Actor): Effect[] {
  const kinds: readonly (() => Effect)[] = [
    () => ({
      type: 'announce_status',
      status: random.pick(['ringing', 'in_progress'] as const),
      providerStatus: random.pick([null, '180']),
    }),
    () => ({
      type: 'store_turn',
      index: actor.turns++,
      turn: turn(`said ${random.below(1_000)} ü\n"`, random.below(5_000), 5_000 + random.below(5_000)),
    }),
    () => ({ type: 'show_turn', index: actor.turns, turn: turn('say') }),
    () => ({
      type: 'store_warning',
      warning: { type: random.pick(['RECORDING_INCOMPLETE', 'EXTRACTION_FAILED'] as const), message: 'Because.' },
    }),
    () => ({ type: 'store_recording_state', state: random.pick(['on', 'paused', 'off'] as const) }),
    () => ({ type: 'store_disclosure', playedMs: random.below(3_000), completed: random.below(2) === 1 }),
    () => ({
      type: 'store_worker_request',
      config: random.pick([null, { transcriptEvents: 'final' } as const]),
      locale: random.pick([null, 'de']),
      instructions: random.pick([null, 'Be kind.']),
      tools: random.pick([null, [{ name: 'look_up' }]]),
      metadata: random.pick([null, { from: 'hook' }]),
    }),
    () => ({
      type: 'store_outcome',
      outcome: random.pick([{ status: 'completed' }, { status: 'failed', reason: 'internal_error' }] as const),
      answeredAt: random.pick([null, start + 500]),
      endedAt: start + random.below(100_000),
      endedBy: random.pick(['caller', 'agent'] as const),
      endCause: random.pick([null, 'SIP 486']),
    }),
    () => ({ type: 'schedule_post_processing' }),
    () => ({
      type: 'store_analysis',
      recordedMs: random.pick([null, 6_000]),
      dimensions: { mood: random.pick(['good', 'bad']) },
      nextAction: random.pick([null, { key: 'call_back', name: 'Call back', data: { when: 'soon' } }]),
      summary: random.pick([null, 'They spoke.']),
      warnings: random.pick([[], [{ type: 'EXTRACTION_INCOMPLETE', message: 'A part.' } as const]]),
    }),
    () => ({ type: 'fail_post_processing' }),
    () => ({ type: 'dial' }),
  ]
  const effects = Array.from({ length: random.below(4) }, () => random.pick(kinds)())
  return random.below(10) === 0 ? [...effects, { type: 'announce_ended' }] : effects
}

/** Every row that steps write; what they are named by is told as their order. */
export async function rowsOf(sql: Sql) {
  const calls = await sql`select * from calls order by id`
  const events = await sql`select * from call_events order by call_id, seq`
  const turns = await sql`select *, null as created_at from transcript_turns order by call_id, turn_index`
  const deliveries = await sql`
    select call_id, subscription_id, account_id, event_type, body, event_at, status, run_at, created_at,
      rank() over (partition by call_id, subscription_id order by seq) as place,
      rank() over (partition by call_id, subscription_id order by id) as place_by_id
    from deliveries order by call_id, subscription_id, seq`
  const jobs = await sql`select call_id, account_id, kind, run_at, attempts from jobs order by call_id, kind`
  return { calls: [...calls], events: [...events], turns: [...turns], deliveries: [...deliveries], jobs: [...jobs] }
}
