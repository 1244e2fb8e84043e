/** Owns how the head of an HTTP request, as a driver parsed it, becomes a fetch `Request`. */
import type { ListenerOptions } from '../../model/listener.ts'
import { createLightRequest, type ReadBody } from '../../net/http/light-request.ts'

export type RequestHead = {
  readonly method: string
  /** As on the request line: a path with its query, or an absolute URL (RFC 9112 §3.2.2). */
  readonly target: string
  readonly secure: boolean
  readonly headers: readonly (readonly [name: string, value: string])[]
}

/** GET and HEAD have no body here, whatever was sent. Null for what no request can be (a Host that is none, a forbidden method): answer 400. */
export function toRequest(head: RequestHead, readBody: ReadBody | null, signal: AbortSignal): Request | null {
  const { method, headers } = head
  try {
    const body = method === 'GET' || method === 'HEAD' ? null : readBody
    return createLightRequest({ method, url: urlOf(head), headers, signal }, body)
  } catch {
    // The only reasons are in the client's bytes.
    return null
  }
}

export const headerOf = (head: RequestHead, name: string): string | null =>
  head.headers.find(([key]) => key.toLowerCase() === name)?.[1] ?? null

/** The exact path, as routes are named. */
export const pathOf = (target: string): string => target.split('?', 1)[0] ?? target

export const maxBodyBytesOf = (
  { maxBodyBytes, maxBodyBytesFor }: Pick<ListenerOptions, 'maxBodyBytes' | 'maxBodyBytesFor'>,
  { method, target }: RequestHead,
): number => maxBodyBytesFor?.(method, pathOf(target)) ?? maxBodyBytes

/** Concatenated and not resolved: a target such as `//elsewhere/` must not become a host. */
function urlOf(head: RequestHead): string {
  const scheme = head.secure ? 'https' : 'http'
  if (!head.target.startsWith('/') && /^https?:\/\//i.test(head.target)) return head.target
  const host = hostOf(head)
  if (!/^[\w.-]+(?::\d+)?$|^\[[\da-f:.]+\](?::\d+)?$/i.test(host)) throw new TypeError('not a host')
  return `${scheme}://${host}${head.target.startsWith('/') ? '' : '/'}${head.target}`
}

/** Two of them are none (RFC 9112 §3.2). */
function hostOf({ headers }: RequestHead): string {
  const hosts = headers.filter(([name]) => name.length === 4 && name.toLowerCase() === 'host')
  return hosts.length === 1 ? (hosts[0]?.[1] ?? '') : ''
}

/** RFC 6455 §4.2.1: what makes a request a WebSocket handshake that can be answered with 101. */
export function isHandshake(head: RequestHead): boolean {
  const upgrade = headerOf(head, 'upgrade')?.toLowerCase() === 'websocket'
  const key = /^[+/0-9a-z]{22}==$/i.test(headerOf(head, 'sec-websocket-key') ?? '')
  return upgrade && key && head.method === 'GET' && headerOf(head, 'sec-websocket-version') === '13'
}
