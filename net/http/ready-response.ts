/**
 * Owns the answer that is ready: a status, a few headers, a text or bytes. It is a `Response` to everybody who takes it for one, and its plain parts
 * to a listener that knows it. A real one costs more than all the rest of a small request, because its body becomes a stream that the
 * listener has to read back.
 */
import { createLightHeaders } from './light-headers.ts'
import { standInFor } from './stand-in.ts'

const own = Symbol('ready response')

type Body = string | Uint8Array<ArrayBuffer>
type State = { readonly body: Body; readonly status: number; readonly headers: Headers; real: Response | null }
type Ready = { readonly [own]: State }

/**
 * Throws TypeError for a status that has no body, as `Response` does. The type of the content is among the headers, or nowhere. Bytes are not
 * copied: however many clients read slowly, they are there once.
 */
export function createReadyResponse(body: Body, status: number, headers: Readonly<Record<string, string>>): Response {
  if (status < 200 || bodiless.includes(status)) throw new TypeError('an answer of this status has no body')
  const ready = Object.create(shape) as { [own]: State }
  ready[own] = { body, status, headers: createLightHeaders(Object.entries(headers)), real: null }
  return ready as unknown as Response
}

const bodiless = [204, 205, 304]

/** The body, ready to be sent; null for any other response. */
export const readyBodyOf = (response: Response): Body | null =>
  own in response ? (response as unknown as Ready)[own].body : null

/** Asked for its body only: the headers that count stay with the ready one. */
const realOf = (ready: Ready): Response => (ready[own].real ??= copyOf(ready))

const copyOf = ({ [own]: { body, status, headers } }: Ready): Response =>
  new Response(body, { status, headers: [...headers] })

const stateOf = (ready: object): State => (ready as Ready)[own]

const members = {
  get status(): number {
    return stateOf(this).status
  },
  get headers(): Headers {
    return stateOf(this).headers
  },
  clone(this: Ready): Response {
    return this[own].real?.clone() ?? copyOf(this)
  },
}

const shape = standInFor(Response.prototype, realOf, members)
