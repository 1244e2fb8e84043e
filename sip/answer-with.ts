/** Owns the final answers of this user agent to requests it does not take. RFC 3261 §8.2, §11.2, §20. */
import type { Reply } from './stack-types.ts'

export const allow = 'INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, REFER, NOTIFY, PRACK'
export const accept = 'application/sdp'

export type Extra = { readonly reason?: string; readonly headers?: Record<string, string>; readonly body?: string }

/** Never throws: an answer that cannot be sent any more is none. */
export function answerWith(reply: Reply, status: number, { reason, headers, body }: Extra = {}): void {
  if (reply.finalResponseSent) return
  const content = { headers: { ...headers }, ...(body === undefined ? {} : { body }) }
  try {
    reply.send(status, reason, content)
  } catch {
    // A status the library has no name for: the class of it says enough (RFC 3261 §8.1.3.2).
    reply.send(status >= 600 ? 603 : 400, reason, content)
  }
}

/** What we can do, for whoever asks. RFC 3261 §11.2. */
export const capabilities = { Allow: allow, Accept: accept, 'Accept-Encoding': 'identity', Supported: 'timer, 100rel' }

/** RFC 3261 §20.43: incompatible network protocol, incompatible media format. */
export type MediaWarning = 300 | 305

export const mediaWarning = (text: string, code: MediaWarning = 305): Record<string, string> => ({
  Warning: `${code} parley "${text
    .replace(/[^\x20-\x7e]/g, ' ')
    .replace(/["\\]/g, "'")
    .slice(0, 200)}"`,
})
