/** Owns how the uWebSockets.js driver takes in a request's body: whole and bounded, while the application decides whether it wants it. */
import type { HttpResponse } from 'uWebSockets.js'
import type { Clock } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import type { ListenerOptions } from '../../model/listener.ts'
import type { ByteShare } from '../../net/byte-budget.ts'
import type { ReadBody } from '../../net/http/light-request.ts'
import { bodyGone, createBodyBuffer } from './body-buffer.ts'
import { lingerTimeout } from './limits.ts'
import type { Announced } from './uws-request.ts'

export type UwsBody = {
  /** Rejects with a Problem. */
  readonly read: ReadBody
  /**
   * Before an answer to who has not sent it all: the library closes a connection at once, and the client would get a reset in place of the
   * answer. Resolves when the client has stopped sending, has left, or has been given time.
   */
  discard(clock: Clock): Promise<void>
  isWhole(): boolean
  /** Nothing is watched any more. */
  release(): void
}

type Deps = Pick<ListenerOptions, 'maxBodyBytes' | 'requestTimeout'> & {
  readonly closed: AbortSignal
  readonly share: ByteShare
}

/** Called in the same turn as the request arrived: the library throws away what comes before somebody listens. Null: there is none. */
export function takeUwsBody(res: HttpResponse, { declared, chunked }: Announced, deps: Deps): UwsBody | null {
  if (declared === 0 && !chunked) return null
  const { closed, share, requestTimeout } = deps
  const buffer = createBodyBuffer(declared, deps.maxBodyBytes, share)
  const { promise: body, resolve, reject } = Promise.withResolvers<Uint8Array<ArrayBuffer>>()
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  // An application that refuses the request by its head never asks.
  body.catch(() => undefined)
  const timer = setTimeout(() => res.close(), requestTimeout)
  let [isWanted, isPaused, isWhole] = [false, false, false]
  let isRefused = declared > deps.maxBodyBytes

  closed.addEventListener('abort', () => stop(bodyGone()), { once: true })
  res.onData((chunk, isLast) => {
    if (!isRefused && chunk.byteLength > 0) take(new Uint8Array(chunk))
    if (isLast) finish()
    // What has come is kept, no more of it is taken from the system before it is known whether anybody wants it.
    else if (!isWanted && !isPaused) pause()
  })

  function take(chunk: Uint8Array): void {
    const problem = buffer.add(chunk)
    if (!problem) return
    isRefused = true
    reject(problem)
  }
  function finish(): void {
    isWhole = true
    clearTimeout(timer)
    end()
    if (!isRefused) resolve(buffer.whole())
  }
  function stop(problem: Error): void {
    clearTimeout(timer)
    end()
    reject(problem)
  }
  function pause(): void {
    isPaused = true
    res.pause()
  }
  function goOnReading(): void {
    isWanted = true
    if (isPaused && !closed.aborted) res.resume()
    isPaused = false
  }

  return {
    read() {
      goOnReading()
      return body
    },
    async discard(clock) {
      isRefused = true
      share.release()
      goOnReading()
      await deadline(clock, Math.min(lingerTimeout, requestTimeout), ended, goOn)
    },
    isWhole: () => isWhole,
    release() {
      clearTimeout(timer)
      share.release()
    },
  }
}
