/** Owns the grammar that all header fields share: tokens, quoted strings, lists and parameters. RFC 3261 §25.1. */

/** Names in lower case, values as they stood (quotes and all), null for a parameter without value. The first of two alike counts. */
export type Params = ReadonlyMap<string, string | null>

export const noParams: Params = new Map()

export const isToken = (text: string): boolean => /^[A-Za-z0-9\-.!%*_+`'~]+$/.test(text)

/**
 * Cuts at a separator where it separates: not within quotes, `<…>` or `[…]`. Pieces are trimmed, empty ones left out. Null: a quote or a
 * bracket has no end.
 */
export function splitAt(text: string, separator: ',' | ';'): string[] | null {
  const pieces: string[] = []
  let start = 0
  let position = 0
  while (position < text.length) {
    const character = text[position]
    if (character === '"' || character === '<') {
      const end = character === '"' ? endOfQuote(text, position) : endOfBracket(text, position)
      if (end === -1) return null
      position = end
      continue
    }
    if (character === separator) {
      pieces.push(text.slice(start, position))
      start = position + 1
    }
    position += 1
  }
  pieces.push(text.slice(start))
  return pieces.map((piece) => piece.trim()).filter((piece) => piece !== '')
}

/** `start` is at the opening quote; answers what follows the closing one, -1 when there is none. */
export function endOfQuote(text: string, start: number): number {
  for (let position = start + 1; position < text.length; position += 1) {
    if (text[position] === '\\') position += 1
    else if (text[position] === '"') return position + 1
  }
  return -1
}

/** Like `endOfQuote`, for `<`. A URI has no quotes and no brackets inside. */
export function endOfBracket(text: string, start: number): number {
  const end = text.indexOf('>', start)
  return end === -1 ? -1 : end + 1
}

/** `"a \"b\""` is `a "b"`; what is not quoted stays as it is. */
export const unquoted = (text: string): string =>
  text.length >= 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1).replace(/\\([\s\S])/g, '$1') : text

export const quoted = (text: string): string => `"${text.replace(/[\r\n]+/g, ' ').replace(/["\\]/g, '\\$&')}"`

/** `;a=1;b` or `a=1;b`. Null when a parameter has no name or a quote no end. */
export function readParams(text: string): Params | null {
  if (text === '') return noParams
  const pieces = splitAt(text, ';')
  if (!pieces) return null
  const params = new Map<string, string | null>()
  for (const piece of pieces) {
    const equals = piece.indexOf('=')
    const name = (equals === -1 ? piece : piece.slice(0, equals)).trim().toLowerCase()
    if (name === '' || /[\s"<>,]/.test(name)) return null
    if (!params.has(name)) params.set(name, equals === -1 ? null : piece.slice(equals + 1).trim())
  }
  return params
}

/** `;a=1;b`, or nothing. */
export const writeParams = (params: Params): string =>
  [...params].map(([name, value]) => (value === null ? `;${name}` : `;${name}=${value}`)).join('')

/** The same parameters with one set anew; it keeps its place. */
export const withParam = (params: Params, name: string, value: string | null): Params =>
  new Map(params).set(name, value)

/** A whole number at the beginning of a value, such as `120` of `Retry-After: 120 (busy)`; beyond `limit` it is the limit. */
export function leadingNumber(value: string | null | undefined, limit = 0xffff_ffff): number | null {
  const digits = /^\d+/.exec(value?.trim() ?? '')?.[0]
  return digits === undefined ? null : Math.min(Number(digits), limit)
}

/** A host as it stands in URIs and Via: IPv6 addresses are in brackets. */
export const hostText = (host: string): string => (host.includes(':') ? `[${host}]` : host)

export const hostPortText = (host: string, port: number | null): string =>
  port === null ? hostText(host) : `${hostText(host)}:${port}`

/** `host`, `host:port`, `[v6]:port`, spaces around the colon allowed. The answer's host has no brackets. */
export function readHostPort(text: string): { host: string; port: number | null } | null {
  const [, v6, name, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?:\s*:\s*(\d{1,5}))?$/.exec(text) ?? []
  const host = v6 ?? name
  const port = digits === undefined ? null : Number(digits)
  if (!host || (v6 && !v6.includes(':')) || (port !== null && (port < 1 || port > 65_535))) return null
  return { host, port }
}

/** `application/sdp` of `Application/SDP; charset=…`. */
export const mediaTypeOf = (value: string): string => (value.split(';')[0] ?? '').replace(/\s+/g, '').toLowerCase()
