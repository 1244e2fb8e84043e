/** Owns the reading of server-sent events: bytes in any pieces become the `data` of whole events. HTML standard, section 9.2.6. Pure, and it never throws. */

export type EventStream = {
  /** Of the events that are complete by now, in order. Nothing more once it is `tooLong`. */
  push(bytes: Uint8Array): string[]
  /** One line or event is longer than anything an endpoint has to say. */
  tooLong(): boolean
}

/** Characters of one event; arguments of a tool are the longest, and come in pieces. */
const maxEvent = 256 * 1024

export function createEventStream(maxLength = maxEvent): EventStream {
  // A byte order mark at the beginning is left out; what is no UTF-8 becomes U+FFFD.
  const decoder = new TextDecoder('utf-8')
  let rest = ''
  let lines: string[] = []
  let length = 0
  let afterReturn = false
  let overlong = false

  const line = (text: string, events: string[]): void => {
    if (text === '') {
      if (lines.length > 0) events.push(lines.join('\n'))
      lines = []
      length = 0
      return
    }
    const colon = text.indexOf(':')
    if ((colon === -1 ? text : text.slice(0, colon)) !== 'data') return
    const value = colon === -1 ? '' : text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1)
    length += value.length
    overlong ||= length > maxLength
    lines.push(value)
  }
  return {
    push(bytes) {
      const events: string[] = []
      if (overlong) return events
      let text = decoder.decode(bytes, { stream: true })
      if (text === '') return events
      // CR LF is one end of a line, wherever the pieces were cut.
      if (afterReturn && text.startsWith('\n')) text = text.slice(1)
      afterReturn = text === '' ? false : text.endsWith('\r')
      const parts = text.split(/\r\n|\n|\r/)
      parts[0] = rest + parts[0]
      rest = parts.pop() ?? ''
      for (const part of parts) {
        if (!overlong) line(part, events)
      }
      overlong ||= rest.length > maxLength
      return overlong ? [] : events
    },
    tooLong: () => overlong,
  }
}
