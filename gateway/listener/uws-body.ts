/** Owns how the uWebSockets.js driver takes in a request's body: whole and bounded, before the application is asked. */
import type { HttpResponse } from 'uWebSockets.js'
import type { ListenerOptions } from '../../model/listener.ts'
import { lingerTimeout } from './limits.ts'
import type { Body } from './read-body.ts'
import type { Announced } from './uws-request.ts'

/** Called in the same turn as the request arrived. */
export function readUwsBody(
  res: HttpResponse,
  closed: AbortSignal,
  { maxBodyBytes, requestTimeout }: ListenerOptions,
  { declared, chunked }: Announced,
): Promise<Body> | Body {
  if (declared === 0 && !chunked) return null
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    let timer = setTimeout(() => res.close(), requestTimeout)
    const finish = (body: Body): void => {
      clearTimeout(timer)
      resolve(body)
    }
    closed.addEventListener('abort', () => finish('gone'), { once: true })
    const refuse = (): void => {
      chunks.length = 0
      clearTimeout(timer)
      timer = setTimeout(() => finish('too_large'), Math.min(lingerTimeout, requestTimeout))
    }
    res.onData((chunk, isLast) => {
      const fitted = size <= maxBodyBytes
      size += chunk.byteLength
      // The library takes the buffer back when this returns.
      if (size <= maxBodyBytes) chunks.push(Buffer.from(chunk.slice(0)))
      else if (fitted) refuse()
      if (isLast) finish(size <= maxBodyBytes ? Buffer.concat(chunks, size) : 'too_large')
    })
    if (declared > maxBodyBytes) refuse()
  })
}
