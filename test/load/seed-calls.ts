/** Owns the rows of the API bench: several accounts, each with a key and finished calls that have everything an answer can show. */
import { v7 as uuid } from 'uuid'
import type { NewId } from '../../model/ids.ts'
import { createAccount } from '../../store/accounts.ts'
import { createApiKey } from '../../store/api-keys.ts'
import type { Sql } from '../../store/sql.ts'
import { createWorker } from '../../store/workers.ts'
import type { Target } from './http-load.ts'

const newId = (() => uuid()) as NewId
const accounts = 8
const callsOfEach = 250

/** Neighbouring targets belong to different accounts. */
export async function seedCalls(sql: Sql): Promise<Target[]> {
  const of = await Promise.all(Array.from({ length: accounts }, (_, index) => seedAccount(sql, `bench-${index}`)))
  await sql`analyze accounts, api_keys, calls`
  return Array.from({ length: callsOfEach }, (_, index) => of.map((targets) => targets[index] as Target)).flat()
}

async function seedAccount(sql: Sql, slug: string): Promise<Target[]> {
  const now = Date.now()
  const { id: accountId } = await createAccount(sql, { name: slug, slug, newId, now })
  const { key } = await createApiKey(sql, { accountId, name: 'bench', newId, now })
  const worker = await createWorker(sql, { accountId, name: 'Ada', language: 'en', newId, now })
  const rows = Array.from({ length: callsOfEach }, () => ({
    id: newId<'call'>(),
    accountId,
    workerId: worker.id,
    sessionId: newId(),
    direction: 'outbound',
    transport: 'sip_trunk',
    progress: 'completed',
    outcome: 'completed',
    postProcessingStatus: 'completed',
    fromNumber: '+4312345670',
    toNumber: '+4312345671',
    customer: sql.json({ type: 'customer', firstName: 'Grete', lastName: 'Hermann', city: 'Wien', language: 'de' }),
    nextAction: sql.json({ key: 'book_table', name: 'Book the table', data: {} }),
    dimensions: sql.json({ wants_table: true, seating: 'inside', drink: 'tea', confirmed: true }),
    scheduledAt: now - 200_000,
    startedAt: now - 100_000,
    endedAt: now,
    snapshot: sql.json({}),
    finished: true,
  }))
  await sql`insert into calls ${sql(rows)}`
  return rows.map(({ id }) => ({ path: `/v1/accounts/${accountId}/phone-calls/${id}`, key }))
}
