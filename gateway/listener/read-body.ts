/** Owns how the node driver takes in a request's body: whole and bounded, before the application is asked. */
import type { IncomingMessage } from 'node:http'

/** Null when the request has none. `gone`: the client left before the end. */
export type Body = Uint8Array<ArrayBuffer> | null | 'too_large' | 'gone'

export function readBody(incoming: IncomingMessage, declared: number, maxBytes: number): Promise<Body> | Body {
  if (declared > maxBytes) return 'too_large'
  if (declared === 0 && incoming.headers['transfer-encoding'] === undefined) return null
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const finish = (body: Body): void => {
      incoming.off('data', take).off('end', end).off('close', leave).off('error', leave)
      resolve(body)
    }
    const take = (chunk: Buffer): void => {
      size += chunk.length
      chunks.push(chunk)
      if (size > maxBytes) finish('too_large')
    }
    const end = (): void => finish(Buffer.concat(chunks, size))
    const leave = (): void => finish('gone')
    incoming.on('data', take).on('end', end).on('close', leave).on('error', leave)
  })
}
