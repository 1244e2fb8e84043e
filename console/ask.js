/** Owns how the console asks the API: as who is signed in, with the token that a change needs, and errors as the API tells them. */

/** What a change carries besides the cookie. Set once the session is known. */
const token = { csrf: '' }

/** @param {string} csrf */
export const useToken = (csrf) => void (token.csrf = csrf)

/** What the API refused, in its own words. */
export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {{ type?: string, message?: string, issues?: { path: string, message: string }[], requestId?: string }} body
   */
  constructor(status, body) {
    super(body.message ?? `The service answered ${status}.`)
    this.status = status
    this.type = body.type ?? 'UNKNOWN'
    this.issues = body.issues ?? []
    this.requestId = body.requestId ?? null
  }
}

/**
 * @typedef {object} Wish
 * @property {string} [method]
 * @property {unknown} [json]
 * @property {FormData} [form]
 * @property {AbortSignal} [signal]
 * @property {boolean} [isLast] the page may be gone before the answer
 */

/**
 * The answer's JSON; null where it has none. Rejects with a Refusal. Who is not signed in any more is sent to sign in, and comes back.
 * @template [Answer=unknown]
 * @param {string} path
 * @param {Wish} [wish]
 * @returns {Promise<Answer>}
 */
export async function ask(path, { method = 'GET', json, form, signal, isLast = false } = {}) {
  const changes = method !== 'GET'
  const response = await fetch(path, {
    method,
    headers: {
      ...(changes && { 'x-csrf-token': token.csrf }),
      ...(json !== undefined && { 'content-type': 'application/json' }),
    },
    ...(json !== undefined && { body: JSON.stringify(json) }),
    ...(form && { body: form }),
    ...(signal && { signal }),
    ...(isLast && { keepalive: true }),
  }).catch((error) => {
    if (signal?.aborted) throw error
    throw new Refusal(0, { type: 'UNREACHABLE', message: 'The service cannot be reached. Is it running?' })
  })
  if (response.status === 401) signInAgain()
  if (response.status === 204) return /** @type {Answer} */ (null)
  const isJson = response.headers.get('content-type')?.includes('json') ?? false
  const body = isJson ? await response.json() : null
  if (!response.ok) throw new Refusal(response.status, body ?? {})
  return body
}

export function signInAgain() {
  const { pathname, search } = location
  location.assign(`/sign-in?returnTo=${encodeURIComponent(pathname + search)}`)
}
