/**
 * Owns storages of tests that speak S3: s3rver, whose verdict on signatures is none and is made up for by signature-v4.ts, and a stand-in with the
 * manners of a storage in trouble. Both count what they are asked.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { byteRangeOf } from '../../api/byte-range.ts'
import type { BucketSettings } from '../../store/recording-bucket.ts'
import { createFolder } from '../scenes/folder.ts'
import { flawOfBody, flawOfSignature } from './signature-v4.ts'

type Teardown = { teardown(close: () => Promise<void>): unknown }

/** The part of s3rver that is used; it comes without types. */
type S3rver = new (options: {
  readonly silent: boolean
  readonly directory: string
  readonly configureBuckets: readonly { readonly name: string }[]
}) => { configureBuckets(): Promise<unknown>; callback(): RequestListener }

export const credentials = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER', region: 'eu-test-1' }

export type Asked = { readonly method: string; readonly path: string; readonly flaw: string | null }

type Storage = { readonly settings: BucketSettings; readonly asked: Asked[] }

/** Answers 403 itself where the second signer finds a flaw. */
async function listen(t: Teardown, serve: RequestListener, asked: Asked[]): Promise<BucketSettings> {
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request
    const flaw = flawOfSignature({ method, target: url, headers }, credentials, Date.now())
    asked.push({ method, path: url, flaw })
    if (flaw === null) return serve(request, response)
    request.resume()
    refuse(response, 403, 'SignatureDoesNotMatch')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/recordings/calls`, ...credentials }
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'content-type': 'application/xml' })
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code></Error>`)
}

export async function openS3rver(t: Teardown): Promise<Storage> {
  const S3rver = createRequire(import.meta.url)('s3rver') as S3rver
  const server = new S3rver({
    silent: true,
    directory: await createFolder(t),
    configureBuckets: [{ name: 'recordings' }],
  })
  await server.configureBuckets()
  const asked: Asked[] = []
  return { settings: await listen(t, server.callback(), asked), asked }
}

/**
 * away: connections are cut. full, busy, refusing: 507, 503, 403. hangs: takes nothing and answers nothing. truncates, garbles: says yes, and keeps
 * half of it, or other bytes. cuts: sends half of what is asked for.
 */
export type Manner = 'good' | 'away' | 'full' | 'busy' | 'refusing' | 'hangs' | 'truncates' | 'garbles' | 'cuts'

export async function openMoodyStorage(
  t: Teardown,
): Promise<Storage & { manner: Manner; readonly objects: Map<string, Buffer> }> {
  const objects = new Map<string, Buffer>()
  const asked: Asked[] = []
  const storage = { manner: 'good' as Manner, objects, asked }
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { manner } = storage
    if (manner === 'away') return void request.socket.destroy()
    if (manner === 'hangs') return
    const isReading = request.method === 'HEAD' || request.method === 'GET'
    if (manner === 'busy' || manner === 'refusing') return refuse(response, manner === 'busy' ? 503 : 403, 'SlowDown')
    if (manner === 'full' && !isReading) return refuse(response, 507, 'InsufficientStorage')
    await answer(objects, request, response, manner)
  }
  const settings = await listen(
    t,
    (request, response) => {
      serve(request, response).catch(() => request.socket.destroy())
    },
    asked,
  )
  return Object.assign(storage, { settings })
}

async function answer(
  objects: Map<string, Buffer>,
  request: IncomingMessage,
  response: ServerResponse,
  manner: Manner,
) {
  const key = request.url ?? ''
  if (request.method === 'PUT') {
    const body = await buffer(request)
    const flaw = flawOfBody(request.headers, body)
    if (flaw !== null) return refuse(response, 400, flaw)
    objects.set(key, keptOf(body, manner))
    return void response.writeHead(200).end()
  }
  if (request.method === 'DELETE') {
    objects.delete(key)
    return void response.writeHead(204).end()
  }
  const object = objects.get(key)
  if (object === undefined) return refuse(response, 404, 'NoSuchKey')
  const range = byteRangeOf(request.headers.range, object.length)
  if (range === 'unsatisfiable') return refuse(response, 416, 'InvalidRange')
  const part = range === null ? object : object.subarray(range.from, range.to + 1)
  response.writeHead(range === null ? 200 : 206, {
    'content-length': part.length,
    etag: `"${createHash('md5').update(object).digest('hex')}"`,
    ...(range && { 'content-range': `bytes ${range.from}-${range.to}/${object.length}` }),
  })
  if (request.method === 'HEAD') return void response.end()
  if (manner !== 'cuts') return void response.end(part)
  response.write(part.subarray(0, part.length / 2), () => response.destroy())
}

function keptOf(body: Buffer, manner: Manner): Buffer {
  if (manner === 'truncates') return body.subarray(0, body.length / 2)
  if (manner === 'garbles') return Buffer.from(body.map((byte, at) => (at === body.length - 1 ? byte ^ 1 : byte)))
  return body
}
