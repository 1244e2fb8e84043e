/**
 * Owns how what a call used is read, whatever state it is in, and what its extraction adds after its end. docs/usage.md
 */
import type { AccountId, CallId } from '../model/ids.ts'
import { durationOf } from '../model/phone-call.ts'
import { pricedUsageOf, type PricedUsage, type PriceTable } from '../model/price-table.ts'
import { addEngines, noUsage, type CallUsage, type EngineUsage } from '../model/usage.ts'
import { answerColumns, type DatedCall } from './call-rows.ts'
import type { Sql, Transaction } from './sql.ts'

/** Null: nothing was counted, or the call is of before it was. */
type Counted = { readonly usage: CallUsage | null; readonly extractionUsage: readonly EngineUsage[] | null }
export type UsedCall = DatedCall & Counted

/** Of `calls`; while a call runs, as its last step has it. */
export const usedColumns = (sql: Sql | Transaction) => sql`
  calls.created_at, coalesce(calls.usage, calls.snapshot -> 'context' -> 'usage') as usage, calls.extraction_usage`

export async function findUsedCall(sql: Sql, accountId: AccountId, callId: CallId): Promise<UsedCall | null> {
  const [row] = await sql<UsedCall[]>`
    select ${answerColumns(sql)}, ${usedColumns(sql)} from calls where account_id = ${accountId} and id = ${callId}`
  return row ?? null
}

/** Null: nothing was counted. */
export function pricedUseOf(call: UsedCall, prices: PriceTable | null): PricedUsage | null {
  const { usage, extractionUsage, transport } = call
  if (usage === null && extractionUsage === null) return null
  const carrierSeconds = transport === 'sip_trunk' ? durationOf(call) : null
  const { engines, ...talk } = usage ?? noUsage
  const whole = { ...talk, engines: [...engines, ...(extractionUsage ?? [])] }
  return pricedUsageOf(whole, { ...call, carrierSeconds }, prices)
}

/** Added to what is there. A call that was deleted meanwhile has none. */
export async function addExtractionUsage(sql: Sql, callId: CallId, used: readonly EngineUsage[]): Promise<void> {
  if (used.length === 0) return
  await sql.begin(async (tx) => {
    const [row] = await tx<Pick<Counted, 'extractionUsage'>[]>`
      select extraction_usage from calls where id = ${callId} for no key update`
    if (!row) return
    const sum = addEngines(row.extractionUsage ?? [], used)
    await tx`update calls set extraction_usage = ${tx.json(sum as never)} where id = ${callId}`
  })
}
