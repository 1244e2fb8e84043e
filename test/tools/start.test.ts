/** `npm start` as an operator has it: what it says, and that nothing of it is left, however it ends. */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import t, { test } from 'tap'
import { isAlive } from '../../store/postgres-cluster.ts'
import { createFolder } from '../scenes/folder.ts'
import { processesIn } from '../scenes/frozen-postgres.ts'
import { until } from '../scenes/in-time.ts'
import { quick, refusalOf, startNode, startProgram } from '../scenes/start-program.ts'

const root = path.join(import.meta.dirname, '../..')

/** A data folder with its database, made once. */
const folder = await createFolder(t)
const dataDir = path.join(folder, 'data')

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
    t.match(second.out(), `is run in ${dataDir} by another process; this one joins it`)
    t.match(second.out(), stage('demo', 'is there already'))
    t.notMatch(second.out(), /shown this once/)
    const [, port = ''] = /127\.0\.0\.1:(\d+)\/\?token/.exec(first.out()) ?? []
    const third = await refusalOf(t, folder, { PORT: port, PUBLIC_ULR: 'https://call.example' })
    t.equal(third.code, 1)
    t.match(
      third.err,
      new RegExp(
        `PORT.*taken; end what listens there, or set PORT.*Another Parley runs there already, at http://127.0.0.1:${port}$`,
      ),
    )
    t.match(third.out, 'The setting PUBLIC_ULR is not known and has no effect: did you mean PUBLIC_URL?')
    second.child.kill('SIGINT')
    t.equal(await second.exited, 0)
    first.child.kill('SIGHUP')
    t.equal(await first.exited, 0, 'and a terminal that is closed is an end in order')
    t.equal(second.err() + first.err(), '')
    for (const one of [first, second]) t.match(one.out(), /\nParley ends its calls … .*\nParley has ended\.\n$/)
    t.same(processesIn(dataDir), [])
  },
)

test('Ctrl-C while it starts ends it with a word, and leaves no database', { timeout: 60_000 }, async (t) => {
  const started = startNode(t, { DATA_DIR: dataDir }, folder)
  await until(() => started.out().includes('Parley is starting'), started.err)
  started.child.kill('SIGINT')
  t.equal(await started.exited, 0)
  t.match(started.out(), /\nParley ends before it has started\.\n$/)
  t.equal(started.err(), '')
  await until(() => processesIn(dataDir).length === 0)
})

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
  t.same(processesIn(dataDir), [])
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
      const started = startProgram(t, [npm ?? '', 'start'], { ...quick, DATA_DIR: dataDir }, copy)
      await until(
        () => started.out().includes('Call it'),
        () => started.out() + started.err(),
      )
      const { pid } = started.child
      const pids = [...treeOf(pid ?? 0), ...processesIn(dataDir)]
      t.ok(pids.length >= 3 && pids.every(isAlive), `${way}: ${pids.length} processes`)
      end(pid ?? 0)
      await started.exited
      await until(
        () => !pids.some(isAlive),
        () => pids.filter(isAlive),
      )
      t.same(processesIn(dataDir), [], `${way}: nothing is left`)
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
      const installing = startProgram(t, [npm ?? '', 'ci', '--dry-run', '--offline', '--ignore-scripts'], {}, place)
      t.equal(await installing.exited, 0, installing.err())
      return installing.err()
    }
    t.match(await install('theirs', false), /EBADENGINE/, 'as npm does by itself')
    t.notMatch(await install('ours', true), /EBADENGINE/)
  },
)
