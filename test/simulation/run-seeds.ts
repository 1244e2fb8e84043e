/** Owns running many seeds in a few processes: each takes the next seed when it is done with one. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import type { SeedAnswer } from './seed-process.ts'

const program = path.join(import.meta.dirname, 'seed-process.ts')

/** Answers in the order in which they come. `processes`: at a time. */
export async function runSeeds(
  seeds: readonly number[],
  processes: number,
  answered: (answer: SeedAnswer) => void,
): Promise<void> {
  const left = [...seeds]
  const work = async (): Promise<void> => {
    const child = fork(program, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    const exited = once(child, 'exit')
    const failed = exited.then(() => Promise.reject(new Error('a process that simulates worlds ended by itself')))
    failed.catch(() => undefined)
    const next = async (): Promise<SeedAnswer | null> => {
      const [answer] = (await Promise.race([once(child, 'message'), failed])) as [SeedAnswer | null]
      return answer
    }
    await next()
    for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
      child.send(seed)
      const answer = await next()
      if (answer) answered(answer)
    }
    child.disconnect()
    await exited
  }
  await Promise.all(Array.from({ length: Math.min(processes, seeds.length) }, work))
}
