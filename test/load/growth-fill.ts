/**
 * Owns the database of `npm run bench growth`: one account with so many calls that are over, half as many deliveries that wait and as many that are
 * done, a fifth as many persons, and a few calls that run. Filled by the server itself, so that a million rows take minutes.
 */
import type { AccountId, CallId, NewId, SubscriptionId, WorkerId } from '../../model/ids.ts'
import { createAccount } from '../../store/accounts.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { createWorker } from '../../store/workers.ts'

export type Grown = {
  readonly accountId: AccountId
  readonly workerId: WorkerId
  /** Where deliveries wait; every lane has followers behind its head. */
  readonly waiting: SubscriptionId
  /** All of whose deliveries are done. */
  readonly finished: SubscriptionId
  /** Of one delivery at a time. */
  readonly quiet: SubscriptionId
  readonly running: readonly CallId[]
  readonly calls: number
}

/** Ids in the order of their numbers, as those of version 7 are in the order of time. */
const idOf = (kind: string, number = 'n'): string =>
  `'0190${kind}' || lpad(to_hex(${number}), 2, '0') || '-0000-7000-8000-' || lpad(to_hex(${number}), 12, '0')`
const callIdOf = (number: string): string => `lpad(to_hex(${number}), 8, '0') || '-0000-7000-8000-00000000ca11'`
export const waitingPerLane = 5
export const callsOfPerson = 5_000

/** The account with its calls alone. */
export async function fillCallsOf(sql: Sql, calls: number, newId: NewId): Promise<AccountId> {
  const { accountId, workerId } = await createGrown(sql, newId)
  await fillCalls(sql, { accountId, workerId, calls })
  await fillWords(sql, accountId)
  await fillRunning(sql, { accountId, workerId, newId })
  await sql.unsafe('vacuum analyze')
  return accountId
}

async function createGrown(sql: Sql, newId: NewId) {
  const now = Date.now()
  const account = await createAccount(sql, { name: 'grown', slug: 'grown', config: {}, newId, now })
  const accountId = account.id
  const worker = await createWorker(sql, { accountId, name: 'Ada', language: 'en', isActive: true, newId, now })
  return { accountId, workerId: worker.id as WorkerId, now }
}

export async function fillGrown(sql: Sql, box: SecretBox, calls: number, newId: NewId): Promise<Grown> {
  const { accountId, workerId, now } = await createGrown(sql, newId)
  const subscribe = async (path: string): Promise<SubscriptionId> => {
    const request = { eventType: 'call.ended', url: `https://example.com/${path}` } as const
    return (await createSubscription(sql, box, { accountId, request, newId, now })).id as SubscriptionId
  }
  const [waiting, finished, quiet] = [await subscribe('waiting'), await subscribe('finished'), await subscribe('quiet')]
  await fillCalls(sql, { accountId, workerId, calls })
  await fillDeliveries(sql, { accountId, waiting, finished, calls })
  await fillPersons(sql, accountId, Math.floor(calls / 5))
  await fillWords(sql, accountId)
  const running = await fillRunning(sql, { accountId, workerId, newId })
  await sql.unsafe('vacuum analyze')
  return { accountId, workerId, waiting, finished, quiet, running, calls }
}

type Places = { readonly accountId: AccountId; readonly workerId: WorkerId; readonly calls: number }

/** Of the last 100 days; a fifth on one trunk, 5,000 of one person. */
async function fillCalls(sql: Sql, { accountId, workerId, calls }: Places): Promise<void> {
  await sql`insert into trunks (id, account_id, name, direction) values ('trunk', ${accountId}, 'T', 'both')`
  await sql`
    insert into persons (id, account_id, type, first_name, last_name) values ('person', ${accountId}, 'lead', 'Eva', 'Many')`
  await sql.unsafe(
    `insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, outcome, snapshot, finished, created_at,
      started_at, ended_at, from_number, to_number, person_id, trunk_id)
    select ${callIdOf('n')}, $1, $2, 's' || n, case n % 2 when 0 then 'inbound' else 'outbound' end, 'sip_trunk', 'completed', 'completed',
      jsonb_build_object('words', repeat('x', 200)), true, t, t, t + interval '1 minute', '+49170' || n, '+49171' || n % 1000,
      case when n <= $4 then 'person' end, case when n % 5 = 0 then 'trunk' end
    from generate_series(1, $3::int) n, lateral (select now() - interval '100 days' * (1 - n / $3::float8) as t) at`,
    [accountId, workerId, calls, callsOfPerson],
  )
  await sql.unsafe(
    `insert into call_events (call_id, seq, account_id, epoch, at, event, effects, ignored)
    select ${callIdOf('n')}, s, $1, 1, now(), jsonb_build_object('text', repeat('e', 300)), '[]', false
    from generate_series(1, $2::int) n, generate_series(1, 4) s`,
    [accountId, calls],
  )
}

/** Every call has one word, and each a hundredth, a thousandth and its own; twenty words in all. */
async function fillWords(sql: Sql, accountId: AccountId): Promise<void> {
  await sql`
    insert into call_words (call_id, account_id, created_at, words)
    select id, account_id, created_at, array['common', 'hundredth' || n % 100, 'thousandth' || n % 1000, 'own' || n]
      || array(select 'filler' || (n * 31 + word * 7) % 5000 from generate_series(1, 16) word)
    from (select id, account_id, created_at, row_number() over (order by id) as n from calls where account_id = ${accountId}) numbered`
}

/** The oldest calls have what is done, the newest what waits: in each lane a head and what stands behind it, all due. */
async function fillDeliveries(
  sql: Sql,
  { accountId, waiting, finished, calls }: Pick<Places, 'accountId' | 'calls'> & Pick<Grown, 'waiting' | 'finished'>,
): Promise<void> {
  const body = JSON.stringify({ type: 'call.ended', data: { text: 'x'.repeat(500) } })
  await sql.unsafe(
    `insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, event_at, status, run_at, created_at)
    select ${idOf('d')}, $1, $2, ${callIdOf('n')}, 'call.ended', $4, t, 'delivered', t, t
    from generate_series(1, $3::int) n, lateral (select now() - interval '100 days' * (1 - n / $3::float8) as t) at`,
    [accountId, finished, calls, body],
  )
  const lanes = Math.floor(calls / 2 / waitingPerLane)
  await sql.unsafe(
    `insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, event_at, run_at)
    select ${idOf('e', `n * ${waitingPerLane} + s`)}, $1, $2, ${callIdOf('n')}, case s when ${waitingPerLane - 1} then 'call.ended' else 'call.transcript' end, $4, t, t
    from generate_series(1, $3::int) n, generate_series(0, ${waitingPerLane - 1}) s,
      lateral (select now() - interval '2 minutes' * (1 - n / $3::float8) as t) at
    order by n, s`,
    [accountId, waiting, lanes, body],
  )
}

async function fillPersons(sql: Sql, accountId: AccountId, count: number): Promise<void> {
  await sql.unsafe(
    `insert into persons (id, account_id, type, first_name, last_name, email, phone_number, tags)
    select ${idOf('f')}, $1, 'customer', 'First' || n % 1000, 'Last' || n, 'e' || n || '@example.com', '+49172' || 1000000 + n,
      case when n % 1000 = 0 then array['rare'] when n % 2 = 0 then array['common'] else '{}' end
    from generate_series(1, $2::int) n`,
    [accountId, count],
  )
  await sql.unsafe(
    `insert into documents (id, account_id, title, file_name, content, status, tag_keys)
    select ${idOf('c')}, $1, 'D' || n, 'd.txt', 'text', 'completed', case when n % 100 = 0 then array['rare'] else '{}' end
    from generate_series(1, $2::int) n`,
    [accountId, Math.floor(count / 10)],
  )
}

async function fillRunning(
  sql: Sql,
  { accountId, workerId, newId }: Omit<Places, 'calls'> & { readonly newId: NewId },
): Promise<CallId[]> {
  const ids = Array.from({ length: 20 }, () => newId<'call'>())
  await sql`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot, started_at)
    select id, ${accountId}, ${workerId}, id, 'inbound', 'sip_trunk', 'in_progress', '{}', now() from unnest(${ids}::text[]) id`
  return ids
}
