/**
 * Owns the way from a fetch-style request to oidc-provider, which is a Koa application, and back. Both HTTP drivers serve it, because neither's own
 * request is used: the library sees one that fetch-to-node makes, with the host and scheme of the issuer, whatever stands before this process.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { toFetchResponse, toReqRes } from 'fetch-to-node'

export type Asked = {
  /** Ms since the epoch. */
  readonly askedAt: number
  readonly method: string
  /** Of the issuer; a proxy has taken it away from the path. */
  readonly prefix: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer> | null
}

export type Exchange = { readonly req: IncomingMessage; readonly res: ServerResponse; answer(): Promise<Response> }

export function createExchange({ askedAt, method, prefix, url, headers, body }: Asked): Exchange {
  const request = new Request(url, { method, headers, ...(body && { body }) })
  const { req, res } = toReqRes(request)
  // None that a Request may carry.
  req.headers.host = url.host
  // Without it there is no body to the library.
  if (body) req.headers['content-length'] = String(body.length)
  // By it the library knows what stands before its own paths.
  Object.assign(req, { originalUrl: prefix + (req.url ?? ''), askedAt })
  // Its own setter throws. Koa asks whether the connection is encrypted, and for the address of the peer.
  Object.defineProperty(req, 'socket', { value: { encrypted: url.protocol === 'https:', remoteAddress: '' } })
  return { req, res, answer: async () => readWhole(await toFetchResponse(res)) }
}

/** Null: it is no request of ours. */
export const askedAtOf = (req: IncomingMessage | undefined): number | null =>
  req && 'askedAt' in req && typeof req.askedAt === 'number' ? req.askedAt : null

/** Headers of a connection that there is none of. */
const ofConnection = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding'])

async function readWhole(response: Response): Promise<Response> {
  const bytes = await response.arrayBuffer()
  const { status } = response
  const kept = [...response.headers].filter(([name]) => !ofConnection.has(name))
  // The body of a redirect is a page that nobody reads.
  const isRead = bytes.byteLength > 0 && (status < 300 || status >= 400)
  const answer = new Response(isRead ? bytes : null, { status, headers: kept })
  if (!isRead) answer.headers.delete('content-type')
  return answer
}
