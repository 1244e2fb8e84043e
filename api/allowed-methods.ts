/** Owns the difference between 404 and 405. */

type Route = { readonly method: string; readonly path: string }

/** Which methods a path knows; empty when it is no path of the application. Middleware (method ALL) is no route. */
export function createAllowedMethods(routes: readonly Route[]): (path: string) => string[] {
  const patterns = routes
    .filter((route) => route.method !== 'ALL')
    .map(({ method, path }) => ({ method, pattern: patternOf(path) }))
  return (path) => {
    const found = new Set(patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))
    return found.has('GET') ? [...found, 'HEAD'].sort() : [...found].sort()
  }
}

function patternOf(path: string): RegExp {
  const segments = path.split('/').map((segment) => (segment.startsWith(':') ? '[^/]+' : RegExp.escape(segment)))
  return new RegExp(`^${segments.join('/')}$`)
}
