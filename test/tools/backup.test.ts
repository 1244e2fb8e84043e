/** `npm run admin -- backup` and `restore` as an operator has them: what comes back, and what is said and left behind when they fail. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { cp, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { ArchiveFlaw } from '../../store/backup/archive-flaw.ts'
import { checkArchive } from '../../store/backup/archive.ts'
import { makeBackup } from '../../store/backup/make-backup.ts'
import { startEmbeddedPostgres } from '../../store/embedded-postgres.ts'
import { migrate } from '../../store/migrate.ts'
import {
  comparable,
  connectTo,
  filesIn,
  homeOf,
  openHome,
  openSource,
  repacked,
  schemaOf,
  silent,
} from '../scenes/backup.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createFolder } from '../scenes/folder.ts'
import { openNetwork } from '../scenes/postgres-network.ts'
import { newId } from '../scenes/seeded-api.ts'
import { mountSmallDisk } from '../scenes/small-disk.ts'

const program = path.join(import.meta.dirname, '../../tools/admin/admin.ts')
const migrationsFolder = path.join(import.meta.dirname, '../../store/migrations')

type Ended = { readonly code: number | string | null; readonly out: string; readonly err: string }

/** As an operator runs it, outside of the repository, so that nobody's `.env` is read. */
function admin(cwd: string, env: Record<string, string>, ...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { cwd, env: { PATH: process.env['PATH'], ...env } }
    execFile(process.execPath, [program, ...args], options, (error, out, err) =>
      resolve({ code: error ? (error.code ?? null) : 0, out: out.trimEnd(), err: err.trimEnd() }),
    )
  })
}

test('a backup restores in an empty place: rows, computed columns, sequences, key and recordings', async (t) => {
  const { sql, home, folder, file, target } = await openSource(t)
  await writeFile(path.join(home.dataDir, 'app.key'), `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 })
  const before = await comparable(sql)
  const made = await admin(folder, { DATA_DIR: home.dataDir }, 'backup', file)
  t.match(made, { code: 0, err: '', out: /who has the file can read every secret/ })
  t.equal((await stat(file)).mode & 0o777, 0o600, 'for this user only')
  t.match(await admin(folder, { DATA_DIR: home.dataDir }, 'backup', file), { code: 1, err: /is there already/ })
  t.match(await admin(folder, {}, 'backup', 'check', file), { code: 0, out: /is whole: made at .*with its key$/ })

  const { code, out, err } = await admin(folder, { DATA_DIR: target }, 'restore', file)
  t.same({ code, err }, { code: 0, err: '' })
  t.match(out, new RegExp(`Restored: .* ${(await sql`select from calls`).length} calls, `))
  const restored = await openHome(t, target)
  t.same(await comparable(restored.sql), before)
  t.same(await schemaOf(restored.sql), await schemaOf(sql))
  t.match([...(await restored.sql`select action from audit_entries order by id`)].at(-1), { action: 'admin restore' })
  const recordings = await filesIn(home.recordingsDir)
  t.ok(Object.keys(recordings).length >= 4)
  t.same(await filesIn(path.join(target, 'recordings')), recordings)
  const [key, there] = [path.join(home.dataDir, 'app.key'), path.join(target, 'app.key')]
  t.equal(await readFile(there, 'utf8'), await readFile(key, 'utf8'))
  t.equal((await stat(there)).mode & 0o777, 0o600)
  t.same((await readdir(target)).toSorted(), ['app.key', 'postgres', 'recordings'], 'and nothing else')
})

test('a damaged, cut or foreign archive is refused before anything is made', async (t) => {
  const { file, make, folder, target } = await openSource(t)
  await make()
  const whole = await readFile(file)
  const bad = path.join(folder, 'bad.tar.zst')
  const flawOf = async (bytes: Uint8Array): Promise<string> => {
    await writeFile(bad, bytes)
    return checkArchive(bad).then(
      () => 'none',
      (error: unknown) => (error instanceof ArchiveFlaw ? error.message : `${String(error)}, which is no flaw`),
    )
  }
  t.equal(await flawOf(whole), 'none')
  for (const share of [0.1, 0.5, 0.9]) t.match(await flawOf(whole.subarray(0, whole.length * share)), /it was cut/)
  t.match(await flawOf(whole.subarray(0, -20)), /it was cut/)
  for (const share of [0.3, 0.6, 0.95]) {
    const altered = Buffer.from(whole)
    altered[Math.floor(whole.length * share)]! ^= 4
    t.match(await flawOf(altered), /damaged/)
  }
  t.match(await flawOf(Buffer.from('a text')), /no backup of this service/)
  t.match(await flawOf(Buffer.alloc(0)), /it was cut/)
  t.match(await flawOf(repacked(whole, (tar) => tar.replace('own worker', 'own_worker'))), /its checksum/)
  t.match(await flawOf(repacked(whole, (tar) => tar.replace('"version": 1', '"version": 2'))), /of a newer version/)
  t.match(await flawOf(repacked(whole, (tar) => tar.replace('parley backup', 'barley backup'))), /no backup/)
  t.match(await flawOf(repacked(whole, (tar) => tar.slice(0, tar.indexOf('end.json')))), /it was cut/)
  t.match(
    await flawOf(repacked(whole, (tar) => `${tar.slice(0, tar.indexOf('end.json'))}${'\0'.repeat(1024)}`)),
    /no end/,
  )

  await writeFile(bad, whole.subarray(0, whole.length / 2))
  const { code, err } = await admin(folder, { DATA_DIR: target }, 'restore', bad)
  t.equal(code, 1)
  t.match(err, /^\S+ cannot be used: it ends in the middle[^\n]*$/, 'in one sentence')
  t.notOk(existsSync(target))
  t.match(await admin(folder, { DATA_DIR: target }, 'restore', 'nowhere'), { code: 1, err: /^nowhere cannot be used/ })
})

test('what is there already is kept, unless --replace is said, and a service that runs is never replaced', async (t) => {
  const { sql, file, make, folder, home, target } = await openSource(t)
  await make()
  const running = await admin(folder, { DATA_DIR: home.dataDir }, 'restore', file, '--replace')
  t.match(running, { code: 1, err: /A process of the service runs on .* end it first/ })

  // A server of one's own, which is the other kind of database.
  await sql`create database elsewhere`
  const { server } = await openNetwork(t, home.server)
  const url = Object.assign(new URL(server.url), { pathname: '/elsewhere' }).href
  const env = { DATA_DIR: target, DATABASE_URL: url }
  const other = `${randomBytes(32).toString('hex')}\n`
  await mkdir(path.join(target, 'recordings/account'), { recursive: true })
  await writeFile(path.join(target, 'app.key'), other)
  t.match(await admin(folder, env, 'restore', file), {
    code: 1,
    err: /^Nothing was restored: .*app.key is another key/,
  })
  rmSync(path.join(target, 'app.key'))
  await writeFile(path.join(target, 'recordings/account/call.wav'), 'sound')
  t.match(await admin(folder, env, 'restore', file), { code: 1, err: /^Nothing was restored: .* has recordings/ })
  t.same(Object.keys(await filesIn(target)), ['recordings/account/call.wav'])
  rmSync(path.join(target, 'recordings/account/call.wav'))
  t.match(await admin(folder, env, 'restore', file), { code: 0 })
  const elsewhere = connectTo(t, { url })
  const restored = await comparable(elsewhere)
  t.same(restored, await comparable(sql))

  rmSync(path.join(target, 'recordings'), { recursive: true })
  t.match(await admin(folder, env, 'restore', file), { code: 1, err: /the database has tables of the service/ })
  await elsewhere`delete from persons`
  await elsewhere`insert into nodes (id, lease_until) values ('alive', now() + interval '1 minute')`
  t.match(await admin(folder, env, 'restore', file, '--replace'), { code: 1, err: /the service runs on this database/ })
  await elsewhere`update nodes set lease_until = now()`
  await mkdir(path.join(target, 'recordings/account'), { recursive: true })
  await writeFile(path.join(target, 'recordings/account/call.wav'), 'sound')
  await writeFile(path.join(target, 'app.key'), other)
  t.match(await admin(folder, env, 'restore', file, '--replace'), { code: 0, out: /is kept under the name replaced-/ })
  t.same(await comparable(elsewhere), restored)
  const names = Object.keys(await filesIn(target)).map((name) => name.replace(/replaced-[^/]+/, 'replaced'))
  t.ok(names.includes('recordings/.replaced/account/call.wav') && names.includes('app.key.replaced'), 'nothing is lost')
  t.equal(
    await readFile(path.join(target, 'app.key'), 'utf8'),
    await readFile(path.join(home.dataDir, 'app.key'), 'utf8'),
  )
})

test('with APP_SECRET the key is not in the archive, and another one is refused', async (t) => {
  const secret = 'a secret of at least thirty-two characters'
  const { file, make, folder, target } = await openSource(t, secret)
  t.equal((await make()).holdsKey, false)
  const restore = (env: Record<string, string>) => admin(folder, { DATA_DIR: target, ...env }, 'restore', file)
  t.match(await restore({}), { code: 1, err: /the archive has no key: set APP_SECRET/ })
  const wrong = await restore({ APP_SECRET: 'another secret of thirty-two characters' })
  t.match(wrong, { code: 1, err: /its secrets do not open with this APP_SECRET/ })
  t.same(await filesIn(target), {})
  t.match(await restore({ APP_SECRET: `a newer secret of thirty-two characters,${secret}` }), { code: 0 })
  t.notOk(existsSync(path.join(target, 'app.key')))
})

test('a full disk ends a backup, and a restore, in a sentence and without a trace', async (t) => {
  const { own, file, make, folder, home } = await openSource(t)
  const disk = path.join(folder, 'disk')
  if (!(await mountSmallDisk(t, disk, '500k'))) return t.comment('no small disk can be made here')
  const recording = path.join(home.recordingsDir, own.ids['accountId'] ?? '', `${newId()}.wav`)
  await writeFile(recording, randomBytes(2_000_000))
  const made = await admin(folder, { DATA_DIR: home.dataDir }, 'backup', path.join(disk, 'backup.tar.zst'))
  t.match(made, { code: 1, err: /^No backup was made: the disk is full$/ })
  t.same(await readdir(disk), [])

  await make()
  const { server } = await openNetwork(t, home.server)
  const sql = connectTo(t, home.server)
  await sql`create database elsewhere`
  const env = { DATA_DIR: disk, DATABASE_URL: Object.assign(new URL(server.url), { pathname: '/elsewhere' }).href }
  t.match(await admin(folder, env, 'restore', file), { code: 1, err: /^Nothing was restored: the disk is full$/ })
  t.same(await filesIn(disk), {})
  const elsewhere = connectTo(t, { url: env.DATABASE_URL })
  t.same([...(await elsewhere`select tablename from pg_tables where schemaname = 'public'`)], [])
})

test('an archive of an older version restores, and is brought to this one; one of a newer is refused', async (t) => {
  const folder = await createFolder(t)
  const [older, target, file] = ['older', 'target', 'backup.tar.zst'].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ]
  const former = path.join(folder, 'migrations')
  const isFormer = (source: string) => path.extname(source) === '' || path.basename(source) < '0029'
  await cp(migrationsFolder, former, { recursive: true, filter: isFormer })
  const postgres = await startEmbeddedPostgres({ dataDir: older, log: createQuietLog() })
  t.teardown(() => postgres.close())
  const sql = connectTo(t, postgres.server)
  await migrate(sql, former)
  await sql`insert into accounts (id, name, slug) values ('a', 'Acme', 'acme')`
  await sql`insert into api_keys (id, account_id, name, prefix, hash) values ('k', 'a', 'key', 'vk_', '\\x00')`
  const home = homeOf(older, postgres.server)
  await makeBackup(home, file, Date.now(), silent)
  t.match(await admin(folder, { DATA_DIR: target }, 'restore', file), { code: 0, err: '' })
  const restored = await openHome(t, target)
  t.same([...(await restored.sql`select id, scopes from api_keys`)], [{ id: 'k', scopes: ['read', 'calls', 'manage'] }])

  await sql`insert into migrations (name, sha256) values ('9999_later.sql', 'x')`
  rmSync(file)
  await makeBackup(home, file, Date.now(), silent)
  const { code, err } = await admin(folder, { DATA_DIR: path.join(folder, 'new') }, 'restore', file)
  t.equal(code, 1)
  t.match(
    err,
    /^Nothing was restored: it is of another version of the service: the migration 9999_later.sql is not known here$/,
  )
})
