/** Owns what the uWebSockets.js driver reads of a request. The library's objects are gone when the handler returns: everything is copied. */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import type { ListenerOptions, RequestInfo } from '../../model/listener.ts'
import { plainAddress } from './to-request.ts'
import type { RequestHead } from './to-request.ts'

export function headOf(req: HttpRequest, { tls }: ListenerOptions): RequestHead {
  const headers: [string, string][] = []
  req.forEach((name, value) => headers.push([name, value]))
  const query = req.getQuery()
  const target = query ? `${req.getUrl()}?${query}` : req.getUrl()
  return { method: req.getCaseSensitiveMethod(), target, secure: tls !== null, headers }
}

export const infoOf = (res: HttpResponse): RequestInfo => ({
  remoteAddress: plainAddress(Buffer.from(res.getRemoteAddressAsText()).toString()),
})
