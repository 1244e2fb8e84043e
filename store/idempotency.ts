/**
 * Owns the answers to requests that carried an Idempotency-Key: written with what the request made, in one transaction, so that either
 * both are there or neither. docs/contract/rest.md "Idempotency".
 */
import { idempotencyLifetime, type Once } from '../model/idempotency.ts'
import type { AccountId, CallId } from '../model/ids.ts'
import type { Json } from '../model/json.ts'
import { Problem } from '../model/problem.ts'
import { secretPlace, type SecretBox } from './secret-box.ts'
import type { Sql, Transaction } from './sql.ts'

type Request<Answer> = {
  readonly accountId: AccountId
  readonly once: Once | null
  readonly now: number
  /** The call that an answer shows. */
  readonly callOf?: (answer: Answer) => string
}

/**
 * Runs `make` in a transaction, and at most once for one key: whoever comes with the same key while it runs waits for its end, and whoever
 * comes within 24 h gets its answer (as JSON keeps it). What `make` throws leaves no trace of the key. Throws Problem
 * IDEMPOTENCY_KEY_REUSED when the key belongs to another request. `make` uses no connection but its transaction.
 */
export function answerOnce<Answer>(
  { sql, box }: { readonly sql: Sql; readonly box: SecretBox },
  { accountId, once, now, callOf }: Request<Answer>,
  make: (tx: Transaction) => Promise<Answer>,
): Promise<Answer> {
  return sql.begin(async (tx) => {
    if (once === null) return make(tx)
    if (!(await takeKey(tx, accountId, once, now))) return answerOf<Answer>(tx, box, accountId, once)
    const answer = await make(tx)
    await tx`
      update idempotency_keys set answer = ${box.seal(JSON.stringify(answer), answerPlace(accountId, once.key))},
        call_id = ${callOf?.(answer) ?? null}
      where account_id = ${accountId} and key = ${once.key}`
    return answer
  }) as Promise<Answer>
}

export const answerPlace = (accountId: string, key: string): string =>
  secretPlace('idempotency_keys.answer', accountId, key)

/** What of an answer a repeated request may still be told. */
export type RewriteAnswers = { readonly box: SecretBox; readonly rewrite: (answer: Json) => Json }

type Kept = { readonly key: string; readonly answer: string; readonly callId: string | null }

/** Of these calls; how many. The keys stay, so that no repeated request does again what was done. */
export async function rewriteAnswers(
  tx: Transaction,
  { accountId, callIds, box, rewrite }: RewriteAnswers & { accountId: AccountId; callIds: readonly CallId[] },
): Promise<number> {
  const rows = await tx<Kept[]>`
    select key, answer, call_id from idempotency_keys
    where account_id = ${accountId} and (call_id = any(${[...callIds]}::text[]) or call_id is null)
    order by key for update`
  const shown = new Set<string>(callIds)
  let rewritten = 0
  for (const row of rows) {
    const answer = openedAnswer(box, accountId, row)
    // Of before they were told apart by their call.
    if (row.callId === null && !shown.has(callShownBy(answer))) continue
    rewritten += 1
    await tx`
      update idempotency_keys set answer = ${box.seal(JSON.stringify(rewrite(answer)), answerPlace(accountId, row.key))}
      where account_id = ${accountId} and key = ${row.key}`
  }
  return rewritten
}

/** Null: it was sealed by a key that is not here any more, so that nobody can read it. */
function openedAnswer(box: SecretBox, accountId: AccountId, { key, answer }: Kept): Json {
  try {
    return JSON.parse(box.open(answer, answerPlace(accountId, key))) as Json
  } catch {
    return null
  }
}

function callShownBy(answer: Json): string {
  const { callId, id } = (answer ?? {}) as { readonly callId?: string; readonly id?: string }
  return callId ?? id ?? ''
}

/** Keys are forgotten lazily, when they are used again; the others are for this to delete, up to `limit`. Several may do this at once. */
export async function forgetIdempotencyKeys(sql: Sql, before: number, limit: number): Promise<number> {
  const { count } = await sql`
    delete from idempotency_keys where ctid = any(array(
      select ctid from idempotency_keys where created_at < ${before} limit ${limit} for update skip locked))`
  return count
}

/** False: another request has it. Waits for a transaction that is about to have it. */
async function takeKey(tx: Transaction, accountId: AccountId, once: Once, now: number): Promise<boolean> {
  const taken = await tx`
    insert into idempotency_keys (account_id, key, fingerprint, answer, created_at)
    values (${accountId}, ${once.key}, ${once.fingerprint}, '', ${now})
    on conflict (account_id, key) do update
      set fingerprint = excluded.fingerprint, answer = excluded.answer, created_at = excluded.created_at, call_id = null
      where idempotency_keys.created_at <= ${now - idempotencyLifetime}`
  return taken.count === 1
}

async function answerOf<Answer>(tx: Transaction, box: SecretBox, accountId: AccountId, once: Once): Promise<Answer> {
  const [row] = await tx<{ fingerprint: Buffer; answer: string }[]>`
    select fingerprint, answer from idempotency_keys where account_id = ${accountId} and key = ${once.key}`
  if (!row) throw new Error('an idempotency key that is taken has no row')
  if (!once.fingerprint.equals(row.fingerprint))
    throw new Problem('IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used for another request.')
  return JSON.parse(box.open(row.answer, answerPlace(accountId, once.key))) as Answer
}
