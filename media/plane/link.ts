/**
 * Owns calls between two threads: each side serves objects by a number, and the other tells and asks them things by message, in order. What is
 * asked is answered or fails once; when the other side is gone, everything that waits fails, and who serves is told.
 */
import { NoPortsLeft } from '../rtp/media-ports.ts'
import { Problem, type Issue, type ProblemType } from '../../model/problem.ts'

/** What a thread and its owner have of each other: a MessagePort, or a Worker. */
export type LinkPort = {
  postMessage(message: unknown): void
  on(event: 'message', listener: (message: unknown) => void): unknown
}

export type Methods = { readonly [name: string]: (...args: never[]) => unknown }

export type Far<Served extends Methods> = {
  tell<Name extends keyof Served & string>(name: Name, ...args: Parameters<Served[Name]>): void
  /** Rejects with what was thrown there, or with why the other side is gone. */
  ask<Name extends keyof Served & string>(
    name: Name,
    ...args: Parameters<Served[Name]>
  ): Promise<Awaited<ReturnType<Served[Name]>>>
}

export type Link = {
  /** `lost`: the other side is gone. The result serves it no more. */
  serve(id: number, methods: Methods, lost?: (reason: Error) => void): () => void
  to<Served extends Methods>(id: number): Far<Served>
  /** The other side is gone. Idempotent. */
  end(reason: Error): void
}

type Call = { readonly to: number; readonly name: string; readonly args: readonly unknown[]; readonly ask: number }
type Reply = { readonly answers: number; readonly value?: unknown; readonly failure?: Failure }
type Failure = {
  readonly name: string
  readonly message: string
  readonly problem?: { readonly type: ProblemType; readonly issues: readonly Issue[] | null }
}

/** Of a call that wants no answer. */
const toldOnly = 0

type Waiting = { readonly resolve: (value: unknown) => void; readonly reject: (error: Error) => void }

/** `failed`: something that was told threw. */
export function createLink(port: LinkPort, failed: (error: unknown) => void): Link {
  const served = new Map<number, { readonly methods: Methods; readonly lost: (reason: Error) => void }>()
  const waiting = new Map<number, Waiting>()
  let asked = 0
  let ended: Error | null = null

  async function carryOut({ to, name, args, ask }: Call): Promise<void> {
    try {
      const methods = served.get(to)?.methods
      // Who is gone here is told things that were on their way.
      if (!methods && ask === toldOnly) return
      const method = methods?.[name]
      if (!method) throw new Error(`nobody is there to ${name}`)
      const value = await method(...(args as never[]))
      if (ask !== toldOnly) port.postMessage({ answers: ask, value } satisfies Reply)
    } catch (error) {
      if (ask === toldOnly) return failed(error)
      port.postMessage({ answers: ask, failure: failureOf(error) } satisfies Reply)
    }
  }

  function settle({ answers, value, failure }: Reply): void {
    const question = waiting.get(answers)
    waiting.delete(answers)
    if (failure) question?.reject(errorOf(failure))
    else question?.resolve(value)
  }

  port.on('message', (message) => {
    if (ended) return
    if (isReply(message)) settle(message)
    else void carryOut(message as Call)
  })

  return {
    serve(id, methods, lost = () => undefined) {
      served.set(id, { methods, lost })
      const reason = ended
      if (reason) queueMicrotask(() => lost(reason))
      return () => void served.delete(id)
    },
    to: (id) => ({
      tell(name, ...args) {
        if (!ended) port.postMessage({ to: id, name, args, ask: toldOnly } satisfies Call)
      },
      ask(name, ...args) {
        if (ended) return Promise.reject(ended)
        const { promise, resolve, reject } = Promise.withResolvers<unknown>()
        asked += 1
        waiting.set(asked, { resolve, reject })
        port.postMessage({ to: id, name, args, ask: asked } satisfies Call)
        return promise as Promise<never>
      },
    }),
    end(reason) {
      if (ended) return
      ended = reason
      for (const { reject } of waiting.values()) reject(reason)
      waiting.clear()
      for (const { lost } of served.values()) lost(reason)
      served.clear()
    },
  }
}

const isReply = (message: unknown): message is Reply =>
  typeof message === 'object' && message !== null && 'answers' in message

function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) }
  const { name, message } = error
  return error instanceof Problem
    ? { name, message, problem: { type: error.type, issues: error.issues } }
    : { name, message }
}

function errorOf({ name, message, problem }: Failure): Error {
  if (problem) return new Problem(problem.type, message, problem.issues)
  if (name === 'NoPortsLeft') return new NoPortsLeft(message)
  return Object.assign(new Error(message), { name })
}
