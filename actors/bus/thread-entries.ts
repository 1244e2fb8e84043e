/** Owns what the two ends of a thread's bus say to each other: thread-bus.ts in the thread, serve-thread-bus.ts beside the real bus. */
import { MessageChannel } from 'node:worker_threads'
import { createRingMemory, type Entry } from './entry-ring.ts'
import type { ChannelEnd } from './entry-channel.ts'

/** From the thread. `id` is that of a subscription, a request, a question or a subject; `number` a timeout in ms. */
export const said = {
  /** text: pattern; payload: name of the queue; number 1: there is one. */
  subscribe: 1,
  unsubscribe: 2,
  /** text: subject, empty where its number has been told with it before (subject-numbers.ts). */
  publish: 3,
  /** text: subject. */
  request: 4,
  /** To a message that was a request, by its number. */
  respond: 5,
  flush: 6,
  close: 7,
} as const

/** To the thread. */
export const told = {
  /** text: subject, empty where it is the pattern of the subscription. number: 0, or that of a request. */
  message: 11,
  answer: 12,
  /** text: in words. number: one of `why`. */
  failed: 13,
  flushed: 14,
  closed: 15,
} as const

/** A request failed. */
export const why = { timeout: 0, nobodyListens: 1, away: 2, awayUnsent: 3 } as const

const nothing = new Uint8Array(0)

export const entryOf = (
  kind: number,
  id: number,
  { number = 0, text = '', payload = nothing }: Partial<Omit<Entry, 'kind' | 'id'>> = {},
): Entry => ({ kind, id, number, text, payload })

/** The two ends of a new channel; `thread` may be handed to a worker, with its port in the list of what is transferred. */
export function createThreadBusEnds(): { readonly host: ChannelEnd; readonly thread: ChannelEnd } {
  const { port1, port2 } = new MessageChannel()
  const [up, down] = [createRingMemory(), createRingMemory()]
  return {
    host: { port: port1, incoming: up, outgoing: down },
    thread: { port: port2, incoming: down, outgoing: up },
  }
}
