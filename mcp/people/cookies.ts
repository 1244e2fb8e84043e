/** Owns the cookies of the pages: the session, and what ties a form that is made before there is one to its browser. */

/**
 * With `__Host-` a browser takes a cookie only from this very host over https, so that no neighbouring host puts one of its own in its place (RFC
 * 6265bis section 4.1.3.2). A plain host has no such names: they would be refused.
 */
const prefixOf = (isSecure: boolean): string => (isSecure ? '__Host-' : '')

export type CookieName = 'parley_session' | 'parley_form'

/** Null: there is none, or several, of which the browser does not say whose they are. */
export function readCookie(request: Request, name: CookieName, isSecure: boolean): string | null {
  const wanted = `${prefixOf(isSecure)}${name}=`
  const pairs = (request.headers.get('cookie') ?? '').split(';').map((pair) => pair.trim())
  const found = pairs.filter((pair) => pair.startsWith(wanted))
  return found.length === 1 ? (found[0] ?? '').slice(wanted.length) : null
}

/** As long as the browser runs. Lax: a link from elsewhere finds the person signed in, a form from elsewhere does not. */
export const setCookie = (name: CookieName, value: string, isSecure: boolean): string =>
  `${prefixOf(isSecure)}${name}=${value}; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`

export const removeCookie = (name: CookieName, isSecure: boolean): string =>
  `${setCookie(name, '', isSecure)}; Max-Age=0`
