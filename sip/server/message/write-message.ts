/** Owns writing a SIP message to bytes. RFC 3261 §7. */
import type { SipMessage } from './message.ts'

/** Content-Length is always ours, and the last header. The body is sent as it is. */
export function writeMessage(message: SipMessage): Buffer {
  const lines = message.headers.flatMap(({ name, value }) =>
    name === 'Content-Length' ? [] : [`${name}: ${oneLine(value)}`],
  )
  const head = [startLineOf(message), ...lines, `Content-Length: ${message.body.length}`, '', ''].join('\r\n')
  return message.body.length === 0 ? Buffer.from(head) : Buffer.concat([Buffer.from(head), message.body])
}

const startLineOf = (message: SipMessage): string =>
  message.kind === 'request'
    ? `${message.method} ${message.uri} SIP/2.0`
    : `SIP/2.0 ${message.status} ${oneLine(message.reason)}`

/** A line break within a value would begin a header of its own. */
const oneLine = (text: string): string => (/[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, ' ') : text)
