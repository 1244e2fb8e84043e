/**
 * Owns one OpenAI-compatible HTTP endpoint: requests out, answers in, every stage in its time and every answer bounded. No redirects, no proxies. The
 * key stands in the Authorization header and nowhere else; what goes wrong is told without it, and without words of the talk.
 */
import type { Agent, Dispatcher } from 'undici'
import type { Clock } from '../../../model/clock.ts'
import { unlessAborted } from '../../../model/deadline.ts'
import { retry } from '../../../model/retry.ts'
import { errorBodyOf, type ErrorBody } from './error-body.ts'
import { parsedObject } from './fields.ts'

export type EndpointAddress = {
  /** The base, ending in `/v1` as a rule; a mere host has its interface there. */
  readonly url: string
  readonly model: string
  readonly apiKey: string | null
}

export type EndpointRequest = {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly contentType?: string
  readonly body?: string | Buffer
  readonly accept: string
  readonly signal: AbortSignal
  /** Ms: to the head of the answer, between its pieces, and over everything. */
  readonly waits: Waits
  readonly maxBytes: number
}
export type Waits = { readonly head: number; readonly idle: number; readonly whole: number }

export type EndpointAnswer = {
  readonly contentType: string
  /** To be iterated, to its end or not. Throws EndpointError. */
  readonly body: AsyncGenerator<Uint8Array, void, undefined>
}

/** Throws EndpointError, for any status but 2xx too. */
export type Endpoint = { ask(request: EndpointRequest): Promise<EndpointAnswer> }

type Failure = {
  /** Of the answer; null when there was none. */
  readonly status?: number
  /** As the endpoint named what is wrong, and where. */
  readonly code?: string
  readonly param?: string
  /** It says that it has not got this model. */
  readonly lacksModel?: boolean
  /** What it was told is more than the model can take in. */
  readonly isTooLong?: boolean
  /** A filter takes offence at what it was told. */
  readonly isFiltered?: boolean
  readonly retryAfter?: number | null
}

export class EndpointError extends Error {
  override readonly name = 'EndpointError'
  readonly status: number | null
  readonly code: string | null
  readonly param: string | null
  readonly lacksModel: boolean
  readonly isTooLong: boolean
  readonly isFiltered: boolean
  /** Ms, as the endpoint asked for. */
  readonly retryAfter: number | null
  constructor(message: string, failure: Failure = {}) {
    super(message)
    this.status = failure.status ?? null
    this.code = failure.code ?? null
    this.param = failure.param ?? null
    this.lacksModel = failure.lacksModel ?? false
    this.isTooLong = failure.isTooLong ?? false
    this.isFiltered = failure.isFiltered ?? false
    this.retryAfter = failure.retryAfter ?? null
  }
  /** A moment later it may well succeed. */
  get isPassing(): boolean {
    if (this.code === 'insufficient_quota' || this.isFiltered) return false
    return this.status === null || this.status >= 500 || [408, 409, 425, 429].includes(this.status)
  }
}

/** An answer that is no refusal by its status, but is one all the same. */
export function errorOfBody({ code, status, isTooLong, isFiltered }: ErrorBody): EndpointError {
  return new EndpointError(`it gave up (${code})`, { code, isTooLong, isFiltered, ...(status !== null && { status }) })
}

const errorBytes = 16 * 1024

export function createEndpoint(deps: { address: EndpointAddress; agent: Agent; clock: Clock }): Endpoint {
  const { address, agent, clock } = deps
  const url = new URL(address.url.replace(/\/+$/, ''))
  const origin = url.origin
  const prefix = url.pathname === '/' ? '/v1' : url.pathname
  const authorization = address.apiKey === null ? {} : { authorization: `Bearer ${address.apiKey}` }

  return {
    async ask({ method, path, contentType, body, accept, signal, waits, maxBytes }) {
      const watch = createWatch(clock, signal, waits)
      try {
        const answer = await watch.unlessEnded(
          agent.request({
            origin,
            path: prefix + path,
            method,
            headers: { accept, ...authorization, ...(contentType !== undefined && { 'content-type': contentType }) },
            body: body ?? null,
            signal: watch.signal,
          }),
        )
        // An answer that is given up may still have something to say about it.
        answer.body.on('error', () => undefined)
        const chunks = chunksOf(answer.body, watch, answer.statusCode < 300 ? maxBytes : errorBytes)
        if (answer.statusCode < 200 || answer.statusCode > 299) throw await refusalOf(answer, chunks)
        return { contentType: headerOf(answer, 'content-type').toLowerCase(), body: chunks }
      } catch (error) {
        watch.end()
        throw error instanceof EndpointError ? error : watch.errorOf(error)
      }
    },
  }
}

const headerOf = ({ headers }: Dispatcher.ResponseData, name: string): string => String(headers[name] ?? '')

type Watch = ReturnType<typeof createWatch>

/** Ends a request that is late or not wanted any more. */
function createWatch(clock: Clock, wanted: AbortSignal, waits: Waits) {
  const ending = new AbortController()
  let cause: string | null = null
  const end = (why: string | null): void => {
    cause ??= why
    ending.abort()
  }
  const unwanted = (): void => end('it is not wanted any more')
  if (wanted.aborted) unwanted()
  wanted.addEventListener('abort', unwanted, { once: true })
  const cancelWhole = clock.after(waits.whole, () => end(`it took longer than ${waits.whole} ms`))
  let cancelStage = clock.after(waits.head, () => end(`it did not answer within ${waits.head} ms`))

  return {
    signal: ending.signal,
    /** The next piece is waited for, or nothing is. */
    expect(isExpected: boolean): void {
      cancelStage()
      if (isExpected) cancelStage = clock.after(waits.idle, () => end(`its answer stopped for ${waits.idle} ms`))
    },
    end(): void {
      cancelStage()
      cancelWhole()
      wanted.removeEventListener('abort', unwanted)
    },
    /** undici notices the signal only once a connection is there. */
    unlessEnded: <Value>(work: Promise<Value>): Promise<Value> => unlessAborted(work, ending.signal),
    errorOf: (error: unknown) => new EndpointError(cause ?? `it cannot be reached: ${reasonOf(error)}`),
  }
}

const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

async function* chunksOf(body: Dispatcher.ResponseData['body'], watch: Watch, maxBytes: number) {
  let bytes = 0
  try {
    watch.expect(true)
    for await (const chunk of body) {
      watch.expect(false)
      bytes += (chunk as Buffer).length
      if (bytes > maxBytes) throw new EndpointError(`it answered more than ${maxBytes} bytes`, { status: 200 })
      yield chunk as Uint8Array
      watch.expect(true)
    }
  } catch (error) {
    throw error instanceof EndpointError ? error : watch.errorOf(error)
  } finally {
    watch.end()
    body.destroy()
  }
}

async function refusalOf(answer: Dispatcher.ResponseData, chunks: AsyncIterable<Uint8Array>): Promise<EndpointError> {
  const status = answer.statusCode
  const retryAfter = retryAfterOf(headerOf(answer, 'retry-after'))
  try {
    const body = errorBodyOf(parsedObject(await textOf(chunks)))
    const { code = 'error', param = null, lacksModel = false, isTooLong = false, isFiltered = false } = body ?? {}
    const isNamed = code !== 'error' && code !== String(status)
    return new EndpointError(`it answered ${status}${isNamed ? ` (${code})` : ''}`, {
      status,
      code,
      lacksModel: lacksModel && status === 404,
      isTooLong: isTooLong && status < 500,
      isFiltered: isFiltered && status < 500,
      retryAfter,
      ...(param !== null && { param }),
    })
  } catch {
    // What it says about it is too long or does not come; the status says enough.
    return new EndpointError(`it answered ${status}`, { status, retryAfter })
  }
}

/** Bounded by the `maxBytes` of the request. */
export async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all).toString('utf8')
}

/** RFC 9110, section 10.2.3: seconds. A date is as good as nothing here: it would be far away. */
const retryAfterOf = (value: string): number | null => (/^\d{1,6}(\.\d+)?$/.test(value) ? Number(value) * 1000 : null)

const maxRetryDelay = 2_000
const usualRetryDelay = 400

/** Once more, soon, after what may pass, as long as it is wanted and `mayRetry`. Throws EndpointError. */
export function twice<Value>(
  clock: Clock,
  signal: AbortSignal,
  attempt: () => Promise<Value>,
  mayRetry: () => boolean = () => true,
): Promise<Value> {
  const wait = (error: unknown, failures: number): number | null => {
    if (failures > 1 || !(error instanceof EndpointError) || !error.isPassing || !mayRetry()) return null
    const delay = error.retryAfter ?? usualRetryDelay
    return delay > maxRetryDelay ? null : delay
  }
  return retry({ clock, wait, signal }, attempt)
}
