/** Owns the customer's endpoint of a simulated world, behind the port of the sender: what it took, in which order, and what of its answers was lost. */
import type { SendRequest, SendResult, WebhookSender } from '../../actors/webhooks/sender.ts'
import type { Random } from '../fake/random.ts'
import type { Loop, Process } from './loop.ts'

export type Taken = { readonly eventId: string; readonly type: string; readonly callId: string; readonly url: string }

export type Receiver = {
  senderOf(process: Process): WebhookSender
  /** What was answered with 200, in the order of its arrival; the same one more than once when the answer was lost. */
  readonly taken: readonly Taken[]
}

export function createReceiver(
  loop: Loop,
  random: Random,
  { failsOneOf, delay }: { failsOneOf: number; delay(): number },
): Receiver {
  const taken: Taken[] = []
  let sent = 0
  const failed = (reason: 'timeout' | 'transport', details: string): SendResult => ({ kind: 'failed', reason, details })

  const answerTo = ({ url, headers, body }: SendRequest): SendResult => {
    const eventId = headers['X-Service-Event-Id'] ?? ''
    const isFirst = headers['X-Service-Attempt'] === '1'
    const isSync = headers['X-Service-Delivery'] === 'sync'
    if (isFirst && !isSync && random.below(failsOneOf) === 0)
      return { kind: 'answered', status: 503, body: '', retryAfter: null }
    const { type, data } = JSON.parse(body) as { type: string; data: { callId: string } }
    if (!isSync) taken.push({ eventId, type, callId: data.callId, url })
    return { kind: 'answered', status: 200, body: '{}', retryAfter: null }
  }
  return {
    taken,
    senderOf(process) {
      const ends = new Set<() => void>()
      return {
        refusalOf: () => null,
        send(request) {
          const { promise, resolve } = Promise.withResolvers<SendResult>()
          const name = `hook ${process.name} ${++sent}`
          const cancel = process.clock.after(request.timeout, () => resolve(failed('timeout', 'no answer')))
          const end = (): void => resolve(failed('transport', 'the request was ended'))
          ends.add(end)
          request.signal?.addEventListener('abort', end, { once: true })
          if (request.signal?.aborted) end()
          const event = request.headers['X-Service-Event'] ?? ''
          loop.happen(null, name, delay(), `hook < ${process.name} ${event}`, () => {
            const answer = answerTo(request)
            const isLost = request.headers['X-Service-Attempt'] === '1' && random.below(failsOneOf) === 0
            const told = isLost ? failed('transport', 'the answer was lost') : answer
            loop.happen(process, name, delay(), `hook > ${process.name} ${event}`, () => resolve(told))
          })
          return promise.finally(() => {
            cancel()
            ends.delete(end)
            request.signal?.removeEventListener('abort', end)
          })
        },
        close: () => {
          for (const end of ends) end()
          return Promise.resolve()
        },
      }
    },
  }
}
