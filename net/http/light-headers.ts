/**
 * Owns headers that cost little while they stay ordinary: one printable value per name. They are `Headers` to everybody who takes them for
 * some; whatever is more than ordinary is left to real ones, which know how to write it, or throw.
 */
import { standInFor } from './stand-in.ts'

const own = Symbol('light headers')

/** Names are in lower case. They move from `plain` to `real` once and for all. */
type State = { readonly plain: Map<string, string>; real: Headers | null }
type Light = { readonly [own]: State }

/** Throws TypeError for what no header can be, as `Headers` does. Several of one name are joined as they do. */
export function createLightHeaders(pairs: Iterable<readonly [name: string, value: string]>): Headers {
  const headers = Object.create(shape) as { [own]: State }
  headers[own] = { plain: new Map(), real: null }
  for (const [name, value] of pairs) members.append.call(headers, name, value)
  return headers as unknown as Headers
}

/** Of any headers; the order of light ones is that of their making. */
export function pairsOf(headers: Headers): Iterable<readonly [name: string, value: string]> {
  if (!(own in headers)) return headers
  const { plain, real } = (headers as unknown as Light)[own]
  return real ?? plain
}

const plainName = /^[a-z\d-]+$/i
/** Printable ASCII without a space at either end: what real headers take over unchanged. */
const plainValue = /^[!-~](?:[ -~]*[!-~])?$/

/** Tested first: lower case makes plain letters of some that are none. */
const keyOf = (name: string): string | null => (plainName.test(name) ? name.toLowerCase() : null)
const isPlain = (value: string): boolean => typeof value === 'string' && plainValue.test(value)
const realOf = (light: Light): Headers => (light[own].real ??= new Headers([...light[own].plain]))

const members = {
  get(this: Light, name: string): string | null {
    const { plain, real } = this[own]
    const key = keyOf(name)
    return real || key === null ? realOf(this).get(name) : (plain.get(key) ?? null)
  },
  has(this: Light, name: string): boolean {
    const { plain, real } = this[own]
    const key = keyOf(name)
    return real || key === null ? realOf(this).has(name) : plain.has(key)
  },
  set(this: Light, name: string, value: string): void {
    const { plain, real } = this[own]
    const key = keyOf(name)
    if (!real && key !== null && isPlain(value)) plain.set(key, value)
    else realOf(this).set(name, value)
  },
  append(this: Light, name: string, value: string): void {
    const { plain, real } = this[own]
    const key = keyOf(name)
    if (!real && key !== null && !plain.has(key) && isPlain(value)) plain.set(key, value)
    else realOf(this).append(name, value)
  },
}

const shape = standInFor(Headers.prototype, realOf, members)
