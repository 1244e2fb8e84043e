/** Owns the answers to requests outside of calls: this user agent takes calls and nothing else. RFC 3261 §8.2.1, §11.2. */
import { answerWith, capabilities } from './answer-with.ts'
import type { Reply, RequestIn, RoutedMethod } from './stack-types.ts'

type Answers = Partial<Record<RoutedMethod, (request: RequestIn, reply: Reply) => void>>

/** OPTIONS is how trunks find out whether we are there: while stopping they are to send calls elsewhere. */
export function answersOutsideCalls(isStopping: () => boolean): Answers {
  const notAllowed = (_request: RequestIn, reply: Reply) =>
    answerWith(reply, 405, { headers: { Allow: capabilities.Allow } })
  /** Of a call that is not there. */
  const noCall = (_request: RequestIn, reply: Reply) => answerWith(reply, 481)
  return {
    options: (_request, reply) =>
      isStopping()
        ? answerWith(reply, 503, { headers: { 'Retry-After': '30' } })
        : answerWith(reply, 200, { headers: capabilities }),
    // We are not a registrar.
    register: notAllowed,
    subscribe: notAllowed,
    message: notAllowed,
    publish: notAllowed,
    // Calls to others at our cost.
    refer: (_request, reply) => answerWith(reply, 403),
    notify: noCall,
    info: noCall,
  }
}
