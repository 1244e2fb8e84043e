/**
 * Owns headers that cost little while they stay ordinary: one printable value per name. They are `Headers` to everybody who takes them for
 * some; whatever is more than ordinary is left to real ones, which know how to write it, or throw.
 */

const own = Symbol('light headers')

/** Names are in lower case. They move from `plain` to `real` once and for all. */
type State = { readonly plain: Map<string, string>; real: Headers | null }
type Light = { readonly [own]: State }

/** Throws TypeError for what no header can be, as `Headers` does. Several of one name are joined as they do. */
export function createLightHeaders(pairs: Iterable<readonly [name: string, value: string]>): Headers {
  const headers = Object.create(shape) as { [own]: State }
  headers[own] = { plain: new Map(), real: null }
  for (const [name, value] of pairs) shape.append.call(headers, name, value)
  return headers as unknown as Headers
}

/** Of any headers; the order of light ones is that of their making. */
export function pairsOf(headers: Headers): Iterable<readonly [name: string, value: string]> {
  if (!(own in headers)) return headers
  const { plain, real } = (headers as unknown as Light)[own]
  return real ?? plain
}

const plainName = /^[a-z\d-]+$/
/** Printable ASCII without a space at either end: what real headers take over unchanged. */
const plainValue = /^[!-~](?:[ -~]*[!-~])?$/

const isPlain = (name: string, value: string): boolean => plainName.test(name) && plainValue.test(value)
const realOf = (light: Light): Headers => (light[own].real ??= new Headers([...light[own].plain]))

const members = {
  get(this: Light, name: string): string | null {
    const { plain, real } = this[own]
    const key = name.toLowerCase()
    return real || !plainName.test(key) ? realOf(this).get(name) : (plain.get(key) ?? null)
  },
  has(this: Light, name: string): boolean {
    const { plain, real } = this[own]
    const key = name.toLowerCase()
    return real || !plainName.test(key) ? realOf(this).has(name) : plain.has(key)
  },
  set(this: Light, name: string, value: string): void {
    const { plain, real } = this[own]
    const key = name.toLowerCase()
    if (real === null && isPlain(key, value)) plain.set(key, value)
    else realOf(this).set(name, value)
  },
  append(this: Light, name: string, value: string): void {
    const { plain, real } = this[own]
    const key = name.toLowerCase()
    if (real === null && !plain.has(key) && isPlain(key, value)) plain.set(key, value)
    else realOf(this).append(name, value)
  },
  delete(this: Light, name: string): void {
    realOf(this).delete(name)
  },
  getSetCookie(this: Light): string[] {
    return realOf(this).getSetCookie()
  },
  forEach(this: Light, each: Parameters<Headers['forEach']>[0], self?: unknown): void {
    realOf(this).forEach(each, self)
  },
  entries(this: Light) {
    return realOf(this).entries()
  },
  keys(this: Light) {
    return realOf(this).keys()
  },
  values(this: Light) {
    return realOf(this).values()
  },
  [Symbol.iterator](this: Light) {
    return realOf(this)[Symbol.iterator]()
  },
}

/** Below the real prototype, so that `instanceof` says what a caller expects. */
const shape = Object.create(Headers.prototype, Object.getOwnPropertyDescriptors(members)) as typeof members
