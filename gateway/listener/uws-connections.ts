/**
 * Owns the bound on the connections of the uWebSockets.js driver. The library tells of every connection that comes or goes, but not which one
 * went, and nothing of the end of those that became WebSockets: those tell it themselves.
 */
import type { HttpResponse, TemplatedApp } from 'uWebSockets.js'
import type { Limits } from './limits.ts'
import { createUwsPlaces, type RunningPlace } from './uws-places.ts'
import { infoOf } from './uws-request.ts'

export type UwsConnections = {
  /** Of a request, called in the same turn as it arrived. */
  ask(address: string): RunningPlace & {
    /** Its connection broke. */
    gone(): void
  }
  /** Around what may close the connection of a request that is being answered. */
  told(action: () => void): void
  /** A WebSocket is closed. */
  socketClosed(): void
}

export function boundConnections(app: TemplatedApp, limits: Limits): UwsConnections {
  const places = createUwsPlaces(limits, () => performance.now())
  let open = 0
  let isTold = false
  /** One has closed, and the library has not said anything more of it so far: it does so right after, or never. */
  let isUnseen = false

  function settle(): void {
    if (isUnseen) places.closedUnseen()
    isUnseen = false
  }
  function told(action: () => void): void {
    const before = isTold
    isTold = true
    action()
    isTold = before
  }
  function opened(res: HttpResponse): void {
    const place = open > limits.maxConnections ? null : places.open(infoOf(res).remoteAddress)
    if (!place) return told(() => res.close())
    // In force until its first request.
    res.onAborted(() => {
      isUnseen = false
      place.closed()
    })
  }
  function closed(): void {
    settle()
    isUnseen = !isTold
  }

  app.filter((res, change) => {
    open += Number(change)
    if (change !== 1) return closed()
    settle()
    opened(res)
  })
  return {
    ask(address) {
      settle()
      const place = places.ask(address)
      return {
        ...place,
        gone() {
          isUnseen = false
          place.over(false)
        },
      }
    },
    told,
    socketClosed: () => void open--,
  }
}
