/**
 * Owns the storage of recordings: a bucket of any server that speaks S3's protocol, path-style, asked with Signature Version 4. What is put there counts
 * only when the server shows it again whole. The operator names it, so it may be on this machine or in the private network.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { AwsV4Signer } from 'aws4fetch'
import { Agent, type Dispatcher } from 'undici'
import type { RecordingReader } from '../model/recording-store.ts'

export type BucketSettings = {
  /** `https://host/bucket`, or with a folder of it behind. */
  readonly url: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

export type RecordingBucket = {
  /** Resolves when the object is there, whole. An object of the name is replaced. */
  put(key: string, file: string, type: string, signal: AbortSignal): Promise<void>
  /** Null when there is none. */
  read(key: string): Promise<RecordingReader | null>
  /** What is not there is removed. */
  remove(key: string): Promise<void>
  close(): Promise<void>
}

/** The storage is away, full, or does not take what it is asked. Its message is for the operator and carries no secret. */
export class BucketFailure extends Error {
  override readonly name = 'BucketFailure'
}

/** Ms in which the storage must do anything at all: take a piece, answer, send a piece. */
const defaultTimeout = 30_000
const connectTimeout = 10_000
const connections = 8

type Asked = {
  readonly method: 'HEAD' | 'GET' | 'PUT' | 'DELETE'
  readonly key: string
  readonly headers?: Record<string, string>
  readonly body?: () => Readable
  readonly signal?: AbortSignal
}
type Answer = Dispatcher.ResponseData

export function createRecordingBucket(settings: BucketSettings, timeout = defaultTimeout): RecordingBucket {
  const { origin, pathname } = new URL(settings.url)
  const agent = new Agent({
    connections,
    connect: { timeout: Math.min(timeout, connectTimeout) },
    headersTimeout: timeout,
    bodyTimeout: timeout,
  })
  /** Of signing keys, one a day. */
  const cache = new Map<string, ArrayBuffer>()

  const ask = async ({ method, key, headers = {}, body, signal }: Asked): Promise<Answer> => {
    const path = `${pathname.replace(/\/$/, '')}/${key}`
    const { region, accessKeyId, secretAccessKey } = settings
    const signer = new AwsV4Signer({
      method,
      url: `${origin}${path}`,
      headers,
      service: 's3',
      region,
      accessKeyId,
      secretAccessKey,
      cache,
    })
    const { headers: signed } = await signer.sign()
    try {
      return await agent.request({
        origin,
        path,
        method,
        headers: Object.fromEntries(signed),
        ...(body && { body: body() }),
        ...(signal && { signal }),
      })
    } catch (error) {
      throw new BucketFailure(`${method}: ${reasonOf(error)}`, { cause: error })
    }
  }
  const head = async (key: string, signal?: AbortSignal): Promise<Answer | null> => {
    const answer = await ask({ method: 'HEAD', key, ...(signal && { signal }) })
    await answer.body.dump()
    if (answer.statusCode === 404) return null
    if (answer.statusCode === 200) return answer
    throw new BucketFailure(`HEAD was answered ${answer.statusCode}`)
  }
  return {
    async put(key, file, type, signal) {
      const content = await contentOf(file)
      if (differenceOf(await head(key, signal), content) === null) return
      const headers = {
        'content-type': type,
        'content-length': String(content.size),
        'content-md5': Buffer.from(content.md5, 'hex').toString('base64'),
        'x-amz-content-sha256': content.sha256,
      }
      const body = () => createReadStream(file, { end: content.size - 1 })
      await taken(await ask({ method: 'PUT', key, headers, body, signal }), [200, 201, 204])
      const difference = differenceOf(await head(key, signal), content)
      if (difference !== null) throw new BucketFailure(`what was put is not what is there: ${difference}`)
    },
    async read(key) {
      const found = await head(key)
      if (found === null) return null
      return createReader(sizeOf(found), (from, to) =>
        ask({ method: 'GET', key, headers: { range: `bytes=${from}-${to}` } }),
      )
    },
    remove: async (key) => taken(await ask({ method: 'DELETE', key }), [200, 202, 204, 404]),
    close: () => agent.destroy(),
  }
}

/** Bytes of the object. */
const sizeOf = ({ headers }: Answer): number => Number(headers['content-length'])

type Content = { readonly size: number; readonly md5: string; readonly sha256: string }

async function contentOf(file: string): Promise<Content> {
  const { size } = await stat(file)
  if (size === 0) throw new Error('an empty file is no recording')
  const [md5, sha256] = [createHash('md5'), createHash('sha256')]
  for await (const piece of createReadStream(file, { end: size - 1 }) as AsyncIterable<Buffer>) {
    md5.update(piece)
    sha256.update(piece)
  }
  return { size, md5: md5.digest('hex'), sha256: sha256.digest('hex') }
}

/** Null: it is there, whole. An ETag is the MD5 of what was put at once, unless the server encrypted it with keys of others. */
function differenceOf(found: Answer | null, { size, md5 }: Content): string | null {
  if (found === null) return 'nothing'
  if (sizeOf(found) !== size) return `${sizeOf(found)} bytes of ${size}`
  const etag = String(found.headers['etag'] ?? '').replaceAll('"', '')
  const isMd5 = /^[0-9a-f]{32}$/i.test(etag) && !isEncryptedByKeys(found)
  return isMd5 && etag.toLowerCase() !== md5 ? 'other bytes' : null
}

const isEncryptedByKeys = ({ headers }: Answer): boolean =>
  String(headers['x-amz-server-side-encryption'] ?? '').startsWith('aws:kms') ||
  headers['x-amz-server-side-encryption-customer-algorithm'] !== undefined

/** Throws BucketFailure for any other answer, with the code that S3 gives the reason by. */
async function taken({ statusCode, body }: Answer, good: readonly number[]): Promise<void> {
  if (good.includes(statusCode)) return body.dump()
  throw new BucketFailure(`answered ${statusCode}${await codeOf(body)}`)
}

const longestReason = 4_096

async function codeOf(body: Answer['body']): Promise<string> {
  let text = ''
  try {
    for await (const piece of body as AsyncIterable<Buffer>) {
      text += piece.toString('latin1')
      if (text.length > longestReason) break
    }
  } catch {
    // The status says enough.
  }
  const code = /<Code>(\w{1,60})<\/Code>/.exec(text)?.[1]
  return code === undefined ? '' : ` ${code}`
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error ? `${String(error.code)} (${error.message})` : error.message
}

type Get = (from: number, to: number) => Promise<Answer>

function createReader(size: number, get: Get): RecordingReader {
  return {
    size,
    stream(from, to) {
      if (from < 0 || to >= size || from > to + 1) throw new RangeError(`bytes ${from} to ${to} of ${size}`)
      return streamOf(() => partOf(get, { from, to, size }), to + 1 - from)
    },
  }
}

type Part = { readonly from: number; readonly to: number; readonly size: number }

/** Throws for a server whose answer does not begin with these bytes of an object of this size; it may send more than was asked for. */
async function partOf(get: Get, { from, to, size }: Part): Promise<Answer> {
  const answer = await get(from, to)
  const { statusCode, headers, body } = answer
  const [, first, last, whole] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(String(headers['content-range'])) ?? []
  const isPart = statusCode === 206 && Number(first) === from && Number(last) >= to && Number(whole) === size
  const isWhole = statusCode === 200 && from === 0 && sizeOf(answer) === size
  if (isPart || isWhole) return answer
  leave(body)
  throw new BucketFailure(`GET of a range was answered ${statusCode}`)
}

/** The error of a body that is left in the middle tells nothing new, and nobody else listens for it. */
function leave(body: Answer['body'] | null): void {
  body?.on('error', () => undefined)
  body?.destroy()
}

/** Asks when it is first read from: a stream that nobody reads holds nothing. */
function streamOf(open: () => Promise<Answer>, length: number): ReadableStream<Uint8Array> {
  let left = length
  let body: Answer['body'] | null = null
  let pieces: AsyncIterator<Buffer> | null = null
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (left > 0) {
          body ??= (await open()).body
          pieces ??= (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
          const { done, value } = await pieces.next()
          if (done) throw new BucketFailure('a recording ended early')
          controller.enqueue(new Uint8Array(value.subarray(0, left)))
          left -= value.length
        }
        if (left > 0) return
        controller.close()
        leave(body)
      },
      cancel: () => leave(body),
    },
    { highWaterMark: 0 },
  )
}
