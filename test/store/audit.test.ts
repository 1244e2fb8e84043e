/** docs/contract/rest.md "Audit log": what is stored, when, and what becomes of it while the database is away. */
import { test, type Test } from 'tap'
import type { AuditEntry, AuditLogQuery } from '../../model/audit.ts'
import type { AccountId, ApiKeyId, CallId } from '../../model/ids.ts'
import { createAccount } from '../../store/accounts.ts'
import { createAudit } from '../../store/audit.ts'
import { forgetAuditRows, listAuditRows } from '../../store/audit-rows.ts'
import type { Sql } from '../../store/sql.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createHands, createRecordedLog, newId, start } from '../scenes/seeded-api.ts'

const all: AuditLogQuery = { limit: 100 }

/** The same database, which can be away. */
function breakable(sql: Sql) {
  let isAway = false
  const away = () => Promise.reject(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))
  const broken = Object.assign(
    ((...args: unknown[]) => (isAway ? away() : (sql as never as (...args: unknown[]) => unknown)(...args))) as never,
    { json: sql.json },
  ) as Sql
  return { sql: broken, turnOff: (off: boolean) => void (isAway = off) }
}

async function open(t: Test) {
  const { sql } = await openTestDatabase(t)
  const { id: accountId } = await createAccount(sql, { name: 'a', slug: 'a', newId, now: start })
  const { log, lines } = createRecordedLog()
  const { clock, turn } = createHands()
  const line = breakable(sql)
  const audit = createAudit({ sql: line.sql, clock, newId, log })
  t.teardown(() => audit.close())
  const entry = (over: Partial<AuditEntry> = {}): AuditEntry => ({
    accountId,
    actor: { kind: 'api_key', keyId: newId<'api_key'>() },
    action: 'createWorker',
    arguments: {},
    result: 'success',
    ...over,
  })
  const actions = async () => (await listAuditRows(sql, accountId, all)).map(({ action }) => action)
  return { sql, accountId, audit, line, lines, turn, entry, actions }
}

test('a change is stored when note resolves, with all that was told of it', async (t) => {
  const { sql, accountId, audit, entry } = await open(t)
  const keyId = newId<'api_key'>() as ApiKeyId
  const callId = newId<'call'>() as CallId
  const told = {
    actor: { kind: 'api_key', keyId },
    callIds: [callId],
    requestId: 'r-1',
    errorCode: 'CONFLICT',
  } as const
  await audit.note(entry({ ...told, result: 'error', arguments: { workerId: accountId, name: 'Ada' } }))
  const [row] = await listAuditRows(sql, accountId, all)
  t.match(row, { accountId, at: start, actorKind: 'api_key', keyId, action: 'createWorker', result: 'error' })
  t.match(row, { errorCode: 'CONFLICT', callIds: [callId], requestId: 'r-1' })
  t.same(row?.arguments, { workerId: accountId, name: '[masked]' })
})

test('entries of every kind of actor, of no account, and of an account that is gone', async (t) => {
  const { sql, accountId, audit, entry } = await open(t)
  const userId = newId<'user'>()
  const actors = [
    { kind: 'mcp_client', clientId: 'c', userId },
    { kind: 'user', userId },
    { kind: 'operator' },
  ] as const
  for (const actor of actors) await audit.note(entry({ actor, accountId: null }))
  await audit.note(entry({ accountId: newId<'account'>() }))
  t.same(await listAuditRows(sql, accountId, all), [], 'an account does not read what is of none')
  t.match(await listAuditRows(sql, null, all), [
    { actorKind: 'operator', userId: null },
    { actorKind: 'user', userId },
    { actorKind: 'mcp_client', userId, clientId: 'c' },
  ])
  t.equal((await listAuditRows(sql, undefined, all)).length, 3)
})

test('what only reads is stored within a second, or when it is asked for', async (t) => {
  const { audit, entry, actions, turn } = await open(t)
  audit.noteSoon(entry({ action: 'first' }))
  await audit.flush()
  t.same(await actions(), ['first'])
  audit.noteSoon(entry({ action: 'second' }))
  audit.noteSoon(entry({ action: 'third' }))
  t.same(await actions(), ['first'])
  turn(1_000)
  await audit.note(entry({ action: 'fourth' }))
  t.same(await actions(), ['fourth', 'third', 'second', 'first'])
})

test('while the database is away a change waits and is stored afterwards, once', async (t) => {
  const { audit, entry, actions, line, turn, lines } = await open(t)
  line.turnOff(true)
  const noted = [audit.note(entry({ action: 'one' })), audit.note(entry({ action: 'two' }))]
  audit.noteSoon(entry({ action: 'read' }))
  for (let second = 0; second < 60; second += 1) {
    await new Promise((resolve) => setImmediate(resolve))
    turn(1_000)
  }
  line.turnOff(false)
  await new Promise((resolve) => setImmediate(resolve))
  turn(1_000)
  await Promise.all(noted)
  await audit.flush()
  t.same((await actions()).toSorted(), ['one', 'read', 'two'])
  t.ok(lines.some(({ message }) => message.includes('the database is away')))
})

test('reads beyond the room for them are dropped, counted and told; changes are not', async (t) => {
  const { audit, entry, actions, line, turn, lines } = await open(t)
  line.turnOff(true)
  for (let count = 0; count < 2_500; count += 1) audit.noteSoon(entry({ action: 'read' }))
  const noted = audit.note(entry({ action: 'change' }))
  turn(1_000)
  for (let round = 0; round < 5; round += 1) await new Promise((resolve) => setImmediate(resolve))
  line.turnOff(false)
  turn(1_000)
  await noted
  await audit.close()
  t.equal((await actions()).filter((action) => action === 'change').length, 1)
  const told = lines.filter(({ message }) => message.includes('dropped')).map(({ fields }) => fields['count'] as number)
  t.equal(
    told.reduce((sum, count) => sum + count, 0),
    500,
  )
})

test('a change that was begun has no result until its end is told, and then for good', async (t) => {
  const { sql, accountId, audit, entry } = await open(t)
  const { result: _, ...beginning } = entry({ arguments: { workerId: accountId } })
  const end = await audit.begin(beginning)
  t.match(await listAuditRows(sql, accountId, all), [{ result: null, arguments: { workerId: accountId } }])
  await end({ result: 'success', arguments: { isActive: false } })
  await end({ result: 'error', errorCode: 'CONFLICT', arguments: {} })
  t.match(await listAuditRows(sql, accountId, all), [
    { result: 'success', errorCode: null, arguments: { isActive: false } },
  ])
})

test('a change is not begun while the database is away', async (t) => {
  const { audit, entry, line, turn, actions } = await open(t)
  line.turnOff(true)
  await t.rejects(audit.begin(entry()), { code: 'ECONNREFUSED' })
  line.turnOff(false)
  const noted = audit.note(entry({ action: 'later' }))
  turn(1_000)
  await noted
  t.same(await actions(), ['later'])
})

test('closing stores what is left, and tells what it could not', async (t) => {
  const { audit, entry, actions } = await open(t)
  audit.noteSoon(entry({ action: 'read' }))
  await audit.close()
  t.same(await actions(), ['read'])
  const away = await open(t)
  away.line.turnOff(true)
  away.audit.noteSoon(away.entry())
  const noted = away.audit.note(away.entry())
  const refused = t.rejects(noted, /closed/)
  await away.audit.close()
  await refused
  t.match(away.lines.at(-1), { level: 'error', fields: { count: 2 } })
})

test('entries are forgotten by age, those of one account, up to a limit', async (t) => {
  const { sql, accountId, audit, entry, turn, actions } = await open(t)
  for (const action of ['old', 'older', 'new']) {
    await audit.note(entry({ action }))
    turn(1_000)
  }
  await audit.note(entry({ accountId: null }))
  const forgetting = { accountId, before: start + 2_000, limit: 1 }
  t.equal(await forgetAuditRows(sql, forgetting), 1)
  t.equal(await forgetAuditRows(sql, { ...forgetting, limit: 10 }), 1)
  t.same(await actions(), ['new'])
  t.equal((await listAuditRows(sql, null, all)).length, 1)
})

test('the entries of an account go with it', async (t) => {
  const { sql, accountId, audit, entry } = await open(t)
  await audit.note(entry())
  await sql`delete from accounts where id = ${accountId as AccountId}`
  t.same(await listAuditRows(sql, undefined, all), [])
})
