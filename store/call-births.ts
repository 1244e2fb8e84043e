/** Owns how a call's row is born: with the first entry of its log and the deliveries of its first status, in one statement. */
import type { CallEvent } from '../model/events.ts'
import type { NewId, SubscriptionId } from '../model/ids.ts'
import type { CallBirthRow } from './call-rows.ts'
import type { LoggedStep } from './call-steps.ts'
import type { Transaction } from './sql.ts'

export type Birth = {
  readonly call: CallBirthRow
  readonly first: LoggedStep
  readonly providerStatus: string | null
  /** What is told of it, and to whom: held by the transaction (holdMatching). */
  readonly told: { readonly event: CallEvent; readonly takers: readonly SubscriptionId[] }
  readonly now: number
  readonly newId: NewId
}

export async function insertBirth(tx: Transaction, { call, first, providerStatus, told, now, newId }: Birth) {
  const row = {
    ...call,
    providerStatus,
    customer: call.customer && tx.json(call.customer as never),
    metadata: call.metadata && tx.json(call.metadata as never),
    request: tx.json(call.request as never),
    externalTools: tx.json(call.externalTools as never),
    scriptIds: [...call.scriptIds],
    snapshot: tx.json(call.snapshot as never),
    sip: call.sip ? tx.json(call.sip) : null,
  }
  const { type, data } = told.event
  const ids = told.takers.map(() => newId<'delivery'>())
  await tx`
    with born as (insert into calls ${tx(row)}), logged as (
      insert into call_events (call_id, account_id, epoch, seq, at, event, effects, ignored)
      values (${call.id}, ${call.accountId}, 0, 0, ${first.at}, ${tx.json(first.event as never)},
        ${tx.json(first.effects as never)}, ${first.ignored}))
    insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, event_at, run_at, created_at)
    select taker.id, ${call.accountId}, taker.subscription_id, ${call.id}, ${type}, ${JSON.stringify({ type, data })}, at, at, at
    from unnest(${ids}::text[], ${[...told.takers]}::text[]) with ordinality as taker (id, subscription_id, place),
      (select ${now}::timestamptz as at) now
    order by place`
}
