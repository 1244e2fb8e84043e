/** Owns how a transcription server is asked whether it transcribes speech as it comes: its address, its dialect, and its setup. */
import type { Clock } from '../../../model/clock.ts'
import { openJsonSocket, type JsonSocket } from '../hosted/json-socket.ts'
import type { EndpointAddress } from './endpoint.ts'
import type { Fields } from './fields.ts'
import { dialectOf, newsIn, type StreamDialect, type StreamNews } from './stream-dialect.ts'

export type OpenStream = { readonly socket: JsonSocket; readonly dialect: StreamDialect }

type Deps = {
  readonly address: EndpointAddress
  readonly clock: Clock
  /** As the server knows it; null: it is to find out. */
  readonly language: string | null
  /** The call is over. */
  readonly signal: AbortSignal
  /** Once it is open. */
  onNews(news: StreamNews): void
  onLost(): void
}

const setupWithin = 3_000

/** Null: it has none. Never rejects. */
export async function openStream(deps: Deps): Promise<OpenStream | null> {
  for (const url of addressesOf(deps)) {
    if (deps.signal.aborted) return null
    const stream = await tryStream(url, deps)
    if (stream !== null) return stream
  }
  return null
}

/** OpenAI takes no model there; Speaches takes nothing without one. */
function addressesOf({ address, language }: Deps): string[] {
  const base = new URL(address.url.replace(/\/+$/, ''))
  base.protocol = base.protocol === 'https:' ? 'wss:' : 'ws:'
  base.pathname = `${base.pathname === '/' ? '/v1' : base.pathname}/realtime`
  base.search = '?intent=transcription'
  const named = new URL(base)
  named.searchParams.set('model', address.model)
  if (language !== null) named.searchParams.set('language', language)
  return [base.href, named.href]
}

async function tryStream(url: string, deps: Deps): Promise<OpenStream | null> {
  const { address, clock, language } = deps
  const created = Promise.withResolvers<Fields>()
  const updated = Promise.withResolvers<void>()
  for (const step of [created.promise, updated.promise]) step.catch(() => {}) // They may be rejected before anybody waits for them.
  const refuse = (): void => {
    created.reject(new Error('refused'))
    updated.reject(new Error('refused'))
  }
  let isOpen = false
  const take = (message: Fields): void => {
    const news = newsIn(message)
    if (news === null) return
    if (isOpen) return deps.onNews(news)
    if (news.kind === 'created') created.resolve(message)
    if (news.kind === 'updated') updated.resolve()
    if (news.kind === 'failed') refuse()
  }
  const late = new AbortController()
  const signal = AbortSignal.any([deps.signal, late.signal])
  signal.addEventListener('abort', refuse, { once: true })
  const cancel = clock.after(setupWithin, () => late.abort())
  let socket: JsonSocket | null = null
  try {
    socket = await openJsonSocket({
      url,
      ...(address.apiKey !== null && { headers: { authorization: `Bearer ${address.apiKey}` } }),
      key: address.apiKey ?? noKey,
      clock,
      signal,
      onMessage: take,
      onLost() {
        refuse()
        if (isOpen) deps.onLost()
      },
    })
    const dialect = dialectOf(await created.promise, { model: address.model, language })
    socket.send(dialect.update)
    if (dialect.confirms) await updated.promise
    isOpen = true
    return { socket, dialect }
  } catch {
    // Why there is none is of no use to anybody: whole utterances do.
    socket?.close()
    return null
  } finally {
    cancel()
  }
}

/** Stands in no message. */
const noKey = '\u0000'
