/**
 * Owns the words of digest authentication: challenges, credentials and the response that proves a password. RFC 3261 §22, RFC 7616,
 * RFC 8760. Only what peers use: MD5 and SHA-256, also as `-sess`, `qop=auth` or none. Nonces and admission are decided elsewhere.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { endOfQuote, quoted, unquoted } from './header-text.ts'

const algorithms = ['MD5', 'MD5-sess', 'SHA-256', 'SHA-256-sess'] as const
export type DigestAlgorithm = (typeof algorithms)[number]

export type DigestChallenge = {
  readonly realm: string
  readonly nonce: string
  readonly opaque: string | null
  /** The nonce was too old, the password was right. */
  readonly stale: boolean
  readonly algorithm: DigestAlgorithm
  /** False: no `qop` at all, as RFC 2069 had it. */
  readonly qopAuth: boolean
}

export type DigestCredentials = {
  readonly username: string
  readonly realm: string
  readonly nonce: string
  /** As the sender hashed it; it need not be the Request-URI to the letter. */
  readonly uri: string
  readonly response: string
  readonly algorithm: DigestAlgorithm
  readonly opaque: string | null
  /** Both null where no qop is used. `nc` is 8 digits of hex. */
  readonly nc: string | null
  readonly cnonce: string | null
}

/** A header of more parameters than this is hostile. */
const maxParams = 32

/** Of one WWW-Authenticate or Proxy-Authenticate field. Null: no digest, or one that cannot be answered. */
export function readChallenge(value: string): DigestChallenge | null {
  const params = digestParamsOf(value)
  const algorithm = algorithmOf(params?.get('algorithm'))
  const [realm, nonce] = [params?.get('realm'), params?.get('nonce')]
  if (!params || !algorithm || realm === undefined || nonce === undefined) return null
  const qops = params
    .get('qop')
    ?.toLowerCase()
    .split(/[\s,]+/)
  if (qops && !qops.includes('auth')) return null
  // Its key is made of a cnonce, which there is with qop only.
  if (isOfSession(algorithm) && !qops) return null
  const stale = params.get('stale')?.toLowerCase() === 'true'
  return { realm, nonce, opaque: params.get('opaque') ?? null, stale, algorithm, qopAuth: qops !== undefined }
}

export function writeChallenge({ realm, nonce, opaque, stale, algorithm, qopAuth }: DigestChallenge): string {
  return [
    `Digest realm=${quoted(realm)}, nonce=${quoted(nonce)}`,
    ...(opaque === null ? [] : [`opaque=${quoted(opaque)}`]),
    ...(stale ? ['stale=true'] : []),
    `algorithm=${algorithm}`,
    ...(qopAuth ? ['qop="auth"'] : []),
  ].join(', ')
}

/** Of one Authorization or Proxy-Authorization field. Null: no digest, or one that cannot be checked. */
export function readCredentials(value: string): DigestCredentials | null {
  const params = digestParamsOf(value)
  const algorithm = algorithmOf(params?.get('algorithm'))
  if (!params || !algorithm) return null
  const [username, realm, nonce, uri, response] = ['username', 'realm', 'nonce', 'uri', 'response'].map((name) =>
    params.get(name),
  )
  if (!username || realm === undefined || !nonce || !uri || !response) return null
  const [qop, nc = null, cnonce = null] = [params.get('qop'), params.get('nc'), params.get('cnonce')]
  const isWhole =
    qop === undefined || (qop.toLowerCase() === 'auth' && /^[0-9a-f]{8}$/i.test(nc ?? '') && cnonce !== null)
  if (!isWhole || !/^[0-9a-f]{32,64}$/i.test(response)) return null
  const counted = qop === undefined ? { nc: null, cnonce: null } : { nc, cnonce }
  if (isOfSession(algorithm) && counted.cnonce === null) return null
  return { username, realm, nonce, uri, response, algorithm, opaque: params.get('opaque') ?? null, ...counted }
}

export function writeCredentials(credentials: DigestCredentials): string {
  const { username, realm, nonce, uri, response, algorithm, opaque, nc, cnonce } = credentials
  return [
    `Digest username=${quoted(username)}, realm=${quoted(realm)}, nonce=${quoted(nonce)}, uri=${quoted(uri)}`,
    `response=${quoted(response)}, algorithm=${algorithm}`,
    ...(opaque === null ? [] : [`opaque=${quoted(opaque)}`]),
    ...(nc === null ? [] : [`qop=auth, nc=${nc}, cnonce=${quoted(cnonce ?? '')}`]),
  ].join(', ')
}

/** What `response` must be for this password. RFC 7616 §3.4.1. */
export function digestResponseOf(
  { username, realm, nonce, uri, algorithm, nc, cnonce }: Omit<DigestCredentials, 'response' | 'opaque'>,
  method: string,
  password: string,
): string {
  const hash = (text: string): string =>
    createHash(algorithm.startsWith('MD5') ? 'md5' : 'sha256')
      .update(text)
      .digest('hex')
  const once = nc === null ? nonce : `${nonce}:${nc}:${cnonce ?? ''}:auth`
  const secret = hash(`${username}:${realm}:${password}`)
  const key = isOfSession(algorithm) ? hash(`${secret}:${nonce}:${cnonce ?? ''}`) : secret
  return hash(`${key}:${once}:${hash(`${method}:${uri}`)}`)
}

/** Takes as long for a response that is nearly right as for any other. */
export function provesPassword(credentials: DigestCredentials, method: string, password: string): boolean {
  const expected = Buffer.from(digestResponseOf(credentials, method, password))
  const given = Buffer.from(credentials.response.toLowerCase())
  return given.length === expected.length && timingSafeEqual(given, expected)
}

/** Absent is MD5. RFC 7616 §3.3. SHA-512-256 is not taken, because no peer needs it. */
function algorithmOf(text = 'MD5'): DigestAlgorithm | null {
  return algorithms.find((algorithm) => algorithm.toLowerCase() === text.toLowerCase()) ?? null
}

/** RFC 7616 §3.4.2. */
const isOfSession = (algorithm: DigestAlgorithm): boolean => algorithm.endsWith('-sess')

/** auth-param grammar: `name = token | "quoted"`, separated by commas. Said twice is malformed. RFC 7616 §3.3, §3.4. */
function digestParamsOf(value: string): ReadonlyMap<string, string> | null {
  const text = value.trim()
  if (!/^digest\s/i.test(text)) return null
  const params = new Map<string, string>()
  let at = 'digest'.length
  while (at < text.length) {
    const param = paramAt(text, at)
    if (!param || params.has(param.name) || params.size === maxParams) return null
    if (param.name !== '') params.set(param.name, param.value)
    at = param.end
  }
  return params
}

/** One parameter with the comma behind it; an empty one has no name. */
function paramAt(text: string, start: number): { name: string; value: string; end: number } | null {
  const sticky = /\s*(?:([A-Za-z0-9*_-]+)\s*=\s*)?/y
  sticky.lastIndex = start
  const name = sticky.exec(text)?.[1]?.toLowerCase() ?? ''
  const from = sticky.lastIndex
  const to = text[from] === '"' ? endOfQuote(text, from) : endOfToken(text, from)
  const comma = /\s*(?:,|$)/y
  comma.lastIndex = to
  if (to === -1 || (name === '') !== (from === to) || !comma.test(text)) return null
  return { name, value: unquoted(text.slice(from, to)), end: comma.lastIndex }
}

function endOfToken(text: string, start: number): number {
  const token = /[^\s,"]*/y
  token.lastIndex = start
  token.test(text)
  return token.lastIndex
}
