/** Owns a server under load by requests, as a bench sees it: a process of its own, asked over IPC for what it costs. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import path from 'node:path'

export type ApiServerName = 'bare' | 'node' | 'uws'

export type ApiServer = {
  readonly name: ApiServerName
  readonly url: string
  /** µs so far. */
  readCpu(): Promise<number>
  /** After a collection of garbage. */
  readMemory(): Promise<ServerMemory>
  close(): Promise<void>
}

/** Bytes. */
export type ServerMemory = { readonly rss: number; readonly heapUsed: number; readonly external: number }

/** Null where uWebSockets.js does not load. */
export async function openApiServer(name: ApiServerName, dataDir: string): Promise<ApiServer | null> {
  const [program, ...before] = name === 'uws' ? await commandForUws() : [process.execPath]
  if (program === undefined) return null
  const file = path.join(import.meta.dirname, 'process-under-api-load.ts')
  const child = spawn(program, [...before, '--expose-gc', file, name, dataDir], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const { url } = await answerOf<{ url: string }>(child)
  return {
    name,
    url,
    async readCpu() {
      child.send('read')
      return (await answerOf<{ cpuMicroseconds: number }>(child)).cpuMicroseconds
    },
    async readMemory() {
      child.send('memory')
      return answerOf<ServerMemory>(child)
    },
    async close() {
      const exit = once(child, 'exit')
      child.send('close')
      await exit
    },
  }
}

/** By itself, or through the newer C library that .ci/newer-libc.sh unpacks; empty where neither is. */
async function commandForUws(): Promise<readonly string[]> {
  const loads = await import('uWebSockets.js').then(Boolean, () => false)
  if (loads) return [process.execPath]
  const folder = path.join(import.meta.dirname, '../../.data/newer-libc')
  const loaders = ['ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'].map((loader) => path.join(folder, loader))
  const loader = loaders.find((file) => existsSync(file))
  return loader === undefined ? [] : [loader, '--library-path', path.join(folder, 'lib'), process.execPath]
}

/** The next message of the child; rejects when it ends instead. */
function answerOf<Answer>(child: ChildProcess): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const answered = (message: unknown): void => resolve(message as Answer)
  const died = (): void => reject(new Error('the server under test ended'))
  child.once('message', answered).once('exit', died)
  return promise.finally(() => child.off('message', answered).off('exit', died))
}
