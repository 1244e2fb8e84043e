/** Owns a customer's endpoint for tests: a real receiver on loopback whose answers are scripted and whose deliveries are awaited. */
import type { ServerResponse } from 'node:http'
import { openWebhookReceiver, type ReceivedDelivery } from '../../tools/callers/webhook-receiver.ts'

/** `held` answers when `release` is called. `stall` sends a status and never the end of the body. */
export type ScriptedAnswer =
  | {
      readonly status: number
      readonly body?: string
      readonly headers?: Readonly<Record<string, string>>
      readonly held?: boolean
    }
  | { readonly wire: 'hang' | 'reset' | 'garbage' | 'huge' | 'stall' }

export type FakeWebhookReceiver = {
  /** `http://127.0.0.1:<port><path>` */
  url(path: string): string
  /** Deliveries to this path are signed with this secret. Without it all are refused with 401. */
  trust(path: string, secret: string): void
  /** One answer per delivery to the path; afterwards 200 with an empty body, or the last one for ever. */
  script(path: string, answers: readonly ScriptedAnswer[], options?: { readonly forever: boolean }): void
  /** The oldest verified delivery (of the type, to the path) that no `next` has returned yet; waits for one. */
  next(type?: string, path?: string): Promise<ReceivedDelivery>
  /** Answers everything that is held. */
  release(): void
  /** All verified deliveries in the order of their arrival. */
  readonly deliveries: readonly ReceivedDelivery[]
  /** How often a delivery came while an earlier one of the same call and path had no answer yet. */
  overlaps(): number
  counts(): { readonly verified: number; readonly refused: number }
}

type Waiter = { readonly wants: (delivery: ReceivedDelivery) => boolean; take(delivery: ReceivedDelivery): void }

export async function openFakeWebhookReceiver(t: {
  teardown(close: () => Promise<void>): unknown
}): Promise<FakeWebhookReceiver> {
  const secrets = new Map<string, string>()
  const scripts = new Map<string, { answers: ScriptedAnswer[]; forever: boolean }>()
  const deliveries: ReceivedDelivery[] = []
  const untaken: ReceivedDelivery[] = []
  const held: (() => void)[] = []
  const open = new Map<string, number>()
  let waiters: Waiter[] = []
  let overlaps = 0

  function nextAnswer(path: string): ScriptedAnswer {
    const script = scripts.get(path)
    const answer = script?.answers[0] ?? { status: 200 }
    if (script && !(script.forever && script.answers.length === 1)) script.answers.shift()
    return answer
  }
  function watchOverlap({ path, data }: ReceivedDelivery, response: ServerResponse): void {
    const lane = `${path} ${String((data as { callId?: unknown } | null)?.callId)}`
    const before = open.get(lane) ?? 0
    if (before > 0) overlaps += 1
    open.set(lane, before + 1)
    const end = response.end.bind(response) as () => ServerResponse
    const closed = () => open.set(lane, (open.get(lane) ?? 1) - 1)
    // Counted down before the sender can know of the answer.
    let done = false
    const once = () => {
      if (!done) closed()
      done = true
    }
    response.once('close', once)
    Object.assign(response, {
      end: (...parts: []) => {
        once()
        return end(...parts)
      },
    })
  }
  function hand(delivery: ReceivedDelivery): void {
    deliveries.push(delivery)
    const waiter = waiters.find(({ wants }) => wants(delivery))
    if (!waiter) return void untaken.push(delivery)
    waiters = waiters.filter((other) => other !== waiter)
    waiter.take(delivery)
  }

  const receiver = await openWebhookReceiver({
    secretOf: (path) => secrets.get(path) ?? null,
    answer(delivery, response) {
      watchOverlap(delivery, response)
      const answer = nextAnswer(delivery.path)
      if ('status' in answer && answer.held) held.push(() => play(answer, response))
      else play(answer, response)
      hand(delivery)
    },
  })
  t.teardown(() => receiver.close())

  return {
    deliveries,
    counts: () => receiver.counts(),
    overlaps: () => overlaps,
    url: (path) => `${receiver.url}${path}`,
    trust: (path, secret) => secrets.set(path, secret),
    script: (path, answers, options) =>
      scripts.set(path, { answers: [...answers], forever: options?.forever ?? false }),
    release: () => held.splice(0).forEach((answer) => answer()),
    next(type, path) {
      const wants = (delivery: ReceivedDelivery) =>
        (type === undefined || delivery.type === type) && (path === undefined || delivery.path === path)
      const index = untaken.findIndex(wants)
      if (index >= 0) return Promise.resolve(untaken.splice(index, 1)[0] as ReceivedDelivery)
      return new Promise((take) => waiters.push({ wants, take }))
    },
  }
}

function play(answer: ScriptedAnswer, response: ServerResponse): void {
  if ('status' in answer) {
    response.writeHead(answer.status, answer.headers).end(answer.body ?? '')
    return
  }
  switch (answer.wire) {
    case 'hang':
      return
    case 'reset':
      response.socket?.resetAndDestroy()
      return
    case 'garbage':
      response.socket?.end('this is no HTTP at all\r\n\r\n')
      return
    case 'huge':
      response.writeHead(200).end(`{"instructions":"${'x'.repeat(400_000)}"}`)
      return
    case 'stall':
      response.writeHead(200, { 'content-length': '1000' }).write('{"config":')
  }
}
