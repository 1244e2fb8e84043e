/** Owns programs of the machine that are the other side of calls: whether they are there, ports for them on loopback, and their end. */
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { until } from '../scenes/in-time.ts'

/** False: leave the test out, with the reason. With CI=true a missing program is a failure, so this throws. */
export function hasProgram(file: string): boolean {
  if (existsSync(file)) return true
  if (process.env['CI'] === 'true') throw new Error(`${file} is not here; CI must provide it`)
  return false
}

/** Each process of tests has a block of ports: what one has found free, another does not take before it is bound. */
const [lowest, perBlock, blocks] = [20_000, 200, 40]
let given = 0

/** Ports in a row, the first of them even, that nobody has at this moment; programs of this process do not get the same ones twice soon. */
export async function freePorts(count: number): Promise<number> {
  for (;;) {
    const inBlock = given + count <= perBlock ? given : 0
    given = inBlock + count + (count % 2)
    const first = lowest + (process.pid % blocks) * perBlock + inBlock
    const wanted = Array.from({ length: count }, (_, index) => first + index)
    const taken = await Promise.all(wanted.map(isTaken))
    if (!taken.includes(true)) return first
  }
}

async function isTaken(port: number): Promise<boolean> {
  if (await isBound('tcp', port)) return true
  const socket = createSocket('udp4')
  try {
    socket.bind(port, '127.0.0.1')
    await once(socket, 'listening')
    return false
  } catch {
    // EADDRINUSE; whatever else it is, the port is none for us.
    return true
  } finally {
    socket.close()
  }
}

/** By the kernel's own table, so that nobody's port is touched. */
async function isBound(protocol: 'udp' | 'tcp', port: number): Promise<boolean> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  const table = await readFile(`/proc/net/${protocol}`, 'latin1')
  return table.split('\n').some((line) => line.trim().split(/\s+/)[1]?.endsWith(`:${hex}`))
}

export type PeerProgram = {
  /** Its exit code; null when a signal ended it. */
  readonly ended: Promise<number | null>
  /** All it has written, both ways out; the first 200 kB. */
  output(): string
  /** Resolves when it listens; rejects when it ends before. */
  listening(protocol: 'udp' | 'tcp', port: number): Promise<void>
  /** Idempotent; it has ended when this resolves. */
  close(): Promise<void>
}

const outputKept = 200_000

/** `isGroup`: it has processes of its own, which end with it. */
export function startProgram(
  program: string,
  given: readonly string[],
  cwd: string,
  { isGroup = false }: { readonly isGroup?: boolean } = {},
): PeerProgram {
  const child = spawn(program, given, { cwd, stdio: ['ignore', 'pipe', 'pipe'], detached: isGroup })
  const ended = once(child, 'close').then(([code]) => code as number | null)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      if (output.length < outputKept) output += chunk.toString('latin1')
    })
  let isOver = false
  void ended.then(() => (isOver = true))
  return {
    ended,
    output: () => output,
    async listening(protocol, port) {
      await until(async () => {
        if (isOver) throw new Error(`${program} ended before it listened: ${output}`)
        return isBound(protocol, port)
      })
    },
    async close() {
      if (!isGroup) child.kill('SIGKILL')
      else if (!isOver && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
      await ended
    },
  }
}
