/** Owns finding the SDP in a message: its whole body, or one part of it. RFC 3261 §7.4, RFC 5621 §3. */
import type { MessageIn } from '../stack-types.ts'

/** '' : there is no body. Null: a body that is no SDP, answered 415. */
export function sdpIn(message: MessageIn): string | null {
  const body = message.body ?? ''
  if (body.trim() === '') return ''
  const contentType = message.get('content-type') ?? 'application/sdp'
  if (isSdp(contentType)) return body
  return /^multipart\//i.test(contentType) ? partOf(body, contentType) : null
}

const isSdp = (contentType: string): boolean => /^application\/sdp\s*(?:;|$)/i.test(contentType.trim())

function partOf(body: string, contentType: string): string | null {
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(contentType) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined) return null
  for (const part of body.split(`--${boundary}`).slice(1)) {
    const end = part.indexOf('\r\n\r\n')
    const type = /^content-type\s*:\s*(.+)$/im.exec(part.slice(0, Math.max(end, 0)))?.[1]
    if (type !== undefined && isSdp(type)) return part.slice(end + 4)
  }
  return null
}
