/** Owns one nats-server of a cluster: where the program is, its start, and that it is stopped, killed or frozen. */
import { accessSync, constants } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { readEnvironment } from '../../app/config.ts'
import { startChild, type Child } from './child.ts'

const upWithin = 20_000
const lookEvery = 50
const stopWithin = 5_000

export type NatsServer = {
  readonly name: string
  readonly url: string
  /** Null before its start. */
  pid(): number | null
  /** Resolves when it takes connections. Nothing when it runs. */
  start(): Promise<void>
  /** In order. */
  stop(): Promise<void>
  /** With kill -9. */
  kill(): Promise<void>
  /** Gives what lets it go on. */
  freeze(): () => void
}

/** NATS_SERVER, else the first in PATH or where Debian has it. Throws with what to install. */
export function findNatsServer(): string {
  const { NATS_SERVER: named, PATH: folders = '' } = readEnvironment()
  const candidates = named
    ? [named]
    : [...folders.split(':'), '/usr/sbin'].map((folder) => path.join(folder, 'nats-server'))
  const found = candidates.find(isProgram)
  if (found === undefined)
    throw new Error(
      `nats-server is not here (looked at ${candidates.join(', ')}): install it, or name it by NATS_SERVER`,
    )
  return found
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

type Wish = {
  readonly name: string
  readonly program: string
  readonly args: readonly string[]
  readonly url: string
  /** Of its log file. */
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
}

/** Not started yet. */
export function createNatsServer({ name, program, args, url, folder, env }: Wish): NatsServer {
  const logFile = path.join(folder, `${name}.log`)
  let child: Child | null = null
  return {
    name,
    url,
    pid: () => child?.pid ?? null,
    async start() {
      if (child && !child.isOver()) return
      const started = await startChild({ name, program, args, env, cwd: folder, logFile })
      child = started
      const deadline = performance.now() + upWithin
      while (!started.isOver() && performance.now() < deadline) {
        if (await takesConnections(Number(new URL(url).port))) return
        await pause(lookEvery)
      }
      throw new Error(`nats-server did not come up: see ${logFile}`)
    },
    stop: async () => void (await child?.end(stopWithin)),
    async kill() {
      child?.signal('SIGKILL')
      await child?.ended
    },
    freeze() {
      const frozen = child
      frozen?.signal('SIGSTOP')
      return () => frozen?.signal('SIGCONT')
    },
  }
}

const takesConnections = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
