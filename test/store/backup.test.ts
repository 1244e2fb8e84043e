/** Backups from within: at one moment of a database that is written to, and when the database goes half-way. */
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { checkArchive } from '../../store/backup/archive.ts'
import { copyInto, rowsOf } from '../../store/backup/copy-rows.ts'
import { openSnapshot } from '../../store/backup/dump-tables.ts'
import { makeBackup, type Progress } from '../../store/backup/make-backup.ts'
import { restoreBackup } from '../../store/backup/restore-backup.ts'
import { startEmbeddedPostgres } from '../../store/embedded-postgres.ts'
import { comparable, connectTo, filesIn, homeOf, openSource, silent } from '../scenes/backup.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { answersAgain, killPostgres } from '../scenes/frozen-postgres.ts'

test('a backup has every table of the service, and nothing of what lies beside them', async (t) => {
  const { sql, file, make } = await openSource(t)
  await sql`create table somebody_elses (id text)`
  await make()
  const { manifest } = await checkArchive(file)
  const tables = await sql<{ name: string }[]>`
    select tablename::text as name from pg_tables where schemaname = 'public' order by 1`
  const others = new Set(['migrations', 'migration_indexes', 'passage_halfvecs', 'somebody_elses'])
  t.same(
    manifest.tables.map(({ name }) => name),
    tables.map(({ name }) => name).filter((name) => !others.has(name)),
  )
})

test('what is written while a backup reads is not in it, and large rows with any text are', async (t) => {
  const { sql, own, home } = await openSource(t)
  const { accountId = '', callId = '' } = own.ids
  const text = `tab\t newline\n backslash\\. \\N null? ${'ü€😀'.repeat(100_000)}`
  await sql`delete from transcript_turns`
  for (const from of Array.from({ length: 12 }).keys())
    await sql`insert into transcript_turns ${sql({ role: 'user', text, fromMs: from, toMs: 1, turnIndex: from, accountId, callId })}`
  const snapshot = await openSnapshot(connectTo(t, home.server), 0)
  await sql`delete from transcript_turns where turn_index > 0`
  await sql`delete from persons`
  const parts: { name: string; bytes: Buffer }[] = []
  for await (const part of snapshot.parts())
    parts.push({ name: part.name, bytes: Buffer.concat([...(part.body as Uint8Array[])]) })
  const turns = parts.filter(({ name }) => name.startsWith('tables/transcript_turns/'))
  t.ok(turns.length > 2, 'a large table is several parts')
  t.ok(
    turns.every(({ bytes }) => bytes.at(-1) === 0x0a),
    'of whole rows',
  )
  t.equal(snapshot.rows['transcript_turns'], 12)
  t.ok(snapshot.rows['persons']! > 0)
})

test('rows that the database refuses behind the last one are told, and so are more than a buffer of them', async (t) => {
  const sql = connectTo(t, (await openTestDatabase(t)).server)
  const many = Buffer.from(Array.from({ length: 20_000 }, (_, at) => `${at}\n`).join(''))
  await sql`create table numbers (number integer primary key)`
  await copyInto(sql, 'copy numbers from stdin', [many])
  await t.rejects(copyInto(sql, 'copy numbers from stdin', [Buffer.from('7\n')]), { code: '23505' })
  await t.rejects(copyInto(sql, 'copy numbers from stdin', [Buffer.from('seven\n')]), { code: '22P02' })
  await t.rejects(copyInto(sql, 'copy nothing from stdin', [many]), { code: '42P01' })
  let bytes = 0
  for await (const rows of rowsOf(sql, 'copy numbers to stdout')) bytes += rows.length
  t.equal(bytes, many.length)
  t.same([...(await sql`select count(*) from numbers`)], [{ count: 20_000 }], 'and the connection goes on')
})

test('a database that goes half-way ends a backup without a file, and a restore without a trace', async (t) => {
  const { sql, file, make, folder, home, target } = await openSource(t)
  let isKilled = false
  const killing = (dataDir: string) => (at: string) => {
    if (!isKilled && at === 'calls') isKilled = killPostgres(dataDir)
  }
  // More than the sockets hold, so that the end of it is asked for later.
  const turn = { role: 'user', text: 'x'.repeat(1_000_000), fromMs: 0, toMs: 1, turnIndex: 99 }
  const [call] = await sql<{ id: string; accountId: string }[]>`select id, account_id from calls limit 1`
  for (const turnIndex of [90, 91, 92, 93, 94, 95, 96, 97])
    await sql`insert into transcript_turns ${sql({ ...turn, turnIndex, callId: call!.id, accountId: call!.accountId })}`
  await t.rejects(make(killing(home.dataDir)))
  t.ok(isKilled)
  t.same(await readdir(folder), [], 'no file, and no draft')
  await answersAgain(home.server)
  await make()

  isKilled = false
  const postgres = await startEmbeddedPostgres({ dataDir: target, log: createQuietLog() })
  t.teardown(() => postgres.close())
  const archive = await checkArchive(file)
  const restoring = { file, archive, home: homeOf(target, postgres.server), replacing: null }
  await t.rejects(restoreBackup(restoring, postgres.server, killing(target)))
  t.ok(isKilled)
  t.same(
    Object.keys(await filesIn(target)).filter((name) => !name.startsWith('postgres/')),
    [],
  )
  await answersAgain(postgres.server)
  const there = connectTo(t, postgres.server)
  t.same([...(await there`select tablename from pg_tables where schemaname = 'public'`)], [])
  await restoreBackup(restoring, postgres.server, silent)
  t.same(await comparable(there), await comparable(sql), 'and it can be done again')
})

test('a recording that went to the storage while the backup was made is looked for there', async (t) => {
  const { sql, own, file, home, target } = await openSource(t)
  const folder = 'a folder'
  await writeFile(path.join(home.recordingsDir, '.folder-id'), `${folder}\n`)
  const [call] = await sql<
    { key: string }[]
  >`select recording_key as key from calls where recording_key is not null and account_id = ${own.ids['accountId'] ?? ''}`
  const key = call?.key ?? ''
  const row = { key, callId: own.ids['callId'] ?? '', folder, state: 'waiting', runAt: 0, createdAt: 0 }
  await sql`insert into recordings ${sql(row)}`
  // Meanwhile, seen from the backup: all of it happens while a table is written.
  const ship = `import { connect } from ${JSON.stringify(path.join(import.meta.dirname, '../../store/sql.ts'))}
    const sql = connect({ server: ${JSON.stringify(home.server)}, applicationName: 'test', maxConnections: 1 })
    await sql\`update recordings set state = 'shipped', in_storage = true\`
    await sql.end()`
  let isShipped = false
  const shipping: Progress = (at) => {
    if (isShipped || (at !== 'recordings' && at !== 'workers')) return
    isShipped = true
    execFileSync(process.execPath, ['--input-type=module', '-e', ship])
    rmSync(path.join(home.recordingsDir, key))
  }
  await makeBackup({ ...home, hasStorage: true }, file, Date.now(), shipping)
  t.ok(isShipped)
  const postgres = await startEmbeddedPostgres({ dataDir: target, log: createQuietLog() })
  t.teardown(() => postgres.close())
  const archive = await checkArchive(file)
  await restoreBackup(
    { file, archive, home: homeOf(target, postgres.server), replacing: null },
    postgres.server,
    silent,
  )
  const there = connectTo(t, postgres.server)
  t.same([...(await there`select state, in_storage from recordings`)], [{ state: 'waiting', inStorage: true }])
})
