/** Owns SIP, SIPS and tel URIs. RFC 3261 §19.1, RFC 3966. */
import { hostPortText, noParams, readHostPort, type Params } from './header-text.ts'

export type SipUri = {
  readonly scheme: 'sip' | 'sips'
  /** Without escapes, parameters of a telephone number included: `subscriberOf` takes them apart. */
  readonly user: string | null
  readonly password: string | null
  /** An IPv6 address has no brackets here. */
  readonly host: string
  readonly port: number | null
  /** Names in lower case, values without escapes. */
  readonly params: Params
  /** `?name=value&…`, as it stood behind the question mark. */
  readonly headers: string | null
}

export type TelUri = { readonly scheme: 'tel'; readonly number: string; readonly params: Params }

/** Of any URI, in lower case; null when this is none. */
export const schemeOf = (text: string): string | null =>
  /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(text)?.[1]?.toLowerCase() ?? null

/** Null: another scheme, or malformed. */
export function readUri(text: string): SipUri | TelUri | null {
  const scheme = schemeOf(text)
  if (scheme === 'tel') return readTelUri(text.slice(4))
  return scheme === 'sip' || scheme === 'sips' ? readSipPart(scheme, text.slice(scheme.length + 1)) : null
}

export function readSipUri(text: string): SipUri | null {
  const uri = readUri(text)
  return uri?.scheme === 'tel' ? null : uri
}

/** A user may hold `?` and `;` as they are, so it is taken off first. §25.1. */
function readSipPart(scheme: SipUri['scheme'], text: string): SipUri | null {
  if (/[\s<>"]/.test(text)) return null
  const at = text.indexOf('@')
  if (at === 0 || text.includes('@', at + 1)) return null
  const [user, password] = at === -1 ? [null, null] : userInfoOf(text.slice(0, at))
  const behind = text.slice(at + 1)
  const question = behind.indexOf('?')
  const [place = '', ...pieces] = (question === -1 ? behind : behind.slice(0, question)).split(';')
  const hostPort = readHostPort(place)
  if (!hostPort) return null
  const headers = question === -1 ? null : behind.slice(question + 1)
  return { scheme, user, password, ...hostPort, params: readUriParams(pieces), headers }
}

function userInfoOf(text: string): [user: string, password: string | null] {
  const colon = text.indexOf(':')
  return colon === -1 ? [unescaped(text), null] : [unescaped(text.slice(0, colon)), unescaped(text.slice(colon + 1))]
}

function readUriParams(pieces: readonly string[]): Params {
  const params = new Map<string, string | null>()
  for (const piece of pieces) {
    const equals = piece.indexOf('=')
    const name = unescaped(equals === -1 ? piece : piece.slice(0, equals)).toLowerCase()
    if (name !== '' && !params.has(name)) params.set(name, equals === -1 ? null : unescaped(piece.slice(equals + 1)))
  }
  return params
}

function readTelUri(text: string): TelUri | null {
  const [number = '', ...pieces] = text.split(';')
  return /^\+?[0-9A-Fa-f*#().-]{1,64}$/.test(number) ? { scheme: 'tel', number, params: readUriParams(pieces) } : null
}

/** The number and what stands behind it: of a tel URI, and of the user of a SIP URI (`sip:+1212;ext=5@…`). RFC 3261 §19.1.6. */
export function subscriberOf(uri: SipUri | TelUri): { readonly number: string; readonly params: Params } | null {
  if (uri.scheme === 'tel') return { number: uri.number, params: uri.params }
  if (uri.user === null) return null
  const [number = '', ...pieces] = uri.user.split(';')
  return { number, params: pieces.length === 0 ? noParams : readUriParams(pieces) }
}

/** `%41` is `A`. What is no escape, or would be no UTF-8, stays as it is. */
function unescaped(text: string): string {
  if (!text.includes('%')) return text
  return text.replace(/(?:%[0-9A-Fa-f]{2})+/g, (escapes) => {
    const plain = Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('utf8')
    return plain.includes('\uFFFD') ? escapes : plain
  })
}

const escaped = (text: string, allowed: RegExp): string =>
  text.replace(/[\s\S]/gu, (character) =>
    allowed.test(character) ? character : [...Buffer.from(character)].map(escapeOf).join(''),
  )

const escapeOf = (byte: number): string => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`

/** What may stand without an escape. §25.1: user, password, paramchar. */
const inUser = /[A-Za-z0-9\-_.!~*'()&=+$,;?/]/
const inPassword = /[A-Za-z0-9\-_.!~*'()&=+$,]/
const inParam = /[A-Za-z0-9\-_.!~*'()[\]/:&+$]/

export function writeUri(uri: SipUri | TelUri): string {
  if (uri.scheme === 'tel') return `tel:${uri.number}${writeUriParams(uri.params)}`
  const password = uri.password === null ? '' : `:${escaped(uri.password, inPassword)}`
  const userInfo = uri.user === null ? '' : `${escaped(uri.user, inUser)}${password}@`
  const headers = uri.headers === null ? '' : `?${uri.headers}`
  return `${uri.scheme}:${userInfo}${hostPortText(uri.host, uri.port)}${writeUriParams(uri.params)}${headers}`
}

const writeUriParams = (params: Params): string =>
  [...params]
    .map(([name, value]) => `;${escaped(name, inParam)}${value === null ? '' : `=${escaped(value, inParam)}`}`)
    .join('')
