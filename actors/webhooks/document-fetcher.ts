/**
 * Owns fetching documents from addresses that strangers choose (the metadata of an OAuth client): one GET through the guard of webhooks, without
 * redirects, retries or a body, everything bounded, the result a value.
 */
import { Agent } from 'undici'
import type { Clock } from '../../model/clock.ts'
import { deadline, unlessAborted } from '../../model/deadline.ts'
import type { FetchDocument, FetchedDocument } from '../../model/fetch-document.ts'
import { detailsOf, readWhole } from './answer-of.ts'
import { createEgressGuard, EgressRefused, type Resolve } from './egress-guard.ts'

export type DocumentFetcher = {
  /** Never throws. */
  readonly fetch: FetchDocument
  /** Ends what is under way. Idempotent. */
  close(): Promise<void>
}

type Deps = {
  readonly allowHosts: readonly string[]
  readonly clock: Clock
  readonly resolve?: Resolve
}

export function createDocumentFetcher(deps: Deps): DocumentFetcher {
  const guard = createEgressGuard(deps)
  // Nobody is asked twice in a row: no connection is kept.
  const agent = new Agent({
    connect: guard.connect,
    connections: 4,
    pipelining: 0,
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 16 * 1024,
  })
  const closing = new AbortController()
  let closed: Promise<void> | null = null

  async function fetch({ url: text, within, maxBytes }: Parameters<FetchDocument>[0]): Promise<FetchedDocument> {
    if (closing.signal.aborted) return failed('the service is closing')
    const url = URL.parse(text)
    if (url?.protocol !== 'https:') return failed('the target must be https')
    const refusal = guard.refusalOf(url)
    if (refusal !== null) return failed(refusal)
    const overdue = new AbortController()
    const asked = get(agent, url, maxBytes, AbortSignal.any([overdue.signal, closing.signal])).catch(
      (error: unknown) => {
        if (overdue.signal.aborted) return failed(`no answer within ${within} ms`)
        return failed(error instanceof EgressRefused ? error.message : detailsOf(error))
      },
    )
    return deadline(deps.clock, within, asked, () => {
      overdue.abort()
      return asked
    })
  }
  async function end(): Promise<void> {
    closing.abort()
    guard.close()
    await agent.destroy()
  }
  return { fetch, close: () => (closed ??= end()) }
}

async function get(agent: Agent, url: URL, maxBytes: number, signal: AbortSignal): Promise<FetchedDocument> {
  const path = `${url.pathname}${url.search}`
  const asked = agent.request({
    origin: url.origin,
    path,
    method: 'GET',
    headers: { accept: 'application/json' },
    signal,
  })
  const { statusCode, headers, body } = await unlessAborted(asked, signal)
  const text = await readWhole(body, maxBytes)
  if (text === null) return failed(`the document is over ${maxBytes} bytes`)
  const kept = ['cache-control', 'content-type', 'expires'].flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value] as const] : []
  })
  return { kind: 'answered', status: statusCode, headers: Object.fromEntries(kept), body: text }
}

const failed = (details: string): FetchedDocument => ({ kind: 'failed', details })
