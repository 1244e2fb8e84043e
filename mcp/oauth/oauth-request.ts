/** Owns what is taken of a request before the library sees it, and errors as RFC 6749 section 5.2 shapes them. */

const maxQuery = 8 * 1024
const maxBody = 32 * 1024

export type OauthErrorCode =
  'invalid_request' | 'invalid_client_metadata' | 'invalid_redirect_uri' | 'invalid_target' | 'temporarily_unavailable'

export const oauthError = (error: OauthErrorCode, description: string, status = 400, headers = {}): Response =>
  Response.json({ error, error_description: description }, { status, headers })

/** Whatever else a client sends is nothing to the library. */
const passed = ['accept', 'authorization', 'content-type', 'cookie', 'origin']

export const headersOf = ({ headers }: Request): Record<string, string> =>
  Object.fromEntries(passed.flatMap((name) => [[name, headers.get(name)] as const]).filter(isGiven))

const isGiven = (pair: readonly [string, string | null]): pair is readonly [string, string] => pair[1] !== null

/** Null: it can be asked. What holds a NUL can be stored nowhere. */
export function wrongInQuery(search: string): Response | null {
  if (search.length > maxQuery) return oauthError('invalid_request', `the query may have ${maxQuery} characters`, 414)
  return /%00/.test(search) ? oauthError('invalid_request', 'the query holds a NUL') : null
}

/** The answer to a body that is none. */
export async function readBody(request: Request): Promise<Uint8Array<ArrayBuffer> | Response> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBody) return tooLarge()
  const bytes = new Uint8Array(await request.arrayBuffer())
  if (bytes.length > maxBody) return tooLarge()
  const holdsNul = bytes.includes(0) || Buffer.from(bytes).includes('%00')
  return holdsNul ? oauthError('invalid_request', 'the body holds a NUL') : bytes
}

const tooLarge = (): Response => oauthError('invalid_request', `the body may have ${maxBody} bytes`, 413)
