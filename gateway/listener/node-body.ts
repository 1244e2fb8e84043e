/** Owns how the node driver takes in a request's body: when the application asks for it, whole and bounded. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { deadline, goOn } from '../../model/deadline.ts'
import type { Clock } from '../../model/clock.ts'
import type { ByteShare } from '../../net/byte-budget.ts'
import { bodyGone, createBodyBuffer } from './body-buffer.ts'
import { lingerTimeout } from './limits.ts'

/** `awaitsContinue`: the client sends nothing before it is told to (RFC 9110 §10.1.1). */
type Arriving = {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly awaitsContinue: boolean
}

export const declaredLength = (incoming: IncomingMessage): number => Number(incoming.headers['content-length'] ?? 0)

export const hasBody = (incoming: IncomingMessage): boolean =>
  declaredLength(incoming) !== 0 || incoming.headers['transfer-encoding'] !== undefined

/** Has all of the body come? node says so a moment later than all of its bytes are there. */
export const isWhole = (incoming: IncomingMessage): boolean =>
  incoming.complete || (declaredLength(incoming) > 0 && incoming.readableLength >= declaredLength(incoming))

/** Rejects with a Problem. */
export function readNodeBody(
  { incoming, outgoing, awaitsContinue }: Arriving,
  maxBytes: number,
  share: ByteShare,
): Promise<Uint8Array<ArrayBuffer>> {
  const buffer = createBodyBuffer(declaredLength(incoming), maxBytes, share)
  return new Promise((resolve, reject) => {
    if (incoming.destroyed) return reject(bodyGone())
    if (awaitsContinue) outgoing.writeContinue()
    const settle = (): void => void incoming.off('data', take).off('end', end).off('close', leave).off('error', leave)
    const take = (chunk: Buffer): void => {
      const problem = buffer.add(chunk)
      if (!problem) return
      settle()
      incoming.pause()
      reject(problem)
    }
    const end = (): void => {
      settle()
      resolve(buffer.whole())
    }
    const leave = (): void => {
      settle()
      reject(bodyGone())
    }
    incoming.on('data', take).on('end', end).on('close', leave).on('error', leave)
  })
}

/**
 * Throws away what a client goes on sending after its answer, for a while: were the connection closed at once, the client would get a reset in
 * place of the answer (RFC 9112 §9.6).
 */
export async function lingerFor(incoming: IncomingMessage, clock: Clock): Promise<void> {
  if (isWhole(incoming) || incoming.destroyed) return
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  // What is left of a request over HTTP is of no interest, nor why it is not all there.
  incoming
    .once('end', resolve)
    .once('close', resolve)
    .on('error', () => undefined)
  incoming.resume()
  await deadline(clock, lingerTimeout, ended, goOn)
}
