/**
 * Owns that a form came from a page of this service that was made for this browser (CSRF): the browser says so (Origin, Sec-Fetch-Site), and the
 * form carries a token that follows from a cookie which no page can read. Before there is a session, a cookie of its own stands in for it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { Problem } from '../../model/problem.ts'
import type { SignedIn } from '../../model/user.ts'
import { createToken } from '../../store/token.ts'
import { readCookie, setCookie } from './cookies.ts'
import type { PageForm } from './page-form.ts'

/** Throws Problem ORIGIN_NOT_ALLOWED. */
export type CheckCsrf = (request: Request, form: Pick<PageForm, 'one'>, signedIn: Pick<SignedIn, 'csrf'>) => void

export type FormGuard = {
  /** By https, as the browser has it: a proxy may stand before this service. */
  isSecure(request: Request): boolean
  readonly checkCsrf: CheckCsrf
  /** Of a form that nobody is signed in for. `cookies`: to be set with its page. */
  tokenFor(request: Request): { readonly csrf: string; readonly cookies: readonly string[] }
  /** Throws Problem ORIGIN_NOT_ALLOWED for what other pages send. */
  requireOwnOrigin(request: Request): void
  /** Of the same form. False: its page is from before; the person may send it again. */
  isFromOwnPage(request: Request, form: Pick<PageForm, 'one'>): boolean
}

/** It tells nothing of the secret behind it. */
export const csrfOf = (secret: string): string => createHmac('sha256', secret).update('csrf').digest('base64url')

/** `publicUrl`: where people have the service; null: at the host that a request names. */
export function createFormGuard(publicUrl: string | null): FormGuard {
  const ownOrigin = (request: Request): string => new URL(publicUrl ?? request.url).origin
  const isSecure = (request: Request): boolean => ownOrigin(request).startsWith('https:')
  const requireOwnOrigin = (request: Request): void => {
    if (!isOwn(request, ownOrigin(request))) throw foreign(ownOrigin(request))
  }
  return {
    isSecure,
    requireOwnOrigin,
    checkCsrf(request, form, { csrf }) {
      requireOwnOrigin(request)
      if (!isEqual(form.one('csrf'), csrf)) throw foreign(ownOrigin(request))
    },
    tokenFor(request) {
      const secure = isSecure(request)
      const known = readCookie(request, 'parley_form', secure)
      if (known !== null && known !== '') return { csrf: csrfOf(known), cookies: [] }
      const made = createToken()
      return { csrf: csrfOf(made), cookies: [setCookie('parley_form', made, secure)] }
    },
    isFromOwnPage(request, form) {
      const known = readCookie(request, 'parley_form', isSecure(request))
      return known !== null && known !== '' && isEqual(form.one('csrf'), csrfOf(known))
    },
  }
}

/**
 * Browsers send both, or, older ones, Origin alone. `null` is what they say of a page whose origin is nobody's business (a sandbox, a file, a
 * redirect), so it counts only with the other one beside it. What is no browser sends neither, and has no cookie that it was tricked into using.
 */
function isOwn(request: Request, own: string): boolean {
  const origin = request.headers.get('origin')
  const site = request.headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin' && site !== 'none') return false
  if (origin === null) return true
  return origin === own || (origin === 'null' && site === 'same-origin')
}

function isEqual(given: string | null, wanted: string): boolean {
  const [one, other] = [Buffer.from(given ?? ''), Buffer.from(wanted)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** Whoever looks after a service may have opened it by another of its names. */
const foreign = (own: string): Problem =>
  new Problem(
    'ORIGIN_NOT_ALLOWED',
    `This form did not come from a page of this service that you opened. Open the page again, at ${own}.`,
  )
