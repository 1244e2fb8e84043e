/** Owns how an answer from elsewhere is taken in: bounded, and what is said of one that never came. */

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
  // Messages of OpenSSL name its own source files; the reason is what the receiver's side can use.
  const told = 'reason' in error && typeof error.reason === 'string' ? error.reason : error.message
  return told === '' ? code : `${code}: ${told}`.slice(0, 500)
}
