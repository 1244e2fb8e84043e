/**
 * Owns the thread in which documents are read, so that no file that a stranger sent holds up sound: it may take so much time and memory, and is ended
 * when it takes more. Started when there is something to read, let go when there is nothing for a while.
 */
import { Worker } from 'node:worker_threads'
import type { Cancel, Clock } from '../../model/clock.ts'
import type { DocumentFailure } from '../../model/document.ts'
import type { Vector } from '../../model/knowledge.ts'
import type { PassageText } from '../../store/passages.ts'
import type { Source } from './read-document.ts'
import { Unreadable } from './unreadable.ts'

export type ReadingRequest =
  | { readonly type: 'read'; readonly source: Source; readonly title: string; readonly isEmbedded: boolean }
  | { readonly type: 'next' }
export type ReadingReply =
  /** `text` of a file. */
  | { readonly type: 'read'; readonly text: string | null }
  | { readonly type: 'unreadable'; readonly reason: DocumentFailure; readonly details: string }
  /** None: there are no more. */
  | { readonly type: 'passages'; readonly passages: readonly PassageText[]; readonly vectors: readonly Vector[] | null }

export type Reader = {
  /** The text of a file; null for what is a text already. Throws Unreadable. One document at a time. The bytes are the reader's from now on. */
  read(source: Source, title: string, isEmbedded: boolean): Promise<string | null>
  /** The next passages of what was read last; none at the end. `vectors` where they were asked for. */
  next(): Promise<Extract<ReadingReply, { type: 'passages' }>>
  /** Idempotent. */
  close(): Promise<void>
}

/** Ms for one document, and for one piece of it. */
const readWithin = 60_000
/** Ms without work. */
const idleFor = 60_000
const heap = { maxOldGenerationSizeMb: 384, maxYoungGenerationSizeMb: 32 }
/** Bytes beside the heap, where inflated streams lie. */
const maxExternal = 512 * 1024 * 1024
/** Ms between two looks at them. */
const lookEvery = 250

type Asked = { resolve(reply: ReadingReply): void; reject(error: Error): void }

export function createReader({
  clock,
  within = readWithin,
}: {
  readonly clock: Clock
  readonly within?: number
}): Reader {
  let worker: Worker | null = null
  /** Which one has read the document whose passages are asked for. */
  let holder: Worker | null = null
  let asked: Asked | null = null
  let ending: Promise<unknown> = Promise.resolve()
  let [cancelIdle, cancelLook]: [Cancel, Cancel] = [() => {}, () => {}]

  function end(error: Error): void {
    cancelIdle()
    cancelLook()
    const [old, waiting] = [worker, asked]
    worker = null
    asked = null
    if (old) ending = Promise.all([ending, old.terminate()])
    waiting?.reject(error)
  }
  function open(): Worker {
    const opened = new Worker(new URL('./reading-thread.ts', import.meta.url), {
      resourceLimits: heap,
      execArgv: [],
      env: {},
      name: 'reading',
      stdout: true,
      stderr: true,
    })
    opened.on('message', (reply: ReadingReply) => {
      if (worker !== opened) return
      const waiting = asked
      asked = null
      waiting?.resolve(reply)
    })
    // Out of memory, above all. What is wrong with the file the thread tells by itself.
    opened.on('error', (error) => worker === opened && end(new Unreadable('too_complex', error)))
    opened.on('exit', () => worker === opened && end(new Unreadable('too_complex')))
    opened.stdout.resume()
    opened.stderr.resume()
    return opened
  }
  function watch(until: number): void {
    cancelLook = clock.after(lookEvery, () => {
      if (clock.now() >= until) return end(new Unreadable('too_complex'))
      void worker?.getHeapStatistics().then(
        ({ external_memory: external }) => external > maxExternal && end(new Unreadable('too_complex')),
        () => undefined,
      )
      watch(until)
    })
  }
  async function ask(request: ReadingRequest, transfer: ArrayBuffer[] = []): Promise<ReadingReply> {
    cancelIdle()
    worker ??= open()
    const { promise, resolve, reject } = Promise.withResolvers<ReadingReply>()
    asked = { resolve, reject }
    worker.ref()
    watch(clock.now() + within)
    worker.postMessage(request, transfer)
    try {
      return await promise
    } finally {
      cancelLook()
      worker?.unref()
      cancelIdle = clock.after(idleFor, () => end(new Error('nothing is read')))
    }
  }
  return {
    async read(source, title, isEmbedded) {
      const transfer = source.kind === 'file' ? [source.bytes.buffer] : []
      const reply = await ask({ type: 'read', source, title, isEmbedded }, transfer)
      holder = worker
      if (reply.type === 'unreadable') throw new Unreadable(reply.reason, reply.details)
      return reply.type === 'read' ? reply.text : null
    },
    async next() {
      const reply = worker !== null && worker === holder ? await ask({ type: 'next' }) : null
      if (reply?.type !== 'passages') throw new Error('the reading thread was lost')
      return reply
    },
    async close() {
      end(new Error('the service is stopping'))
      await ending
    },
  }
}
