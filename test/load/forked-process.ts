/** Owns a process under load, as the bench sees it: it tells one thing when it is ready, and then answers one question at a time. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import process from 'node:process'

export type ForkedProcess<Ready> = {
  readonly ready: Ready
  /** Questions wait for each other. Rejects when the process ends instead of answering. */
  ask<Answer>(question: string): Promise<Answer>
  close(): Promise<void>
}

/** `file` lies in this folder. */
export async function forkProcess<Ready>(
  file: string,
  given: readonly string[],
  execArgv: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<ForkedProcess<Ready>> {
  const child = fork(path.join(import.meta.dirname, file), given, {
    execArgv: [...execArgv],
    env: { ...process.env, ...env },
  })
  const ready = await answerOf<Ready>(child)
  let last: Promise<unknown> = Promise.resolve()
  return {
    ready,
    ask<Answer>(question: string): Promise<Answer> {
      const next = async (): Promise<Answer> => {
        child.send(question)
        return answerOf<Answer>(child)
      }
      const answer = last.then(next)
      // Who asked is told; who asks next does not care.
      last = answer.catch(() => undefined)
      return answer
    },
    async close() {
      if (child.exitCode !== null) return
      const exit = once(child, 'exit')
      child.send('close')
      await exit
    },
  }
}

function answerOf<Answer>(child: ChildProcess): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const answered = (message: unknown): void => resolve(message as Answer)
  const died = (): void => reject(new Error('the process under load ended'))
  child.once('message', answered).once('exit', died)
  return promise.finally(() => child.off('message', answered).off('exit', died))
}
