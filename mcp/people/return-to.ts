/** Owns where a person is sent after signing in: paths of this service, and nothing that a browser could take for another host. */

export const signInUrl = (returnTo: string): string => `/sign-in?returnTo=${encodeURIComponent(returnTo)}`

/** An authorization request with all its parameters. */
const maxLength = 8_000
/** Stands for whatever host the browser is at. */
const anywhere = 'http://host.invalid'

/**
 * Null: no path of ours. Browsers read `\` as `/` and leave out tabs and line ends (WHATWG URL section 4.4), so none of them may be there, and
 * neither the text nor the path without its dots may begin with two slashes.
 */
export function pathToReturnTo(text: string | null): string | null {
  if (text === null || text.length > maxLength || !/^\/(?!\/)[!-[\]-~]*$/.test(text)) return null
  if (!URL.canParse(text, anywhere)) return null
  const { origin, pathname, search } = new URL(text, anywhere)
  return origin === anywhere && !pathname.startsWith('//') ? pathname + search : null
}
