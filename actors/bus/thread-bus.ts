/**
 * Owns the `Bus` of a worker thread: a client of the bus of its process, whichever that is. Everything is carried over (entry-channel.ts), so what one
 * thread publishes stays in order, and what it subscribes to is told by the real bus. Frames and events are seen by the other side when the turn of
 * this one is over; requests, answers and subscriptions go at once.
 */
import { BusAway, BusNoResponders, BusTimeout } from '../../model/bus.ts'
import type { Bus, BusMessage, Subscription } from '../../model/bus.ts'
import type { Cancel, Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import type { Telemetry } from '../../model/telemetry.ts'
import { assertPattern, assertPayload, assertSubject } from './bus-rules.ts'
import { createEntryChannel, type ChannelDeps } from './entry-channel.ts'
import type { Entry } from './entry-ring.ts'
import { createSubjectNumbers } from './subject-numbers.ts'
import { entryOf, said, told, why } from './thread-entries.ts'

type Deps = {
  readonly end: ChannelDeps['end']
  readonly log: Log
  readonly clock: Clock
  readonly telemetry?: Telemetry
} & Pick<ChannelDeps, 'nextLook' | 'atEndOfTurn'>

type Subscriber = { readonly pattern: string; readonly handler: (message: BusMessage) => void }

/** The other side keeps the time of a request; an answer that it could not hand over is given up so much later. */
const answerLost = 1_000

export function createThreadBus({ end, log, clock, telemetry, nextLook, atEndOfTurn }: Deps): Bus {
  const subscribers = new Map<number, Subscriber>()
  const questions = createQuestions(clock)
  const numbers = createSubjectNumbers()
  let subscriptions = 0
  let closing: Promise<void> | null = null

  const hear = (entry: Entry): void => {
    if (entry.kind === told.message) return deliver(entry)
    if (entry.kind === told.failed) return questions.fail(entry.id, failureOf(entry))
    questions.settle(entry.id, entry.payload)
  }
  const more = { ...(telemetry && { telemetry }), ...(nextLook && { nextLook }), ...(atEndOfTurn && { atEndOfTurn }) }
  const channel = createEntryChannel({ end, receive: hear, clock, log, ...more })

  function deliver({ id, number, text, payload }: Entry): void {
    const subscriber = subscribers.get(id)
    if (!subscriber) return
    const subject = text === '' ? subscriber.pattern : text
    const isRequest = number !== 0
    try {
      subscriber.handler({ subject, payload, isRequest, respond: responderOf(number) })
    } catch (error) {
      log.error('bus handler threw', { subject, error })
    }
  }

  const responderOf = (request: number) => (payload: Uint8Array) => {
    assertPayload(payload)
    if (request !== 0) channel.send(entryOf(said.respond, request, { payload }), 'message')
  }

  function subscribe(
    pattern: string,
    handler: Subscriber['handler'],
    options?: { readonly queue?: string },
  ): Subscription {
    assertPattern(pattern)
    if (closing) return { close: () => undefined }
    const id = ++subscriptions
    const queue = options?.queue
    subscribers.set(id, { pattern, handler })
    const named = queue === undefined ? {} : { number: 1, payload: Buffer.from(queue) }
    channel.send(entryOf(said.subscribe, id, { text: pattern, ...named }), 'message', true)
    return {
      close() {
        if (subscribers.delete(id)) channel.send(entryOf(said.unsubscribe, id), 'message', true)
      },
    }
  }

  async function request(subject: string, payload: Uint8Array, timeout: number): Promise<Uint8Array> {
    assertSubject(subject)
    assertPayload(payload)
    if (closing) throw new BusNoResponders('the bus is closed')
    const question = questions.ask(timeout + answerLost, () => new BusTimeout(`no answer on ${subject}`))
    const asked = entryOf(said.request, question.id, { number: timeout, text: subject, payload })
    if (!channel.send(asked, 'message')) questions.fail(question.id, new BusTimeout('the bus is full'))
    return question.answer
  }

  async function settled(kind: number): Promise<void> {
    const question = questions.ask(null, () => new BusNoResponders('the bus was closed'))
    channel.send(entryOf(kind, question.id), 'message', true)
    await question.answer.catch(ignore)
  }

  async function drain(): Promise<void> {
    await settled(said.close)
    subscribers.clear()
    questions.close()
    channel.close()
  }

  function publish(subject: string, payload: Uint8Array): void {
    assertPayload(payload)
    const known = numbers.numberOf(subject)
    if (known === 0) assertSubject(subject)
    if (closing) return
    if (known > 0) return void channel.send(entryOf(said.publish, known, { payload }), 'ring')
    // What was dropped has told nothing.
    if (channel.send(entryOf(said.publish, numbers.next(), { text: subject, payload }), 'ring')) numbers.told(subject)
  }

  return {
    publish,
    subscribe,
    request: (subject, payload, { timeout }) => request(subject, payload, timeout),
    flush: () => closing ?? settled(said.flush),
    close: () => (closing ??= drain()),
  }
}

function failureOf({ number, text }: Entry): Error {
  if (number === why.away || number === why.awayUnsent) return new BusAway(text, { wasSent: number === why.away })
  return number === why.nobodyListens ? new BusNoResponders(text) : new BusTimeout(text)
}

function ignore(): void {
  // The bus is closed: nothing is on its way any more.
}

type Question = { readonly resolve: (answer: Uint8Array) => void; readonly reject: (error: Error) => void }

/** What waits for a word of the other side: each ends once. */
function createQuestions(clock: Clock) {
  const waiting = new Map<number, Question>()
  let asked = 0

  const fail = (id: number, error: Error): void => waiting.get(id)?.reject(error)
  return {
    fail,
    settle: (id: number, answer: Uint8Array): void => waiting.get(id)?.resolve(answer),
    /** `within` null: for as long as the bus is open. */
    ask(within: number | null, late: () => Error): { readonly id: number; readonly answer: Promise<Uint8Array> } {
      const id = ++asked
      const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
      const cancel: Cancel = within === null ? ignore : clock.after(within, () => fail(id, late()))
      waiting.set(id, { resolve, reject })
      return {
        id,
        answer: promise.finally(() => {
          cancel()
          waiting.delete(id)
        }),
      }
    },
    close(): void {
      for (const { reject } of waiting.values()) reject(new BusNoResponders('the bus was closed'))
    },
  }
}
