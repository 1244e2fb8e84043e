/** Owns that strangers are not heard where the server behind does not ask for itself: it waits for an answer, so they get a short one. */
import { answerWith } from './answer-with.ts'
import type { Reply, RequestIn, RoutedMethod } from './stack-types.ts'
import type { From, Strangers } from './strangers.ts'

type Handler = (request: RequestIn, reply: Reply) => void
type Routes = Partial<Record<RoutedMethod, Handler>>

export const guardedRoutes = (routes: Routes, strangers: Pick<Strangers, 'hears'>): Routes =>
  Object.fromEntries(Object.entries(routes).map(([method, handler]) => [method, guarded(handler, strangers)]))

function guarded(handler: Handler, { hears }: Pick<Strangers, 'hears'>): Handler {
  const take = (request: RequestIn, reply: Reply, isDecided: boolean): void => {
    const heard = hears({ ...fromOf(request), method: request.method }, isDecided)
    if (heard === true) handler(request, reply)
    else if (heard === false) answerWith(reply, 403)
    else void heard.then(() => take(request, reply, true))
  }
  return (request, reply) => take(request, reply, false)
}

export const fromOf = ({ source_address: address, protocol }: RequestIn): From => ({ address, protocol })
