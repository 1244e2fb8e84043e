/** What `npm start` says when it cannot begin: one line that names what is wrong and what to do, whatever stands behind it. */
import { once } from 'node:events'
import { execFile as execFileOf } from 'node:child_process'
import { createSecretKey } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chmod, chown, cp, mkdir, open, symlink, writeFile } from 'node:fs/promises'
import http from 'node:http'
import net from 'node:net'
import path from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import t, { test, type Test } from 'tap'
import { createNatsBus } from '../../actors/bus/nats-bus.ts'
import { systemClock } from '../../app/clock.ts'
import { WrongSettings } from '../../app/config/setting.ts'
import { freeEvenPort, openSocketPair } from '../../media/rtp/socket-pair.ts'
import { silentLog } from '../../model/log.ts'
import { startEmbeddedPostgres } from '../../store/embedded-postgres.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import { connect } from '../../store/sql.ts'
import { explainFailure } from '../../tools/start/explain-failure.ts'
import { natsServerPaths, startNatsServer } from '../peers/nats-server.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createFolder } from '../scenes/folder.ts'
import { processesIn } from '../scenes/frozen-postgres.ts'
import { until } from '../scenes/in-time.ts'
import { openNetwork } from '../scenes/postgres-network.ts'
import { mountSmallDisk } from '../scenes/small-disk.ts'
import { quick, refusalOf, startNode, startProgram } from '../scenes/start-program.ts'
import { createTenant } from '../scenes/tenant.ts'

const execFile = promisify(execFileOf)
const root = path.join(import.meta.dirname, '../..')

/** Where its data is, unless a test says otherwise. */
const folder = await createFolder(t)
const dataDir = path.join(folder, 'data')

/** One line that begins with the setting, says what to do, and shows neither stack nor password. */
async function isRefused(t: Test, name: string, settings: Record<string, string>, mend: RegExp): Promise<void> {
  const { code, err } = await refusalOf(t, folder, settings)
  t.equal(code, 1, name)
  t.match(err, new RegExp(`^(?:The setting )?[\\w, ]*\\b${name}\\b`), err)
  t.match(err, mend, err)
  t.notMatch(err, /\n|    at |secret/, `${name}: one line, no stack, no password`)
}

test(
  'a setting that cannot be followed is one sentence that names it, without a stack, and exit code 1',
  { timeout: 180_000 },
  async (t) => {
    const file = path.join(folder, 'file')
    await writeFile(file, '')
    const taken = net.createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    t.teardown(() => void taken.close())
    const { port } = taken.address() as net.AddressInfo
    const sound = await openSocketPair('127.0.0.1', await freeEvenPort('127.0.0.1'))
    t.teardown(() => sound.close())
    const missing = path.join(folder, 'no-uws.mjs')
    await writeFile(
      missing,
      `import { registerHooks } from 'node:module'
    registerHooks({ resolve(name, context, next) { if (name === 'uWebSockets.js') throw new Error('not made for this machine'); return next(name, context) } })`,
    )
    type Wrong = readonly [name: string, settings: Record<string, string>, mend: RegExp]
    const withItsDatabase: readonly Wrong[] = [
      ['DATA_DIR', { DATA_DIR: file }, /; set DATA_DIR to a folder/],
      ['DATA_DIR', { DATA_DIR: '/proc/nowhere/data' }, /; set DATA_DIR to a folder/],
      ['PORT', { PORT: String(port), HTTP_DRIVER: 'node' }, /; end what listens there, or set PORT to another one$/],
      ['SIP_PORT', { SIP: 'on', SIP_PORT: String(port) }, /; end .*, or set SIP_PORT to another one, or SIP=off$/],
    ]
    const onAServer: readonly Wrong[] = [
      ['WEBHOOK_ALLOW_HOSTS', { WEBHOOK_ALLOW_HOSTS: 'a b' }, /must be host names/],
      ['NATS_URL', { NATS_URL: 'nats://user:secret@127.0.0.1:1' }, /; start it, or leave NATS_URL out/],
      ['HTTP_DRIVER', { HTTP_DRIVER: 'uws', NODE_OPTIONS: `--import ${missing}` }, /, or set HTTP_DRIVER=node/],
      ['HOST', { HOST: '192.0.2.1', MEDIA_ADDRESS: '127.0.0.1' }, /; set HOST to an address of this machine/],
      ['MEDIA_ADDRESS', { MEDIA_ADDRESS: '192.0.2.1' }, /; set MEDIA_ADDRESS to an address/],
      [
        'MEDIA_PORTS',
        { MEDIA_ADDRESS: '127.0.0.1', MEDIA_PORTS: `${sound.port}-${sound.port + 1}` },
        /; end .*, or set MEDIA_PORTS to a range/,
      ],
      ['SIP_ADDRESS', { SIP: 'on', SIP_ADDRESS: '192.0.2.1' }, /; set SIP_ADDRESS to an address/],
    ]
    const network = await openNetwork(t, (await openTestDatabase(t)).server)
    const areRefused = async (all: readonly Wrong[], settings: Record<string, string> = {}) => {
      for (const [name, own, mend] of all) await isRefused(t, name, { ...settings, ...own }, mend)
    }
    await Promise.all([
      // It looks for a while.
      areRefused([
        ['DATABASE_URL', { DATABASE_URL: 'postgres://user:secret@no-such-host.invalid/parley' }, /; mend its host/],
      ]),
      areRefused(withItsDatabase),
      areRefused(onAServer, { DATABASE_URL: network.server.url, DATA_DIR: path.join(folder, 'on-a-server') }),
    ])
    t.same(processesIn(dataDir), [], 'and no database is left')
  },
)

test(
  'a database server that lets nobody in is told with what mends it, and its password is not',
  { timeout: 180_000 },
  async (t) => {
    const database = await openTestDatabase(t)
    const { sql, server } = database
    if (!('socket' in server)) return t.comment('the rules of that server are not ours to change')
    await sql.unsafe("create role locked login password 'right'; create role shut login; create role poor login")
    await sql`create database other`
    const rules = path.join(database.dataDir, 'postgres/cluster/pg_hba.conf')
    await writeFile(rules, 'local all locked scram-sha-256\nlocal all shut reject\nlocal all all trust\n')
    await sql`select pg_reload_conf()`
    const network = await openNetwork(t, server)
    const { host } = new URL(network.server.url)
    const cases: readonly (readonly [user: string, name: string, told: RegExp])[] = [
      ['locked:secret', 'postgres', /: the password is wrong; mend it there/],
      ['postgres', 'nowhere', /: there is no such database; make it \(createdb\), or name another one$/],
      ['shut', 'postgres', /: the user may not connect from here, or by TLS only; add \?sslmode=require, or let/],
      ['poor', 'other', /: the user may not do what is needed; make the user the owner of the database$/],
      ['postgres', 'postgres?sslmode=require', /: the server speaks no TLS; leave sslmode out, or switch TLS on there/],
    ]
    await Promise.all(
      cases.map(([user, name, told]) =>
        isRefused(t, 'DATABASE_URL', { DATABASE_URL: `postgres://${user}@${host}/${name}` }, told),
      ),
    )
    await sql`insert into migrations (name, sha256) values ('9999_of_tomorrow.sql', '')`
    const { accountId } = await createTenant(sql)
    const sealed = createSecretBox(createSecretKey(Buffer.alloc(32))).seal('right', 'of another key')
    await sql`insert into trunks (id, account_id, name, direction, password) values ('t', ${accountId}, 'T', 'both', ${sealed})`
    const older = startNode(t, { DATABASE_URL: `postgres://postgres@${host}/postgres`, DATA_DIR: folder }, folder)
    await until(() => older.out().includes('Parley listens'), older.err)
    t.match(
      older.out(),
      /Note: 1 stored secret of trunks and webhooks cannot be opened by the key in .*\/app\.key: bring/,
    )
    t.match(older.err(), /9999_of_tomorrow.*the database is of a newer version of the service/)
    older.child.kill('SIGINT')
    t.equal(await older.exited, 0, 'old processes start while a deployment is updated')
  },
)

test('a data folder that cannot be used is told with what mends it', { timeout: 180_000 }, async (t) => {
  const isRoot = process.getuid?.() === 0
  const foreign = path.join(folder, 'foreign')
  await mkdir(foreign)
  await (isRoot ? chown(foreign, 65_533, 65_533).then(() => chmod(foreign, 0o700)) : chmod(foreign, 0))
  await isRefused(t, 'DATA_DIR', { DATA_DIR: foreign }, /: this user may not; give it to the user that starts this/)
  await (isRoot ? chown(foreign, 0, 0) : chmod(foreign, 0o700))

  const postgres = await startEmbeddedPostgres({ dataDir, log: silentLog })
  const sql = connect({ server: postgres.server, applicationName: 'parley test', maxConnections: 1 })
  await sql`insert into migrations (name, sha256) values ('9999_of_tomorrow.sql', '')`
  await isRefused(
    t,
    'DATA_DIR',
    {},
    /: its tables are of a newer version of the service; start that version, or restore/,
  )
  await sql`delete from migrations where name like '9999%'`
  await sql.end({ timeout: 1 })
  await postgres.close()

  const version = path.join(dataDir, 'postgres/cluster/PG_VERSION')
  const ours = readFileSync(version, 'utf8')
  await writeFile(version, '15\n')
  await isRefused(t, 'DATA_DIR', {}, /: it was made by another version of Postgres; back it up with the version/)
  await writeFile(version, ours)

  if (!isRoot) return
  const refusing = path.join(folder, 'refusing')
  await mkdir(refusing)
  await writeFile(
    path.join(refusing, 'unshare'),
    '#!/bin/sh\necho unshare failed: Operation not permitted >&2\nexit 1\n',
  )
  await chmod(path.join(refusing, 'unshare'), 0o755)
  const PATH = `${refusing}:${process.env['PATH']}`
  await isRefused(
    t,
    'DATA_DIR',
    { PATH },
    /Postgres does not run as root, .*; start the service as another user, or set/,
  )
})

test(
  'a disk that is full, at once or later, or read-only is told with what mends it',
  { timeout: 60_000 },
  async (t) => {
    const disk = path.join(folder, 'disk')
    if (!(await mountSmallDisk(t, disk, '12m'))) return t.comment('no small disk can be made here')
    const isFull = (DATA_DIR: string) =>
      isRefused(t, 'DATA_DIR', { DATA_DIR }, /: the disk is full; make room there, or set DATA_DIR to a folder on/)
    await isFull(disk)

    const later = path.join(folder, 'later')
    await mountSmallDisk(t, later, '150m')
    const used = path.join(later, 'data')
    await cp(dataDir, used, { recursive: true, filter: (source) => !/\/socket$|\.pid$/.test(source) })
    await fillDisk(later)
    await isFull(used)
    await execFile('mount', ['-o', 'remount,ro', later])
    await isRefused(t, 'DATA_DIR', { DATA_DIR: used }, /: it is read-only; set DATA_DIR to a folder that this user can/)
  },
)

/** To the last byte. */
async function fillDisk(disk: string): Promise<void> {
  const file = await open(path.join(disk, 'filler'), 'w')
  const chunk = Buffer.alloc(65_536)
  try {
    for (;;) await file.write(chunk)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  } finally {
    await file.close()
  }
}

const natsServer = natsServerPaths.find((file) => existsSync(file))

test(
  'a NATS server that refuses the password, or has no TLS, is told with what mends it',
  { skip: natsServer ? false : 'no nats-server' },
  async (t) => {
    const server = await startNatsServer(natsServer ?? '', -1, ['--user', 'parley', '--pass', 'r@ght'])
    t.teardown(() => server.close())
    const urlAs = (scheme: string, password: string) => `${scheme}://parley:${password}@127.0.0.1:${server.port}`
    await isRefused(
      t,
      'NATS_URL',
      { NATS_URL: urlAs('nats', 'secret') },
      /: it refuses the user and the password; mend them in it \(nats:\/\/user:password@host/,
    )
    await isRefused(t, 'NATS_URL', { NATS_URL: urlAs('tls', 'r%40ght') }, /: the server speaks no TLS; write nats:\/\//)
    const bus = await createNatsBus({ url: urlAs('nats', 'r%40ght'), log: silentLog, clock: systemClock, name: 'test' })
    t.teardown(() => bus.close())
    const heard = Promise.withResolvers<string>()
    bus.subscribe('a.b', ({ payload }) => heard.resolve(Buffer.from(payload).toString()))
    bus.publish('a.b', Buffer.from('hello'))
    t.equal(await heard.promise, 'hello', 'the right one is let in')
  },
)

test('of a port that is taken by another Parley it is said whether that one runs or ends', async (t) => {
  let ready = 'ready'
  const other = http.createServer(({ url }, answer) =>
    answer.end(url === '/health' ? '{"status":"ok"}' : JSON.stringify({ details: ready })),
  )
  other.listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => {
    other.closeAllConnections()
    other.close()
  })
  const { port } = other.address() as net.AddressInfo
  const taken = new WrongSettings('HOST, PORT: taken', {
    cause: Object.assign(new Error('taken'), { code: 'EADDRINUSE' }),
  })
  const told = () => explainFailure(taken, { host: '127.0.0.1', port })
  t.equal(await told(), `HOST, PORT: taken. Another Parley runs there already, at http://127.0.0.1:${port}`)
  ready = 'New calls should go elsewhere (api: draining).'
  t.match(await told(), /Another Parley ends its calls there, at .*: start again when it has ended$/)
})

test('who starts too early, or with an old node, is told to run npm ci', async (t) => {
  const early = path.join(folder, 'early')
  await mkdir(early)
  for (const name of readdirSync(root).filter((each) => !each.startsWith('.') && each !== 'node_modules'))
    await symlink(path.join(root, name), path.join(early, name))
  const begin = path.join(early, 'tools/start/begin.js')
  const asIfThere = ['--preserve-symlinks', '--preserve-symlinks-main']
  const old = ['--import', 'data:text/javascript,delete globalThis.AsyncDisposableStack']
  for (const [args, told] of [
    [asIfThere, /^The package \S+ is not there: run npm ci, and then npm start\.$/],
    [old, /^Parley needs node 24, and this is node [\d.]+: run npm ci, which brings the right one along/],
  ] as const) {
    const started = startProgram(t, [process.execPath, ...args, begin], quick, folder)
    t.equal(await started.exited, 1)
    t.match(started.err().trimEnd(), told)
    t.notMatch(started.err().trimEnd(), /\n/, 'and no stack')
  }
})
