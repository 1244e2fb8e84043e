/**
 * Owns requests without a body as long as nobody asks more of them than method, URL, headers and signal. They are `Request` to everybody
 * who takes them for one; a real one is made for the rest. `new Request(light)` is the one thing that does not work: `light.clone()` does.
 */
import { createLightHeaders } from './light-headers.ts'
import { standInFor } from './stand-in.ts'

const own = Symbol('light request')

type State = {
  readonly method: 'GET' | 'HEAD'
  readonly url: string
  readonly headers: Headers
  readonly signal: AbortSignal
  real: Request | null
}
type Light = { readonly [own]: State }

export type BodilessHead = Pick<State, 'method' | 'url' | 'signal'> & {
  readonly headers: Iterable<readonly [name: string, value: string]>
}

/** Throws TypeError where `new Request` would: a URL that is none or holds credentials, a header that none can be. */
export function createLightRequest({ method, url, headers, signal }: BodilessHead): Request {
  const { href, username, password } = new URL(url)
  if (username !== '' || password !== '') throw new TypeError('a URL with credentials')
  const request = Object.create(shape) as { [own]: State }
  request[own] = { method, url: href, headers: createLightHeaders(headers), signal, real: null }
  return request as unknown as Request
}

const stateOf = (light: object): State => (light as Light)[own]

const copyOf = ({ [own]: { method, url, headers, signal } }: Light): Request =>
  new Request(url, { method, headers: [...headers], signal })

const realOf = (light: Light): Request => (light[own].real ??= copyOf(light))

const members = {
  get method() {
    return stateOf(this).method
  },
  get url() {
    return stateOf(this).url
  },
  get headers() {
    return stateOf(this).headers
  },
  get signal() {
    return stateOf(this).signal
  },
  clone(this: Light): Request {
    return copyOf(this)
  },
}

const shape = standInFor(Request.prototype, realOf, members)
