/** Owns how a call's row is born: with the first entry of its log and the deliveries of its first status, in one statement, however many are born together. */
import { toIso } from '../model/clock.ts'
import type { CallEvent } from '../model/events.ts'
import type { NewId, SubscriptionId } from '../model/ids.ts'
import type { Json } from '../model/json.ts'
import type { CallBirthRow } from './call-rows.ts'
import type { LoggedStep } from './call-steps.ts'
import { columnOf, type Transaction } from './sql.ts'

export type Birth = {
  readonly call: CallBirthRow
  readonly first: LoggedStep
  readonly providerStatus: string | null
  /** What is told of it, and to whom: held by the transaction (holdMatching). */
  readonly told: { readonly event: CallEvent; readonly takers: readonly SubscriptionId[] }
  readonly now: number
  readonly newId: NewId
}

/** Of calls of one kind: what is told of one is told of all. Deliveries are written in the order of the births. */
export async function insertBirths(tx: Transaction, births: readonly Birth[]): Promise<void> {
  const [first] = births
  if (!first) return
  const rows = births.map(toRow)
  const columns = tx.unsafe(Object.keys(rows[0] ?? {}).join(', '))
  const logs = births.map(({ call: { id, accountId }, first: { event, effects, ignored, at } }) => {
    return { callId: id, accountId, at: toIso(at), event, effects, ignored }
  })
  const told = births.flatMap(({ call: { id, accountId }, told: { event, takers }, now, newId }) => {
    if (takers.length === 0) return []
    const { type, data } = event
    const body = JSON.stringify({ type, data })
    const of = { callId: id, accountId, type, body, at: toIso(now) }
    return takers.map((subscriptionId) => ({ ...of, id: newId<'delivery'>(), subscriptionId }))
  })
  await tx`
    with born as (
      insert into calls (${columns}) select ${columns} from jsonb_populate_recordset(null::calls, ${tx.json(rows as never)})
    ), logged as (
      insert into call_events (call_id, account_id, epoch, seq, at, event, effects, ignored)
      select "callId", "accountId", 0, 0, at, event, effects, ignored
      from jsonb_to_recordset(${tx.json(logs as never)}) as l("callId" text, "accountId" text, at timestamptz, event jsonb, effects jsonb,
        ignored boolean)
    )
    insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, event_at, run_at, created_at)
    select id, "accountId", "subscriptionId", "callId", type, body, at, least(at, clock_timestamp()), at
    from rows from (json_to_recordset(${JSON.stringify(told)}::text::json) as (id text, "accountId" text, "subscriptionId" text,
      "callId" text, type text, body text, at timestamptz)) with ordinality as t(id, "accountId", "subscriptionId", "callId", type, body, at, place)
    order by place`
}

/** By columns; what a birth does not name has its default. */
function toRow({ call, providerStatus }: Birth): Readonly<Record<string, Json>> {
  const { scheduledAt, createdAt } = call
  const named = {
    ...call,
    providerStatus,
    scheduledAt: scheduledAt === null ? null : toIso(scheduledAt),
    createdAt: toIso(createdAt),
  }
  const given = Object.entries(named).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given.map(([field, value]) => [columnOf(field), value as Json]))
}
