/**
 * Owns what a worker thread's bus (thread-bus.ts) does on the real one: its subscriptions, what it publishes and asks, and the answers to what it
 * was asked. When the thread is gone, so is all of that.
 */
import { BusAway, BusNoResponders, type Bus, type BusMessage, type Subscription } from '../../model/bus.ts'
import type { Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import type { Telemetry } from '../../model/telemetry.ts'
import { isWildcard } from './bus-rules.ts'
import { createEntryChannel, type ChannelEnd } from './entry-channel.ts'
import type { Entry } from './entry-ring.ts'
import { entryOf, said, told, why } from './thread-entries.ts'

type Deps = {
  readonly bus: Bus
  readonly end: ChannelEnd
  readonly log: Log
  readonly clock: Clock
  readonly telemetry?: Telemetry
}

/** Requests that the thread has not answered: who asked has given up on the oldest long ago. */
const maxUnanswered = 4_096

/** The result ends it, as the end of the thread does. Idempotent. */
export function serveThreadBus({ bus, end, log, clock, telemetry }: Deps): { close(): void } {
  const subscriptions = new Map<number, Subscription>()
  const unanswered = new Map<number, BusMessage['respond']>()
  /** By the numbers that the thread has told. */
  const subjects: string[] = []
  let requests = 0
  const channel = createEntryChannel({
    end,
    receive: (entry) => carryOut(entry),
    clock,
    log,
    ...(telemetry && { telemetry }),
  })

  /** 0: it is none. */
  function noteRequest(message: BusMessage): number {
    if (!message.isRequest) return 0
    requests = (requests % 0xffff_ffff) + 1
    unanswered.set(requests, message.respond)
    const [oldest] = unanswered.keys()
    if (unanswered.size > maxUnanswered && oldest !== undefined) unanswered.delete(oldest)
    return requests
  }

  function subscribe({ id, text: pattern, number, payload }: Entry): void {
    const isExact = !isWildcard(pattern)
    const handler = (message: BusMessage): void => {
      const { subject, isRequest } = message
      const carried = { number: noteRequest(message), text: isExact ? '' : subject, payload: message.payload }
      channel.send(entryOf(told.message, id, carried), isRequest ? 'message' : 'ring')
    }
    const options = number === 1 ? { queue: Buffer.from(payload).toString() } : {}
    subscriptions.set(id, bus.subscribe(pattern, handler, options))
  }

  function publish({ id, text, payload }: Entry): void {
    if (text !== '') subjects[id] = text
    const subject = subjects[id]
    if (subject === undefined) throw new Error('a thread publishes on a subject that it has not told')
    bus.publish(subject, payload, true)
  }

  function request({ id, number: timeout, text: subject, payload }: Entry): void {
    bus.request(subject, payload, { timeout }).then(
      (answer) => void channel.send(entryOf(told.answer, id, { payload: answer }), 'message'),
      (error: unknown) => {
        const number = whyOf(error)
        const text = error instanceof Error ? error.message : String(error)
        channel.send(entryOf(told.failed, id, { number, text }), 'message', true)
      },
    )
  }

  function respond({ id, payload }: Entry): void {
    const answer = unanswered.get(id)
    unanswered.delete(id)
    answer?.(payload)
  }

  async function flush({ id }: Entry, kind: number): Promise<void> {
    await bus.flush()
    if (kind === told.closed) leave()
    channel.send(entryOf(kind, id), 'message', true)
  }

  function leave(): void {
    for (const subscription of subscriptions.values()) subscription.close()
    subscriptions.clear()
    unanswered.clear()
  }

  function carryOut(entry: Entry): void {
    switch (entry.kind) {
      case said.subscribe:
        return subscribe(entry)
      case said.unsubscribe:
        subscriptions.get(entry.id)?.close()
        return void subscriptions.delete(entry.id)
      case said.publish:
        return publish(entry)
      case said.request:
        return request(entry)
      case said.respond:
        return respond(entry)
      case said.flush:
        return void flush(entry, told.flushed)
      case said.close:
        return void flush(entry, told.closed)
      default:
        log.error('a thread said what is not known', { kind: entry.kind })
    }
  }

  return {
    close() {
      leave()
      channel.close()
    },
  }
}

function whyOf(error: unknown): number {
  if (error instanceof BusAway) return error.wasSent ? why.away : why.awayUnsent
  return error instanceof BusNoResponders ? why.nobodyListens : why.timeout
}
