/**
 * Owns the answer that is ready: a status, a few headers, a text. It is a `Response` to everybody who takes it for one, and its plain parts
 * to a listener that knows it. A real one costs more than all the rest of a small request, because its body becomes a stream that the
 * listener has to read back.
 */
import { createLightHeaders } from './light-headers.ts'

const own = Symbol('ready response')

type State = { readonly text: string; readonly status: number; readonly headers: Headers; real: Response | null }
type Ready = { readonly [own]: State }

/** Throws TypeError for a status that has no body, as `Response` does. */
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

const members = {
  get status(): number {
    return stateOf(this).status
  },
  get headers(): Headers {
    return stateOf(this).headers
  },
  get ok(): boolean {
    const { status } = stateOf(this)
    return status >= 200 && status < 300
  },
  get body() {
    return realOf(this as unknown as Ready).body
  },
  get bodyUsed(): boolean {
    return stateOf(this).real?.bodyUsed ?? false
  },
  get redirected(): boolean {
    return false
  },
  get statusText(): string {
    return ''
  },
  get type(): Response['type'] {
    return 'default'
  },
  get url(): string {
    return ''
  },
  clone(this: Ready): Response {
    return this[own].real?.clone() ?? copyOf(this)
  },
  arrayBuffer(this: Ready) {
    return realOf(this).arrayBuffer()
  },
  blob(this: Ready) {
    return realOf(this).blob()
  },
  bytes(this: Ready) {
    return realOf(this).bytes()
  },
  formData(this: Ready) {
    return realOf(this).formData()
  },
  json(this: Ready) {
    return realOf(this).json()
  },
  text(this: Ready) {
    return realOf(this).text()
  },
}

const stateOf = (ready: unknown): State => (ready as Ready)[own]

/** Below the real prototype, so that `instanceof` says what a caller expects. */
const shape = Object.create(Response.prototype, Object.getOwnPropertyDescriptors(members)) as typeof members
