/**
 * Owns the streams that clients listen on: how many there may be, and that none outlives the power of its token. docs/contract/mcp.md "Streams".
 */
import type { Cancel, Clock } from '../model/clock.ts'
import type { FindMcpAccess, McpAccess } from '../model/mcp-access.ts'
import { createLightRequest } from '../net/http/light-request.ts'
import type { ChangeEvents } from './change-events.ts'

/** In this process. */
export type MaxStreams = { readonly inAll: number; readonly ofAccount: number }
const usualMost: MaxStreams = { inAll: 10_000, ofAccount: 2_000 }
/** Ms: so long a stream may go on without a token that is good. */
const lookAgain = 60_000

type Deps = { readonly findAccess: FindMcpAccess; readonly clock: Clock; readonly maxStreams?: MaxStreams }
type Wish = { readonly request: Request; readonly access: McpAccess; readonly token: string }

export function createStreams({ findAccess, clock, maxStreams = usualMost }: Deps, events: ChangeEvents) {
  function watch({ access, token }: Pick<Wish, 'access' | 'token'>, end: () => void): Cancel {
    let cancel: Cancel = () => undefined
    let isOver = false
    const look = async (): Promise<void> => {
      // What cannot be found out now is asked again: the stream tells nothing that its client may not know.
      const found = await findAccess(token).catch(() => access)
      if (isOver) return
      if (!found || found.accountId !== access.accountId || found.expiresAt <= clock.now()) end()
      else wait()
    }
    const wait = (): void => {
      const left = Math.max(0, access.expiresAt - clock.now())
      cancel = clock.after(Math.min(lookAgain, left), () => void look())
    }
    wait()
    return () => {
      isOver = true
      cancel()
    }
  }
  return {
    most: maxStreams.inAll,
    async open({ request, access, token }: Wish, hand: (request: Request) => Promise<Response>): Promise<Response> {
      if (events.count(access.accountId) >= maxStreams.ofAccount) return tooMany()
      const ending = new AbortController()
      const { method, url, headers } = request
      const signal = AbortSignal.any([request.signal, ending.signal])
      const asking = createLightRequest({ method, url, headers, signal })
      const began = (): Cancel => watch({ access, token }, () => ending.abort())
      return events.listenFor({ accountId: access.accountId, began }, () => hand(asking))
    },
  }
}

const tooMany = (): Response =>
  Response.json({ jsonrpc: '2.0', error: { code: -32603, message: 'Subscription limit reached' }, id: null })
