/**
 * Owns what is taken over of what a client says of itself, registered (RFC 7591) or in its own document. All of it is self-asserted: names and
 * addresses are shown to people, nothing of it is believed. docs/contract/mcp.md "Clients".
 */
import { oneLine } from '../../model/one-line.ts'
import type { Json } from '../../model/json.ts'

export type Metadata = { readonly [name: string]: Json }

/** Throws it for what cannot be taken over; the message is for the client's developer. */
export class WrongMetadata extends Error {
  override readonly name = 'WrongMetadata'
  readonly code: 'invalid_client_metadata' | 'invalid_redirect_uri'
  constructor(message: string, code: WrongMetadata['code'] = 'invalid_client_metadata') {
    super(message)
    this.code = code
  }
}

const maxRedirectUris = 10
const maxUri = 2_000
const maxName = 100
const maxKeySet = 8_192
const loopbacks = ['localhost', '127.0.0.1', '[::1]']
const grantTypes = ['authorization_code', 'refresh_token']
/** Addresses of pages, which are shown as text and never fetched. */
const pages = ['client_uri', 'logo_uri', 'tos_uri', 'policy_uri']

/**
 * What is not ours to do is left out (RFC 7591 section 3.2.1): other grants, shared secrets, a list of scopes, which would bind a client that asks
 * for more later; the person decides. Every client is a native one to the library, which is the strict kind: https, a loopback address with any port,
 * or a scheme of its own (RFC 8252).
 */
export function metadataOf(given: Metadata): Metadata {
  const method = given['token_endpoint_auth_method']
  const known = ['client_id', 'software_id', 'software_version', 'client_id_issued_at']
  return {
    ...pick(given, known, (value) => typeof value === 'number' || (typeof value === 'string' && isPlain(value))),
    ...pick(given, pages, (value) => typeof value === 'string' && isPage(value)),
    client_name: nameOf(given['client_name']),
    redirect_uris: redirectUrisOf(given['redirect_uris']),
    grant_types: grantsOf(given['grant_types']),
    response_types: responseTypesOf(given['response_types']),
    token_endpoint_auth_method: method === 'private_key_jwt' ? method : 'none',
    ...(method === 'private_key_jwt' && keysOf(given)),
    application_type: 'native',
  }
}

/** Short, one line, nothing that turns or hides what stands around it. */
function nameOf(name: Json | undefined): string {
  if (name === undefined) return 'A client without a name'
  if (typeof name !== 'string') throw new WrongMetadata('client_name must be a string')
  const plain = name
    .normalize('NFC')
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  if (plain === '' || !oneLine(plain)) throw new WrongMetadata('client_name must be a line of text')
  const letters = Array.from(plain)
  return letters.length <= maxName ? plain : `${letters.slice(0, maxName - 1).join('')}…`
}

function redirectUrisOf(uris: Json | undefined): readonly string[] {
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > maxRedirectUris)
    throw new WrongMetadata(`redirect_uris must be a list of 1 to ${maxRedirectUris}`, 'invalid_redirect_uri')
  return uris.map((uri: Json) => {
    const wrong = wrongIn(uri)
    if (wrong !== null) throw new WrongMetadata(`redirect_uris: ${wrong}`, 'invalid_redirect_uri')
    return uri as string
  })
}

/** Schemes that run or show something by themselves. */
const dangerous = [
  'javascript:',
  'vbscript:',
  'data:',
  'blob:',
  'file:',
  'about:',
  'ws:',
  'wss:',
  'ftp:',
  'view-source:',
]

/** Null: answers may go there. */
function wrongIn(uri: Json): string | null {
  if (typeof uri !== 'string' || uri.length > maxUri || !/^[!-~]+$/.test(uri)) return 'must be URIs in ASCII'
  const url = URL.parse(uri)
  if (url === null) return 'must be absolute URIs'
  if (url.hash !== '' || uri.includes('#')) return 'must have no fragment'
  if (url.username !== '' || url.password !== '') return 'must carry no credentials'
  if (uri.includes('*') || uri.includes('\\')) return 'are taken literally: no * and no \\'
  if (url.protocol === 'https:')
    return loopbacks.includes(url.hostname) ? 'a loopback address is reached by http' : null
  if (url.protocol === 'http:')
    return loopbacks.includes(url.hostname) ? null : 'must be https, but for a loopback address'
  return dangerous.includes(url.protocol) ? `must not be of the scheme ${url.protocol.slice(0, -1)}` : null
}

function grantsOf(given: Json | undefined): readonly string[] {
  if (given === undefined) return grantTypes
  const wanted = listOf(given, 'grant_types').filter((type) => grantTypes.includes(type))
  if (!wanted.includes('authorization_code')) throw new WrongMetadata('grant_types must hold authorization_code')
  return wanted
}

function responseTypesOf(given: Json | undefined): readonly string[] {
  if (given !== undefined && !listOf(given, 'response_types').includes('code'))
    throw new WrongMetadata('response_types must hold code')
  return ['code']
}

function listOf(given: Json, name: string): readonly string[] {
  if (Array.isArray(given) && given.every((one) => typeof one === 'string')) return given
  throw new WrongMetadata(`${name} must be a list of strings`)
}

/** Of a client that proves who it is. */
function keysOf({ jwks, jwks_uri: uri, token_endpoint_auth_signing_alg: algorithm }: Metadata): Metadata {
  const signs = typeof algorithm === 'string' ? { token_endpoint_auth_signing_alg: algorithm } : {}
  if (typeof uri === 'string' && jwks === undefined) {
    if (uri.length > maxUri || URL.parse(uri)?.protocol !== 'https:') throw new WrongMetadata('jwks_uri must be https')
    return { jwks_uri: uri, ...signs }
  }
  if (uri !== undefined) throw new WrongMetadata('jwks and jwks_uri do not go together')
  if (typeof jwks !== 'object' || jwks === null || JSON.stringify(jwks).length > maxKeySet)
    throw new WrongMetadata('private_key_jwt needs jwks or jwks_uri')
  if (/\\u(?:0000|d[89a-f])/i.test(JSON.stringify(jwks))) throw new WrongMetadata('jwks must be text')
  return { jwks, ...signs }
}

const isPage = (uri: string): boolean => isPlain(uri) && ['https:', 'http:'].includes(URL.parse(uri)?.protocol ?? '')
const isPlain = (text: string): boolean => text.length <= maxUri && /^[ -~]*$/.test(text)

const pick = (given: Metadata, names: readonly string[], fits: (value: Json) => boolean): Metadata =>
  Object.fromEntries(
    names.flatMap((name) => (given[name] !== undefined && fits(given[name]) ? [[name, given[name]]] : [])),
  )

/** Where the answers of a client go, as people read it. */
export function redirectHostOf(uri: string): string {
  const { protocol, host } = new URL(uri)
  return ['https:', 'http:'].includes(protocol) ? host : `${protocol.slice(0, -1)}: (a program on this device)`
}

/** Any program of the machine may take the address. */
export const isOnThisDevice = (uri: string): boolean => {
  const { protocol, hostname } = new URL(uri)
  return protocol !== 'https:' || loopbacks.includes(hostname)
}
