/**
 * Owns requests that cost little as long as nobody asks more of them than method, URL, headers, signal and the whole of the body, once. They
 * are `Request` to everybody who takes them for one; a real one is made for the rest. `new Request(light)` is the one thing that does not
 * work: `light.clone()` does, of a request without a body.
 *
 * A body is not there yet: it is asked for when somebody reads it, and a request that is refused without a look at its body never has it.
 */
import { createLightHeaders } from './light-headers.ts'
import { standInFor } from './stand-in.ts'

const own = Symbol('light request')

/** Called once at most. What it rejects with is what the reader of the request gets. */
export type ReadBody = () => Promise<Uint8Array<ArrayBuffer>>

type State = {
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly signal: AbortSignal
  /** Null: there is none, or it was read. */
  readBody: ReadBody | null
  wasRead: boolean
  real: Request | null
}
type Light = { readonly [own]: State }

export type LightHead = Pick<State, 'method' | 'url' | 'signal'> & {
  readonly headers: Iterable<readonly [name: string, value: string]>
}

/**
 * Those that a `Request` takes as they are written, and that need no look at its rules; and TRACE, which none can be made of, so that whoever is asked by it
 * can say that it is not allowed (RFC 9110 section 15.5.6).
 */
const plainMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])

/**
 * Throws TypeError where `new Request` would: a URL that is none or holds credentials, a header or a method that none can be, a body of GET
 * or HEAD.
 */
export function createLightRequest(head: LightHead, readBody: ReadBody | null = null): Request {
  const { method, url, headers, signal } = head
  if (!plainMethods.has(method)) return realWith(head, readBody)
  const { href, username, password } = new URL(url)
  if (username !== '' || password !== '') throw new TypeError('a URL with credentials')
  if (readBody && (method === 'GET' || method === 'HEAD')) throw new TypeError('no body belongs to such a request')
  const request = Object.create(shape) as { [own]: State }
  const state = {
    method,
    url: href,
    headers: createLightHeaders(headers),
    signal,
    readBody,
    wasRead: false,
    real: null,
  }
  request[own] = state
  return request as unknown as Request
}

const stateOf = (light: object): State => (light as Light)[own]

function realWith({ method, url, headers, signal }: LightHead, readBody: ReadBody | null): Request {
  const body = readBody && streamOf(readBody)
  const request = new Request(url, {
    method,
    headers: [...headers] as [string, string][],
    body,
    duplex: 'half',
  } as RequestInit)
  // Given to the constructor it would be followed by a second one, which costs as much as all the rest.
  return Object.defineProperty(request, 'signal', { value: signal })
}

/** Nothing is asked for before somebody reads. */
const streamOf = (readBody: ReadBody): ReadableStream<Uint8Array<ArrayBuffer>> =>
  new ReadableStream(
    {
      async pull(controller) {
        const bytes = await readBody()
        if (bytes.length > 0) controller.enqueue(bytes)
        controller.close()
      },
    },
    { highWaterMark: 0 },
  )

function copyOf({ [own]: state }: Light, readBody: ReadBody | null): Request {
  const { method, url, headers, signal } = state
  return realWith({ method, url, headers, signal }, readBody)
}

/** It has the body from now on. */
function realOf(light: Light): Request {
  const state = light[own]
  state.real ??= copyOf(light, state.wasRead ? gone : state.readBody)
  state.readBody = null
  return state.real
}

const gone = (): Promise<never> => Promise.reject(wasRead())
const wasRead = (): TypeError => new TypeError('Body is unusable: Body has already been read')

/** Null: the real one has it. */
async function bytesOf(light: Light): Promise<Uint8Array<ArrayBuffer> | null> {
  const state = light[own]
  if (state.wasRead) throw wasRead()
  const { readBody } = state
  if (!readBody) return null
  state.readBody = null
  state.wasRead = true
  return readBody()
}

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
  get bodyUsed() {
    const { wasRead: used, real } = stateOf(this)
    return used || (real?.bodyUsed ?? false)
  },
  async arrayBuffer(this: Light): Promise<ArrayBuffer> {
    const bytes = await bytesOf(this)
    if (!bytes) return realOf(this).arrayBuffer()
    return bytes.byteLength === bytes.buffer.byteLength ? bytes.buffer : bytes.slice().buffer
  },
  async bytes(this: Light): Promise<Uint8Array<ArrayBuffer>> {
    return (await bytesOf(this)) ?? new Uint8Array(await realOf(this).arrayBuffer())
  },
  async text(this: Light): Promise<string> {
    const bytes = await bytesOf(this)
    return bytes ? new TextDecoder().decode(bytes) : realOf(this).text()
  },
  async json(this: Light): Promise<unknown> {
    return JSON.parse(await members.text.call(this))
  },
  clone(this: Light): Request {
    const { readBody, wasRead: used } = this[own]
    if (used) throw wasRead()
    return readBody ? realOf(this).clone() : (this[own].real?.clone() ?? copyOf(this, null))
  },
}

const shape = standInFor(Request.prototype, realOf, members)
