/** Owns how each fault is done to the processes of a cluster, and how it is mended. What cannot be done on this machine says so. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Cluster, ServiceProcess } from '../cluster/open-cluster.ts'
import type { PostgresServer } from '../cluster/postgres-server.ts'
import type { FaultName, PlannedRound } from './plan.ts'
import { fairWeather, type UdpShaper } from './udp-shaper.ts'

const run = promisify(execFile)

/** What a process that was told to end has until SIGKILL comes, ms: drains are longer than any round. */
const longestDrain = 240_000

export type Blow = {
  /** What was struck, for people. */
  readonly whom: string
  /** Processes of the service that are to end by it. */
  readonly ended: readonly ServiceProcess[]
  /** Resolves when what was broken works again. */
  mend(): Promise<void>
}

/** The file that tells a process by how much its clock is off. */
export const stepFileOf = (folder: string): string => path.join(folder, 'clock-step')
/** The file that tells a process how long its disk takes, ms. */
export const delayFileOf = (folder: string): string => path.join(folder, 'disk-delay')
/** Of each write and each flush. */
const slowDiskMs = 500

/** Resolves when it is done. */
export async function strike(cluster: Cluster, shaper: UdpShaper, round: PlannedRound): Promise<Blow> {
  const { postgres } = cluster
  const chosen = <One>(of: readonly One[]): One => {
    const one = of[Math.floor(round.whom * of.length)]
    if (one === undefined) throw new Error(`nobody can be struck by ${round.fault}`)
    return one
  }
  const owner = () => chosen(cluster.processes.filter(({ roles }) => roles.includes('actors')))
  const edge = () => chosen(cluster.processes.filter(({ roles }) => roles.includes('sip') || roles.includes('gateway')))
  const blows: Record<FaultName, () => Promise<Blow> | Blow> = {
    none: () => blowOn('nobody', async () => undefined),
    'actor-kill': () => kill(owner()),
    'actor-freeze': () => freeze(owner()),
    'actor-term': () => term(owner()),
    'edge-kill': () => kill(edge()),
    'edge-freeze': () => freeze(edge()),
    'edge-term': () => term(edge()),
    'postgres-stop': async () => {
      await postgres.stop()
      return blowOn('postgres', () => postgres.start())
    },
    'postgres-kill': async () => {
      await postgres.kill()
      return blowOn('postgres', () => postgres.start())
    },
    'postgres-freeze': () => frozen('postgres', postgres.freeze()),
    'postgres-slow': () => slow(postgres),
    'nats-stop': () => withoutNats(cluster, 'stop'),
    'nats-kill': () => withoutNats(cluster, 'kill'),
    'nats-freeze': () => {
      const goOn = cluster.nats.map((server) => server.freeze())
      return frozen('nats', () => goOn.forEach((one) => one()))
    },
    'net-loss': () => weather(shaper, 'one packet of five lost', { loss: 0.2, delay: 0, jitter: 0 }),
    'net-delay': () => weather(shaper, '150 to 250 ms later', { loss: 0, delay: 150, jitter: 100 }),
    'disk-full': () => fullDisk(owner()),
    'disk-slow': () => slowDisk(owner()),
    'clock-ahead': () => stepClock(owner(), 600_000),
    'clock-back': () => stepClock(owner(), -600_000),
  }
  return blows[round.fault]()
}

const blowOn = (whom: string, mend: Blow['mend'], ended: readonly ServiceProcess[] = []): Blow => ({
  whom,
  ended,
  mend,
})

async function kill(process: ServiceProcess): Promise<Blow> {
  process.child()?.signal('SIGKILL')
  await process.child()?.ended
  return blowOn(process.name, () => process.start(), [process])
}

function freeze(process: ServiceProcess): Blow {
  process.child()?.signal('SIGSTOP')
  return frozen(process.name, () => process.child()?.signal('SIGCONT'))
}

const frozen = (whom: string, goOn: () => void): Blow => blowOn(whom, async () => goOn())

/** It ends when its calls have; its successor starts in its place then. */
function term(process: ServiceProcess): Blow {
  const ending = process.child()?.end(longestDrain) ?? Promise.resolve('')
  const mend = async (): Promise<void> => {
    await ending
    await process.start()
  }
  return blowOn(process.name, mend, [process])
}

/** It stands still for three quarters of the time: each query takes up to a third of a second longer. */
function slow(postgres: PostgresServer): Blow {
  let isOver = false
  const jerking = (async () => {
    while (!isOver) {
      const goOn = postgres.freeze()
      await pause(300)
      goOn()
      await pause(100)
    }
  })()
  const mend = async (): Promise<void> => {
    isOver = true
    await jerking
  }
  return blowOn('postgres', mend)
}

async function withoutNats({ nats }: Cluster, how: 'stop' | 'kill'): Promise<Blow> {
  await Promise.all(nats.map((server) => server[how]()))
  return blowOn('nats', async () => void (await Promise.all(nats.map((server) => server.start()))))
}

function weather(shaper: UdpShaper, whom: string, next: Parameters<UdpShaper['turn']>[0]): Blow {
  shaper.turn(next)
  return blowOn(whom, async () => shaper.turn(fairWeather))
}

/** No file of the process can grow any more: it is told EFBIG where a full disk says ENOSPC. What is on the disk of the database is not touched. */
async function fullDisk(process: ServiceProcess): Promise<Blow> {
  const limit = (bytes: string) => run('prlimit', ['--pid', String(process.child()?.pid), `--fsize=${bytes}:unlimited`])
  await limit('0')
  return blowOn(process.name, async () => void (await limit('unlimited')))
}

/** Its journal and its recordings; not the disk of the database. */
async function slowDisk(process: ServiceProcess): Promise<Blow> {
  const takes = (ms: number) => writeFile(delayFileOf(process.folder), String(ms))
  await takes(slowDiskMs)
  return blowOn(process.name, () => takes(0))
}

async function stepClock(process: ServiceProcess, ms: number): Promise<Blow> {
  const step = async (by: number): Promise<void> => {
    await writeFile(stepFileOf(process.folder), String(by))
    process.child()?.signal('SIGUSR2')
  }
  await step(ms)
  return blowOn(`${process.name} by ${ms / 60_000} min`, () => step(0))
}
