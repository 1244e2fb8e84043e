/** `npm start` as an operator has it: what it says when it cannot begin, and that nothing of it is left, however it ends. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import process from 'node:process'
import t, { test, type Test } from 'tap'
import { isAlive } from '../../store/postgres-cluster.ts'
import { createFolder } from '../scenes/folder.ts'
import { postgresProcesses } from '../scenes/frozen-postgres.ts'
import { until } from '../scenes/in-time.ts'
import { soundThreads } from '../scenes/sound-threads.ts'

const root = path.join(import.meta.dirname, '../..')
const program = path.join(root, 'tools/start/start.ts')

/** Ports that are free, no call to itself. */
const quick = { PORT: '0', SIP: 'off', SELF_TEST: 'off' }

type Started = {
  readonly child: ChildProcess
  readonly out: () => string
  readonly err: () => string
  readonly exited: Promise<number | null>
}

function start(
  t: Pick<Test, 'teardown'>,
  command: readonly string[],
  settings: Record<string, string>,
  cwd: string,
): Started {
  const [name = '', ...args] = command
  // Outside of the test's own npm, and of the repository, so that nobody's `.env` is read.
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], ...soundThreads(), ...settings }
  const child = spawn(name, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const text = { out: '', err: '' }
  child.stdout.on('data', (bytes: Buffer) => void (text.out += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => void (text.err += bytes.toString()))
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  t.teardown(() => void child.kill('SIGKILL'))
  return { child, out: () => text.out, err: () => text.err, exited }
}

const startNode = (t: Pick<Test, 'teardown'>, settings: Record<string, string>, cwd: string): Started =>
  start(t, [process.execPath, program], { ...quick, ...settings }, cwd)

/** A data folder with its database, made once. */
const folder = await createFolder(t)
const dataDir = path.join(folder, 'data')

/** How it says no: its exit code, and what it wrote for the operator. */
async function refusalOf(t: Test, settings: Record<string, string>) {
  const started = startNode(t, { DATA_DIR: dataDir, LOG_LEVEL: 'silent', ...settings }, folder)
  return { code: await started.exited, err: started.err().trimEnd(), out: started.out() }
}

test(
  'a start tells its stages; a second one on the same data says that it joins, and who has its port; both end in order',
  { timeout: 180_000 },
  async (t) => {
    const first = startNode(t, { DATA_DIR: dataDir }, folder)
    await until(() => first.out().includes('Call it'), first.err)
    t.notMatch(first.out(), /joins/)
    const stage = (name: string, what: string): RegExp => new RegExp(`^ +\\d+\\.\\d s  ${name} +${what}`, 'm')
    for (const line of [stage('database', 'is made in'), stage('demo', 'an account'), stage('voices', 'embedded')])
      t.match(first.out(), line)
    t.match(first.out(), stage('browsers', 'page, signaling and API at http://127'))
    t.match(first.out(), /^ {2}Note: Only this machine can call/m)
    const second = startNode(t, { DATA_DIR: dataDir }, folder)
    await until(() => second.out().includes('Call it'), second.err)
    t.match(second.out(), `Another process runs the database in ${dataDir}; this one joins it.`)
    t.match(second.out(), stage('demo', 'is there already'))
    t.notMatch(second.out(), /shown this once/)
    const [, port = ''] = /127\.0\.0\.1:(\d+)\/\?token/.exec(first.out()) ?? []
    const third = await refusalOf(t, { PORT: port, PUBLIC_ULR: 'https://call.example' })
    t.equal(third.code, 1)
    t.match(third.err, new RegExp(`PORT.*taken.*Another Parley runs there already, at http://127.0.0.1:${port}$`))
    t.match(third.out, 'The setting PUBLIC_ULR is not known and has no effect: did you mean PUBLIC_URL?')
    second.child.kill('SIGINT')
    t.equal(await second.exited, 0)
    first.child.kill('SIGHUP')
    t.equal(await first.exited, 0, 'and a terminal that is closed is an end in order')
    t.equal(second.err() + first.err(), '')
    t.same(postgresProcesses(dataDir), [])
  },
)

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
    const missing = path.join(folder, 'no-uws.mjs')
    await writeFile(
      missing,
      `import { registerHooks } from 'node:module'
    registerHooks({ resolve(name, context, next) { if (name === 'uWebSockets.js') throw new Error('not made for this machine'); return next(name, context) } })`,
    )
    const wrong: readonly (readonly [name: string, settings: Record<string, string>])[] = [
      ['WEBHOOK_ALLOW_HOSTS', { WEBHOOK_ALLOW_HOSTS: 'a b' }],
      ['DATA_DIR', { DATA_DIR: file }],
      ['DATA_DIR', { DATA_DIR: '/proc/nowhere/data' }],
      ['NATS_URL', { NATS_URL: 'nats://user:secret@127.0.0.1:1' }],
      ['HTTP_DRIVER', { HTTP_DRIVER: 'uws', NODE_OPTIONS: `--import ${missing}` }],
      ['PORT', { PORT: String(port), HTTP_DRIVER: 'node' }],
      ['HOST', { HOST: '192.0.2.1', MEDIA_ADDRESS: '127.0.0.1' }],
      ['MEDIA_ADDRESS', { MEDIA_ADDRESS: '192.0.2.1' }],
      ['SIP_ADDRESS', { SIP: 'on', SIP_ADDRESS: '192.0.2.1' }],
    ]
    const refused = async ([name, settings]: (typeof wrong)[number]): Promise<void> => {
      const { code, err } = await refusalOf(t, settings)
      t.equal(code, 1, name)
      t.match(err, new RegExp(`^(?:The setting )?[\\w, ]*\\b${name}\\b`), err)
      t.notMatch(err, /\n|    at |secret/, `${name}: one line, no stack, no password`)
    }
    // It looks for a while, and for no database of the folder.
    const elsewhere = refused(['DATABASE_URL', { DATABASE_URL: 'postgres://user:secret@no-such-host.invalid/parley' }])
    for (const one of wrong) await refused(one)
    await elsewhere
    t.same(postgresProcesses(dataDir), [], 'and no database is left')
  },
)

test('Ctrl-C during the self-test ends it without a report and without a stack', { timeout: 180_000 }, async (t) => {
  const started = startNode(t, { DATA_DIR: dataDir, SELF_TEST: 'on' }, folder)
  // Its call talks.
  await until(
    () => globSync(path.join(dataDir, 'recordings/*/*.wav')).length > 0,
    () => started.out() + started.err(),
  )
  started.child.kill('SIGINT')
  t.equal(await started.exited, 0)
  t.notMatch(started.out(), /FAILED|passed|│/)
  t.equal(started.err(), '')
  t.same(postgresProcesses(dataDir), [])
})

/** npm and everything below it, by what /proc says. */
function treeOf(pid: number): number[] {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === pid)
    .map(Number)
  return [pid, ...children.flatMap(treeOf)]
}

function parentOf(pid: string): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return null
  }
}

const npm = (process.env['PATH'] ?? '')
  .split(':')
  .map((each) => path.join(each, 'npm'))
  .find((file) => existsSync(file))

/** `npm start` reads the `.env` of its own folder, which is the repository: a copy that leads to the same files has none. */
async function createCopy(): Promise<string> {
  const copy = path.join(folder, 'repository')
  await mkdir(copy)
  for (const name of ['package.json', '.npmrc']) await cp(path.join(root, name), path.join(copy, name))
  for (const name of readdirSync(root).filter((each) => !each.startsWith('.') && !existsSync(path.join(copy, each))))
    await symlink(path.join(root, name), path.join(copy, name))
  return copy
}

test(
  'whatever ends npm start ends the service and its database too',
  { skip: npm === undefined && 'no npm here', timeout: 240_000 },
  async (t) => {
    const copy = await createCopy()
    const ends: Readonly<Record<string, (pid: number) => unknown>> = {
      'TERM to npm': (pid) => process.kill(pid, 'SIGTERM'),
      'TERM to the group': (pid) => process.kill(-pid, 'SIGTERM'),
      'KILL of npm': (pid) => process.kill(pid, 'SIGKILL'),
    }
    for (const [way, end] of Object.entries(ends)) {
      const started = start(t, [npm ?? '', 'start'], { ...quick, DATA_DIR: dataDir }, copy)
      await until(
        () => started.out().includes('Call it'),
        () => started.out() + started.err(),
      )
      const { pid } = started.child
      const pids = [...treeOf(pid ?? 0), ...postgresProcesses(dataDir)]
      t.ok(pids.length >= 3 && pids.every(isAlive), `${way}: ${pids.length} processes`)
      end(pid ?? 0)
      await started.exited
      await until(
        () => !pids.some(isAlive),
        () => pids.filter(isAlive),
      )
      t.same(postgresProcesses(dataDir), [], `${way}: nothing is left`)
      t.notMatch(started.err(), /Error|    at /)
      if (way !== 'KILL of npm') t.match(started.out(), /ends its calls/, 'in order')
    }
  },
)

test(
  'npm ci says nothing of dependencies that want a newer node than the one that runs npm',
  { skip: npm === undefined && 'no npm here' },
  async (t) => {
    const install = async (name: string, hasOurs: boolean): Promise<string> => {
      const place = path.join(folder, name)
      await mkdir(place)
      const dependencies = { old: '1.0.0' }
      const old = { version: '1.0.0', resolved: 'file:old.tgz', integrity: 'sha512-AA==', engines: { node: '>=999' } }
      const lock = { name, lockfileVersion: 3, packages: { '': { name, dependencies }, 'node_modules/old': old } }
      await writeFile(path.join(place, 'package.json'), JSON.stringify({ name, dependencies }))
      await writeFile(path.join(place, 'package-lock.json'), JSON.stringify(lock))
      if (hasOurs) await cp(path.join(root, '.npmrc'), path.join(place, '.npmrc'))
      const installing = start(t, [npm ?? '', 'ci', '--dry-run', '--offline', '--ignore-scripts'], {}, place)
      t.equal(await installing.exited, 0, installing.err())
      return installing.err()
    }
    t.match(await install('theirs', false), /EBADENGINE/, 'as npm does by itself')
    t.notMatch(await install('ours', true), /EBADENGINE/)
  },
)
