/** Owns name-addr and addr-spec: From, To, Contact, Route, Refer-To, P-Asserted-Identity … RFC 3261 §20.10, §25.1. */
import { headerOf, valuesOf } from './header-fields.ts'
import { endOfQuote, readParams, unquoted, type Params } from './header-text.ts'
import type { HeaderField } from './message.ts'

export type Address = {
  /** Without quotes; null where there is none. */
  readonly displayName: string | null
  /** As it stood; `*` of a Contact is no address. uri.ts reads it. */
  readonly uri: string
  /** Those of the header, not of the URI: tag, expires, q … */
  readonly params: Params
}

type Fields = { readonly headers: readonly HeaderField[] }

/** Tolerant: a display name need not be of tokens, and space within `<…>` is cut off. */
export function readAddress(value: string): Address | null {
  const text = value.trim()
  const nameEnd = text.startsWith('"') ? endOfQuote(text, 0) : 0
  if (nameEnd === -1) return null
  const open = text.indexOf('<', nameEnd)
  if (open === -1) return nameEnd === 0 ? readBareAddress(text) : null
  const close = text.indexOf('>', open)
  const params = readParams(text.slice(close + 1).trim())
  const uri = text.slice(open + 1, close).trim()
  const name = text.slice(0, open).trim()
  if (close === -1 || !params || !isUriText(uri)) return null
  // Something between the closing quote and `<`, or a quote in the midst of a name: the quotes are not balanced.
  if (nameEnd > 0 ? name.length !== nameEnd : name.includes('"')) return null
  const rest = text.slice(close + 1).trim()
  if (rest !== '' && !rest.startsWith(';')) return null
  return { displayName: name === '' ? null : unquoted(name), uri, params }
}

/** Without `<>` all parameters are those of the header, and the URI may hold no comma and no question mark. §20. */
function readBareAddress(text: string): Address | null {
  const semicolon = text.indexOf(';')
  const uri = (semicolon === -1 ? text : text.slice(0, semicolon)).trim()
  const params = readParams(semicolon === -1 ? '' : text.slice(semicolon))
  return params && isUriText(uri) && !/[,?]/.test(uri) ? { displayName: null, uri, params } : null
}

const isUriText = (uri: string): boolean => /^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"]+$/.test(uri)

/** The addresses of a header that is a list; what cannot be read is left out. */
export const addressesOf = (message: Fields, name: string): Address[] =>
  valuesOf(message, name).flatMap((value) => readAddress(value) ?? [])

/** Of several the first: where a peer names more Contacts than the one that is allowed (RFC 3261 §8.1.1.8), it is there. */
export function addressOf(message: Fields, name: string): Address | null {
  const value = headerOf(message, name)
  // A name may have a comma, so that a field which is one address is read as such.
  return value === null ? null : (readAddress(value) ?? readAddress(valuesOf(message, name)[0] ?? ''))
}

/** The tag of a From or To value. */
export const tagIn = (value: string | null): string | null =>
  value === null ? null : (readAddress(value)?.params.get('tag') ?? null)

export const tagOf = (message: Fields, name: 'From' | 'To'): string | null => tagIn(headerOf(message, name))
