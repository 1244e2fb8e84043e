/** Owns how the messages of RFC 4475 are written down here: its notation for bytes and repetitions, and what must become of each. */
import type { SipMessage } from '../../../sip/server/message/message.ts'

export type TortureMessage = {
  /** Section of RFC 4475 and its short name there. */
  readonly section: string
  readonly bytes: Uint8Array
  /** What a user agent does: takes it, answers it with a status, or drops it without a word. */
  readonly verdict: 'taken' | 'dropped' | number
  /** More that must hold; a sentence says what. For what was read, whether it is refused afterwards or not. */
  readonly holds?: Readonly<Record<string, (message: SipMessage) => boolean>>
}

/**
 * Text to bytes: lines end with CRLF, `{hex:00ff}` are bytes, `{repeat:3:ab}` is `ababab`, `{length}` is how long the body is. The first empty
 * line ends the head.
 */
export function bytesOf(text: string): Uint8Array {
  const [head = '', ...rest] = written(text).split('\r\n\r\n')
  const body = bytesIn(rest.join('\r\n\r\n'))
  return Buffer.concat([bytesIn(`${head.replace('{length}', String(body.length))}\r\n\r\n`), body])
}

const written = (text: string): string =>
  text
    .replace(/^\n/, '')
    .replaceAll('\n', '\r\n')
    .replace(/\{repeat:(\d+):([^}]*)\}/g, (_, count: string, part: string) => part.repeat(Number(count)))

const bytesIn = (text: string): Buffer =>
  Buffer.concat(
    text
      .split(/\{hex:([0-9A-Fa-f]*)\}/)
      .map((part, index) => (index % 2 === 1 ? Buffer.from(part, 'hex') : Buffer.from(part))),
  )

/** The description of a session that most of them carry. */
export const sessionBody = `v=0
o=mhandley 29739 7272939 IN IP4 192.0.2.3
s=-
c=IN IP4 192.0.2.4
t=0 0
m=audio 49217 RTP/AVP 0 12
m=video 3227 RTP/AVP 31
a=rtpmap:31 LPC
`
