/** Owns how an answer from elsewhere is taken in: in time, bounded, and what is said of one that never came. */

/**
 * undici notices the signal only once a connection is there; the request is then not sent any more. The listener must go: with one,
 * a composed signal lives as long as its sources do.
 */
export async function unlessAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = () => reject(new Error('the request was ended'))
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** Null when it has more than `maxBytes`. Leaving the loop destroys the rest. */
export async function readWhole(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string | null> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > maxBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Of a request that got no HTTP answer. */
export function detailsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name
  return error.message === '' ? code : `${code}: ${error.message}`.slice(0, 500)
}
