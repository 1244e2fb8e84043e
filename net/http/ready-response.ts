/**
 * Owns the answer that is ready: a status, a few headers, a text. It is a `Response` to everybody who takes it for one, and its plain parts
 * to a listener that knows it. A real one costs more than all the rest of a small request, because its body becomes a stream that the
 * listener has to read back.
 */
import { createLightHeaders } from './light-headers.ts'
import { standInFor } from './stand-in.ts'

const own = Symbol('ready response')

type State = { readonly text: string; readonly status: number; readonly headers: Headers; real: Response | null }
type Ready = { readonly [own]: State }

/** Throws TypeError for a status that has no body, as `Response` does. The type of the content is among the headers, or nowhere. */
export function createReadyResponse(text: string, status: number, headers: Readonly<Record<string, string>>): Response {
  if (status < 200 || bodiless.includes(status)) throw new TypeError('an answer of this status has no body')
  const ready = Object.create(shape) as { [own]: State }
  ready[own] = { text, status, headers: createLightHeaders(Object.entries(headers)), real: null }
  return ready as unknown as Response
}

const bodiless = [204, 205, 304]

/** The body, ready to be sent; null for any other response. */
export const readyTextOf = (response: Response): string | null =>
  own in response ? (response as unknown as Ready)[own].text : null

/** Asked for its body only: the headers that count stay with the ready one. */
const realOf = (ready: Ready): Response => (ready[own].real ??= copyOf(ready))

const copyOf = ({ [own]: { text, status, headers } }: Ready): Response =>
  new Response(text, { status, headers: [...headers] })

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
