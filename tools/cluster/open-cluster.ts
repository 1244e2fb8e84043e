/**
 * Owns a cluster of plain processes on this machine: NATS, Postgres and processes of the service, each with a folder and a log file. It starts
 * them in their order, waits until each answers, and ends all of them.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { readEnvironment } from '../../app/config.ts'
import { startChild, type Child } from './child.ts'
import { freePorts } from './free-ports.ts'
import { findNatsServer, createNatsServer, type NatsServer } from './nats-server.ts'
import { createPostgresServer, type PostgresServer } from './postgres-server.ts'
import { natsServersOf, portsNeeded, processesOf, type Counts, type ProcessSpec } from './topology.ts'

const program = path.join(import.meta.dirname, '../start/start.ts')
const compiled = path.join(import.meta.dirname, '../../node_modules/.cache/node-compile')
const readyWithin = 90_000
const lookEvery = 100
const answerWithin = 1_000

export type ServiceProcess = ProcessSpec & {
  readonly logFile: string
  readonly url: string
  /** Null before its start. */
  child(): Child | null
  /** Resolves when it answers that it is ready. Nothing when it runs. */
  start(): Promise<void>
}

export type Cluster = {
  readonly folder: string
  readonly postgres: PostgresServer
  readonly nats: readonly NatsServer[]
  readonly processes: readonly ServiceProcess[]
  /** Bring the same database, bus and key to another program: `npm run admin`. */
  readonly settings: Readonly<Record<'DATABASE_URL' | 'NATS_URL' | 'APP_SECRET', string>>
  /** Each gets SIGTERM and so many ms. Idempotent. */
  close(graceMs: number): Promise<void>
}

export type ClusterWish = {
  /** Kept; what is in it is used again. */
  readonly folder: string
  readonly counts: Counts
  /** Of the service, on top of what the cluster says. */
  readonly settings?: (name: string) => Readonly<Record<string, string>>
  /** In front of the program: `--import …`. */
  readonly nodeArgs?: readonly string[]
  /** Told what is being waited for. */
  readonly tell?: (text: string) => void
}

/** Resolves when all of it answers; what was started is ended when it rejects. */
export async function openCluster(wish: ClusterWish): Promise<Cluster> {
  const { counts, tell = () => undefined } = wish
  const folder = path.resolve(wish.folder)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await using opening = new AsyncDisposableStack()
  const env = plainEnvironment()
  const firstPort = await freePorts(portsNeeded(counts))
  const { appSecret, password } = await secretsOf(folder)
  const natsProgram = findNatsServer()
  const nats = natsServersOf(counts.nats, firstPort + 1).map((server, index) =>
    createNatsServer({ ...server, name: `nats-${index + 1}`, program: natsProgram, folder, env }),
  )
  for (const server of nats) opening.defer(() => server.stop())
  tell('NATS …')
  await Promise.all(nats.map((server) => server.start()))
  tell('Postgres …')
  const postgres = await createPostgresServer({ folder: path.join(folder, 'database'), port: firstPort, password, env })
  opening.defer(() => postgres.stop())
  await postgres.start()
  const natsUrl = nats.map(({ url }) => url).join(',')
  const shared = { databaseUrl: postgres.url, natsUrl, appSecret, settings: wish.settings ?? (() => ({})) }
  const specs = processesOf(counts, folder, firstPort + 1 + 2 * counts.nats, shared)
  const processes = specs.map((spec) => createServiceProcess(spec, env, wish.nodeArgs ?? []))
  let graceMs = 0
  opening.defer(async () => void (await Promise.all(processes.map(async ({ child }) => child()?.end(graceMs)))))
  // The first brings the database up to date, and the others find it so.
  tell(`${processes.map(({ name }) => name).join(', ')} …`)
  await processes[0]?.start()
  await Promise.all(processes.slice(1).map((one) => one.start()))
  const parts = opening.move()
  let closing: Promise<void> | null = null
  return {
    folder,
    postgres,
    nats,
    processes,
    settings: { DATABASE_URL: postgres.url, NATS_URL: natsUrl, APP_SECRET: appSecret },
    close(ms) {
      graceMs = ms
      return (closing ??= parts.disposeAsync())
    },
  }
}

function createServiceProcess(
  spec: ProcessSpec,
  env: Readonly<Record<string, string>>,
  nodeArgs: readonly string[],
): ServiceProcess {
  const logFile = path.join(path.dirname(spec.folder), `${spec.name}.log`)
  const url = `http://127.0.0.1:${spec.port}`
  let child: Child | null = null
  async function start(): Promise<void> {
    if (child && !child.isOver()) return
    await mkdir(spec.folder, { recursive: true, mode: 0o700 })
    const started = await startChild({
      name: spec.name,
      program: process.execPath,
      args: ['--no-warnings', '--max-semi-space-size=8', ...nodeArgs, program],
      env: {
        ...env,
        NODE_COMPILE_CACHE: compiled,
        MALLOC_ARENA_MAX: '2',
        MALLOC_TRIM_THRESHOLD_: '131072',
        ...spec.env,
      },
      // Not where somebody's `.env` lies.
      cwd: spec.folder,
      logFile,
    })
    child = started
    await answering(`${url}/health`, () => !started.isOver(), `${spec.name}: see ${logFile}`)
  }
  return { ...spec, logFile, url, child: () => child, start }
}

async function answering(url: string, isPossible: () => boolean, who: string): Promise<void> {
  const deadline = performance.now() + readyWithin
  while (isPossible() && performance.now() < deadline) {
    const isOk = await fetch(url, { signal: AbortSignal.timeout(answerWithin) }).then(
      async (answer) => {
        await answer.arrayBuffer()
        return answer.ok
      },
      () => false,
    )
    if (isOk) return
    await pause(lookEvery)
  }
  throw new Error(`did not come up: ${who}`)
}

/** What a program needs of ours; keys of providers and the like are not handed on. */
function plainEnvironment(): Record<string, string> {
  const ours = readEnvironment()
  const kept = ['PATH', 'HOME', 'TMPDIR', 'LANG'].flatMap((name) =>
    ours[name] === undefined ? [] : [[name, ours[name]]],
  )
  return Object.fromEntries(kept) as Record<string, string>
}

/** The same at every start on a folder: what was sealed before is opened again. */
async function secretsOf(folder: string): Promise<{ readonly appSecret: string; readonly password: string }> {
  const file = path.join(folder, 'secret')
  const made = `${randomBytes(32).toString('base64url')} ${randomBytes(24).toString('base64url')}`
  // Whoever made it first has made it.
  await writeFile(file, made, { flag: 'wx', mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  const [appSecret = '', password = ''] = (await readFile(file, 'utf8')).split(' ')
  return { appSecret, password }
}
