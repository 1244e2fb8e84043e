/** Owns what the uWebSockets.js driver reads of a request. The library's objects are gone when the handler returns: everything is copied. */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import type { ListenerOptions, RequestInfo } from '../../model/listener.ts'
import { plainAddressOf } from '../../net/addresses.ts'
import type { RequestHead } from './to-request.ts'

export function headOf(req: HttpRequest, { tls }: ListenerOptions): RequestHead {
  const headers: [string, string][] = []
  req.forEach((name, value) => headers.push([name, value]))
  const query = req.getQuery()
  const target = query ? `${req.getUrl()}?${query}` : req.getUrl()
  return { method: req.getCaseSensitiveMethod(), target, secure: tls !== null, headers }
}

/** How long the body says that it is. */
export type Announced = { readonly declared: number; readonly chunked: boolean }

/**
 * Null when it says so more than once, which the library lets pass: then it is not known where this request ends and the next one begins
 * (RFC 9112 §6.3).
 */
export function announcedOf({ headers }: RequestHead): Announced | null {
  let declared: number | null = null
  let chunked = false
  for (const [name, value] of headers) {
    chunked ||= name === 'transfer-encoding'
    if (name !== 'content-length') continue
    if (declared !== null) return null
    declared = Number(value)
  }
  return { declared: declared ?? 0, chunked }
}

/** The library writes IPv6 in full: `0000:0000:0000:0000:0000:ffff:7f00:0001`. */
export const infoOf = (res: HttpResponse): RequestInfo => ({
  remoteAddress: plainAddressOf(Buffer.from(res.getRemoteAddressAsText()).toString()) ?? '',
})
