/** docs/contract/rest.md "Diagnostics": signaling of calls that are over is written down however fast calls end, and what is lost is told once. */
import { test } from 'tap'
import { createLadderBook } from '../../actors/telephony/ladder-book.ts'
import type { AccountId, CallId, WorkerId } from '../../model/ids.ts'
import type { MessageLadder } from '../../model/message-ladder.ts'
import type { Sql } from '../../store/sql.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { until } from '../scenes/in-time.ts'
import { insertCall } from '../scenes/seeded-api.ts'
import { createTenant } from '../scenes/tenant.ts'

const ladder: MessageLadder = {
  entries: [
    { at: 1, direction: 'in', protocol: 'udp', local: '127.0.0.1:5060', remote: '127.0.0.1:5070', text: 'INVITE' },
  ],
  leftOut: 0,
}

async function callsOf(sql: Sql, count: number): Promise<CallId[]> {
  const { accountId, workerId } = await createTenant(sql)
  const one = () => insertCall(sql, accountId as AccountId, workerId as WorkerId)
  return Promise.all(Array.from({ length: count }, one))
}

const written = async (sql: Sql): Promise<number> => (await sql`select distinct call_id from call_messages`).count

test('calls that end faster than once a second are written down at once, fifty in a statement', async (t) => {
  const { sql } = await openTestDatabase(t)
  const [log, clock] = [createQuietLog(), createHandClock()]
  const book = createLadderBook({ sql, clock, log })
  const calls = await callsOf(sql, 120)
  for (const callId of calls) book.add(callId, ladder)
  // The clock stands: only the rest of twenty waits for more.
  await until(async () => (await written(sql)) === 100)
  await until(() => clock.pending() === 1)
  clock.advance(1_000)
  await until(async () => (await written(sql)) === 120)
  await book.close()
  t.same(log.lines, [])
})

test('what more than five hundred calls waited to have written is lost, and told once', async (t) => {
  const { sql } = await openTestDatabase(t)
  const [log, clock] = [createQuietLog(), createHandClock()]
  const book = createLadderBook({ sql, clock, log })
  const [callId] = await callsOf(sql, 1)
  for (let call = 0; call < 560; call++) book.add(callId as CallId, ladder)
  await book.close()
  t.match(log.lines, [{ level: 'warn', message: /too many wait/, fields: { calls: 60 } }])
  t.equal(log.lines.length, 1)
  t.equal(await written(sql), 1)
})
