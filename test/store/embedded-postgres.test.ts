/** The embedded database as its owner sees it: who starts it, who stops it, and what survives when somebody is killed. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  access,
  appendFile,
  chmod,
  cp,
  lstat,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  writeFile,
} from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import t from 'tap'
import type { Log } from '../../model/log.ts'
import { awaitServer } from '../../store/await-server.ts'
import { startEmbeddedPostgres } from '../../store/embedded-postgres.ts'
import { hydrateLinks } from '../../store/postgres-binaries.ts'
import { clusterPathsOf } from '../../store/postgres-cluster.ts'
import { connect, type DatabaseServer } from '../../store/sql.ts'
import { until } from '../scenes/in-time.ts'

const patience = 30_000
const log: Log = { debug() {}, info() {}, warn() {}, error() {}, with: () => log }

// Longer than a socket's path may be, so that every test here also shows that this does not matter.
const parent = await mkdtemp(path.join(tmpdir(), 'parley-embedded-'))
const dataDir = path.join(parent, 'a-long-name-of-a-folder/'.repeat(5))
const cluster = path.join(dataDir, 'postgres/cluster')
t.teardown(() => rm(parent, { recursive: true }))
t.teardown(async () => {
  const { socketFolder } = await clusterPathsOf(dataDir)
  await rm(socketFolder, { recursive: true, force: true })
})

async function start(t: { teardown(close: () => Promise<void>): unknown }) {
  const postgres = await startEmbeddedPostgres({ dataDir, log })
  t.teardown(() => postgres.close())
  return postgres
}

const socketOf = (server: DatabaseServer) => ('socket' in server ? server.socket : '')

const openSql = (server: DatabaseServer) => connect({ server, applicationName: 'parley test', maxConnections: 4 })

async function ask(server: DatabaseServer): Promise<unknown> {
  const sql = openSql(server)
  try {
    return (await sql`select 1 as one`)[0]?.['one']
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/** Every process of a Postgres works in its cluster. */
async function processesOn(folder: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const folders = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => null)))
  return pids.filter((_, index) => folders[index] === folder).map(Number)
}

const postmasterPid = async () => Number((await readFile(path.join(cluster, 'postmaster.pid'), 'utf8')).split('\n')[0])

await t.test('processes that start at the same moment share one server, made once', async (t) => {
  const all = await Promise.all([1, 2, 3].map(() => start(t)))
  for (const { server } of all) t.equal(await ask(server), 1)
  t.strictSame(new Set(all.map(({ server }) => JSON.stringify(server))).size, 1)
  t.strictSame((await readdir(path.join(dataDir, 'postgres'))).toSorted(), ['cluster', 'server.log'])
  await Promise.all(all.map((one) => one.close()))
  t.strictSame(await processesOn(cluster), [], 'the last one to close leaves no process behind')
})

await t.test('nobody but this user reaches the server, and no port is open', async (t) => {
  const postgres = await start(t)
  const sql = openSql(postgres.server)
  t.equal((await sql`show listen_addresses`)[0]?.['listenAddresses'], '')
  const socket = socketOf(postgres.server)
  t.equal((await lstat(path.dirname(socket))).mode & 0o777, 0o700)
  t.ok(Buffer.byteLength(socket) <= 103)
  const flushes = await sql`select current_setting('fsync') as fsync, current_setting('synchronous_commit') as waits,
    current_setting('commit_delay')::int > 0 and current_setting('commit_siblings') = '1' as are_shared`
  t.same(
    [...flushes],
    [{ fsync: 'on', waits: 'on', areShared: true }],
    'every commit is on the disk, at once for several',
  )
  await sql.end({ timeout: 1 })
  await Promise.all([postgres.close(), postgres.close()])
  await postgres.close()
  await t.rejects(ask(postgres.server), 'it is stopped')

  await chmod(path.dirname(socket), 0o755)
  await t.rejects(start(t), /only this user may enter/)
  await chmod(path.dirname(socket), 0o700)
})

await t.test('who joined leaves the server alone, and starts it again when its starter ends', async (t) => {
  const first = await start(t)
  const second = await start(t)
  const third = await start(t)
  const pid = await postmasterPid()
  await third.close()
  t.equal(await ask(first.server), 1)
  t.equal(await postmasterPid(), pid)
  await first.close()
  t.ok(await awaitServer({ server: second.server, timeout: patience }))
  t.not(await postmasterPid(), pid)
  await second.close()
  t.strictSame(await processesOn(cluster), [])
})

await t.test('kill -9 of the server loses no acknowledged row, and it comes back by itself', async (t) => {
  const postgres = await start(t)
  const sql = openSql(postgres.server)
  await sql`create table survivors (id integer primary key)`
  const acknowledged: number[] = []
  const enough = 300
  let next = 0
  const write = async () => {
    for (;;) {
      const id = next++
      await sql`insert into survivors ${sql({ id })}`
      acknowledged.push(id)
      if (acknowledged.length === enough) process.kill(await postmasterPid(), 'SIGKILL')
    }
  }
  await Promise.allSettled([write(), write(), write(), write()])
  t.ok(acknowledged.length >= enough)
  t.ok(await awaitServer({ server: postgres.server, timeout: patience }))
  const fresh = openSql(postgres.server)
  const kept = new Set((await fresh<{ id: number }[]>`select id from survivors`).map(({ id }) => id))
  t.strictSame(
    acknowledged.filter((id) => !kept.has(id)),
    [],
  )
  await Promise.all([sql.end({ timeout: 1 }), fresh.end({ timeout: 1 })])
  await postgres.close()
  t.strictSame(await processesOn(cluster), [])
})

await t.test('kill -9 of the process that started it leaves no server behind', async (t) => {
  const module = new URL('../../store/embedded-postgres.ts', import.meta.url).href
  const script = `
    import { startEmbeddedPostgres } from ${JSON.stringify(module)}
    const log = { info() {}, warn() {}, error() {} }
    await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)}, log })
    console.log('ready')
    setInterval(() => {}, 60_000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(createInterface({ input: child.stdout }), 'line')
  t.not((await processesOn(cluster)).length, 0)
  child.kill('SIGKILL')
  await once(child, 'exit')
  await until(async () => (await processesOn(cluster)).length === 0)
  await t.rejects(access(path.join(cluster, 'postmaster.pid')), 'it was shut down in order')
})

await t.test('a postmaster.pid whose number now is another program does not keep it from starting', async (t) => {
  await writeFile(path.join(cluster, 'postmaster.pid'), `${process.pid}\n${cluster}\n1\n5432\n\n\n\nready\n`)
  const postgres = await start(t)
  t.equal(await ask(postgres.server), 1)
  await postgres.close()
})

await t.test('what a client got wrong leaves no values in the log of the server', async (t) => {
  const postgres = await start(t)
  const sql = openSql(postgres.server)
  await t.rejects(sql`select ${'+15550001111'}::int`)
  await sql.end({ timeout: 1 })
  await postgres.close()
  t.notMatch(await readFile(path.join(dataDir, 'postgres/server.log'), 'utf8'), '15550001111')
})

await t.test('a start that fails says what the server logged', async (t) => {
  await appendFile(path.join(cluster, 'postgresql.conf'), '\nno_such_setting = on\n')
  await t.rejects(start(t), /did not start[\s\S]*no_such_setting/)
  t.strictSame(await processesOn(cluster), [])
})

const packageEntry = (() => {
  try {
    return createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
  } catch {
    return null
  }
})()

await t.test(
  'the binaries run although their install script did not',
  { skip: packageEntry === null && 'no package for this platform' },
  async (t) => {
    const original = path.join(path.dirname(packageEntry ?? ''), '..')
    const copy = path.join(parent, 'package')
    const copied = /native($|\/pg-symlinks|\/bin($|\/postgres)|\/lib($|\/[^/]*\.(so|dylib)))/
    await cp(original, copy, {
      recursive: true,
      filter: async (file) => (file === original || copied.test(file)) && !(await lstat(file)).isSymbolicLink(),
    })
    const version = () => promisify(execFile)(path.join(copy, 'native/bin/postgres'), ['--version'])
    await t.rejects(version(), 'without the links there are libraries missing')
    await Promise.all([hydrateLinks(copy), hydrateLinks(copy)])
    t.match((await version()).stdout, /PostgreSQL/)
    await hydrateLinks(copy)
  },
)
