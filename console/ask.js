/** Owns how the console asks the API: as who is signed in, with the token that a change needs, and errors as the API tells them. */

/** What a change carries besides the cookie, and whose it is. Set once the session is known. */
const token = { csrf: '', userId: '' }

/** @param {import('./answers').Session} session */
export const useToken = ({ csrf, user }) => void Object.assign(token, { csrf, userId: user.id })

/** What the API refused, in its own words. */
export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {{ type?: string, details?: string, issues?: { path: string, message: string }[], requestId?: string }} body
   */
  constructor(status, body) {
    super(body.details ?? `The service answered ${status}.`)
    this.status = status
    this.type = body.type ?? 'UNKNOWN'
    this.issues = body.issues ?? []
    this.requestId = body.requestId ?? null
  }
}

/** What is gone when it is asked again in a while: the service or its database is away. @param {unknown} error */
export const isPassing = (error) => error instanceof Refusal && (error.status === 0 || error.status >= 502)

/**
 * @typedef {object} Wish
 * @property {string} [method]
 * @property {unknown} [json]
 * @property {FormData} [form]
 * @property {AbortSignal} [signal]
 * @property {boolean} [isLast] the page may be gone before the answer
 */

/** @param {string} path @param {Wish} wish @returns {Promise<Response>} */
function send(path, { method = 'GET', json, form, signal, isLast = false }) {
  return fetch(path, {
    method,
    headers: {
      ...(method !== 'GET' && { 'x-csrf-token': token.csrf }),
      ...(json !== undefined && { 'content-type': 'application/json' }),
    },
    ...(json !== undefined && { body: JSON.stringify(json) }),
    ...(form && { body: form }),
    ...(signal && { signal }),
    ...(isLast && { keepalive: true }),
  }).catch((error) => {
    if (signal?.aborted) throw error
    throw new Refusal(0, { type: 'UNREACHABLE', details: 'The service cannot be reached. Is it running?' })
  })
}

/** @param {Response} response */
async function bodyOf(response) {
  const isJson = response.headers.get('content-type')?.includes('json') ?? false
  return isJson ? await response.json() : null
}

/**
 * The answer's JSON; null where it has none. Rejects with a Refusal. Who is not signed in any more is sent to sign in and comes back, or is told so where
 * something is being typed.
 * @template [Answer=unknown]
 * @param {string} path
 * @param {Wish} [wish]
 * @returns {Promise<Answer>}
 */
export async function ask(path, wish = {}) {
  const response = await send(path, wish)
  if (response.status === 401) signInAgain()
  if (response.status === 204) return /** @type {Answer} */ (null)
  const body = await bodyOf(response)
  if (response.ok) return body
  const refusal = new Refusal(response.status, body ?? {})
  const isOfOldSession = refusal.type === 'ORIGIN_NOT_ALLOWED' && wish.method !== undefined
  if (isOfOldSession && (await renewToken(token.csrf))) return ask(path, wish)
  throw refusal
}

/**
 * Who has signed in again in another window has another token. False: it is the same, and something else is wrong.
 * @param {string} former
 */
async function renewToken(former) {
  const response = await send('/console/session', {})
  if (!response.ok) return false
  const session = /** @type {import('./answers').Session} */ (await bodyOf(response))
  // Somebody else's page is another one.
  if (session.user.id !== token.userId) location.reload()
  useToken(session)
  return session.csrf !== former && session.user.id === token.userId
}

/** Fields that somebody has written into. @type {WeakSet<EventTarget>} */
const written = new WeakSet()
addEventListener('input', ({ target }) => void (target && written.add(target)))

/** @type {Set<() => void>} */
const watchers = new Set()

/** Called when nobody is signed in any more while something is being typed, which would be lost. @param {() => void} watcher */
export function onSignedOut(watcher) {
  watchers.add(watcher)
  return () => void watchers.delete(watcher)
}

export const signInAddress = () => `/sign-in?returnTo=${encodeURIComponent(location.pathname + location.search)}`

function signInAgain() {
  const isTyping = [...document.querySelectorAll('main input, main textarea')].some((field) => written.has(field))
  if (isTyping && watchers.size > 0) watchers.forEach((watcher) => watcher())
  else location.assign(signInAddress())
}
