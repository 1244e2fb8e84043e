/** Owns the processes of a load, as the one that started them sees them: they get their parts, tell what they saw, and end. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { Cannot } from '../cannot.ts'
import type { Batch, FromProcess, LoadJob, ToProcess } from './load-job.ts'

export type LoadProcesses = {
  /** Resolves when all have ended their calls; rejects when one has broken down. */
  run(job: Omit<LoadJob, 'part' | 'of' | 'beginsAt'>, told: (batch: Batch) => void): Promise<void>
  /** Calls are hung up, and `run` resolves. Idempotent. */
  stop(): void
  /** Whoever still runs is ended. Idempotent. */
  close(): Promise<void>
}

const program = path.join(import.meta.dirname, 'load-process.ts')
/** Until all have prepared their sound, ms. */
const beginIn = 500
const endsWithin = 10_000

/** Resolves when all of them listen. */
export async function openLoadProcesses(count: number): Promise<LoadProcesses> {
  const children = Array.from({ length: count }, () =>
    fork(program, [], { serialization: 'advanced', execArgv: ['--no-warnings', '--max-semi-space-size=16'] }),
  )
  const send = (child: ChildProcess, message: ToProcess): void => void (child.connected && child.send(message))
  await Promise.all(children.map((child) => once(child, 'message')))
  return {
    async run(job, told) {
      const beginsAt = Date.now() + beginIn
      await Promise.all(
        children.map((child, part) => {
          send(child, { kind: 'job', job: { ...job, part, of: count, beginsAt } })
          return outcomeOf(child, told)
        }),
      )
    },
    stop: () => children.forEach((child) => send(child, { kind: 'stop' })),
    async close() {
      await Promise.all(children.map(endOf))
    },
  }
}

function outcomeOf(child: ChildProcess, told: (batch: Batch) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  child.on('message', (message: FromProcess) => {
    if (message.kind === 'batch' || message.kind === 'done') told(message.batch)
    if (message.kind === 'done') resolve()
    if (message.kind === 'broken')
      reject(
        message.isExpected
          ? new Cannot(message.message)
          : new Error(`a process of the load broke down: ${message.message}`),
      )
  })
  child.once('exit', (code) => reject(new Error(`a process of the load ended with ${code}`)))
  return promise
}

async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  if (child.connected) child.disconnect()
  const late = setTimeout(() => child.kill('SIGKILL'), endsWithin)
  await exited
  clearTimeout(late)
}
