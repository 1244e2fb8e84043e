/** Bans of several processes: each has those of the others, and what an operator lifts is over in all of them. */
import t, { test } from 'tap'
import { bansSharedEvery, createSharedBans } from '../../actors/rounds/shared-bans.ts'
import { createFailureGuard } from '../../net/failure-guard.ts'
import { liftBans, listBans, writeBans } from '../../store/bans.ts'
import type { Sql } from '../../store/sql.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openTestDatabase } from '../scenes/database.ts'

const opened = openTestDatabase(t)
const scanner = { address: '192.0.2.7', isProven: true }

function createNode(sql: Sql, clock = createHandClock()) {
  const log = createQuietLog()
  const unbanned = { isExempt: () => false, banned: () => undefined }
  const guard = createFailureGuard({ now: clock.now, banAfter: 10, banFor: 600_000, ...unbanned })
  return { guard, log, clock, rounds: createSharedBans({ sql, clock, log, guard }) }
}

test('a ban of one process holds in all of them, until it is over or an operator lifts it', async (t) => {
  const { sql } = await opened
  const clock = createHandClock()
  const [one, other] = [createNode(sql, clock), createNode(sql, clock)]
  for (let count = 0; count < 20; count += 1) one.guard.hears(scanner, true)
  await one.rounds.idle()
  await other.rounds.idle()
  t.notOk(other.guard.hears(scanner, true))
  t.match(await listBans(sql, clock.now(), 10), [{ group: '192.0.2.7', isProven: true, failure: 'unknown_peer' }])

  t.equal(await liftBans(sql, '192.0.2.7'), 1)
  await other.rounds.idle()
  await one.rounds.idle()
  t.ok(one.guard.hears(scanner, true))
  t.ok(other.guard.hears(scanner, true))
  t.same(await listBans(sql, clock.now(), 10), [], 'nobody writes it again')

  for (let count = 0; count < 20; count += 1) other.guard.hears(scanner, true)
  await other.rounds.idle()
  const late = createNode(sql, clock)
  await late.rounds.idle()
  t.notOk(late.guard.hears(scanner, true), 'a process that begins later has it too')
  clock.advance(600_000)
  await late.rounds.idle()
  t.ok(late.guard.hears(scanner, true))
  const [left] = await sql<{ count: number }[]>`select count(*)::int as count from bans`
  t.equal(left?.count, 0, 'what is over is forgotten')
  await Promise.all([one, other, late].map(({ rounds }) => rounds.close()))
})

test('two processes that ban the same address keep the later end, and one lifting ends both', async (t) => {
  const { sql } = await opened
  const clock = createHandClock()
  const [one, other] = [createNode(sql, clock), createNode(sql, clock)]
  for (let count = 0; count < 20; count += 1) one.guard.hears(scanner, true)
  clock.advance(1_000)
  for (let count = 0; count < 20; count += 1) other.guard.hears(scanner, true)
  await Promise.all([one.rounds.idle(), other.rounds.idle()])
  await Promise.all([one.rounds.idle(), other.rounds.idle()])
  const [ban] = await listBans(sql, clock.now(), 10)
  t.equal(ban?.until, clock.now() + 600_000)
  t.equal(one.guard.wait(scanner), 600_000)
  await liftBans(sql, null)
  await Promise.all([one.rounds.idle(), other.rounds.idle()])
  t.same([...one.guard.bans(), ...other.guard.bans()], [])
  await Promise.all([one, other].map(({ rounds }) => rounds.close()))
})

test('every few seconds, and without the database by its own bans', async (t) => {
  const { sql } = await opened
  const { guard, log, clock, rounds } = createNode(sql)
  const ban = {
    isProven: false,
    covers: 'questions',
    failure: 'unknown_peer',
    since: clock.now(),
    until: clock.now() + 60_000,
  } as const
  await writeBans(sql, [{ ...ban, group: '192.0.2.9' }])
  clock.advance(bansSharedEvery)
  await rounds.idle()
  t.match(guard.bans(), [{ group: '192.0.2.9', isProven: false, covers: 'questions' }])
  await rounds.close()

  const { sql: gone } = { sql: (() => Promise.reject(new Error('no database'))) as unknown as Sql }
  const alone = createSharedBans({ sql: gone, clock, log, guard })
  for (let count = 0; count < 20; count += 1) guard.hears(scanner, true)
  await alone.idle()
  t.notOk(guard.hears(scanner, true))
  t.match(log.lines.at(-1), { level: 'error', message: 'a round of work failed' })
  await alone.close()
})
