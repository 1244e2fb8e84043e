/** Owns how many connections there may be: in all, and taken from one address. */
import type { Socket } from 'node:net'
import { addressGroupOf } from '../../../net/addresses.ts'

export type PlaceLimits = {
  /** Opened and taken together. */
  readonly maxConnections: number
  /** Taken from one address, or one /64 of IPv6. */
  readonly maxConnectionsPerAddress: number
}

export type ConnectionPlaces = {
  /** Holds a place for a socket a peer opened until it closes. False: there is none. */
  admits(socket: Socket): boolean
  /** Holds a place for one we open, until `give` is called. Null: there is none. */
  takeOwn(): { give(): void } | null
  /** Of peers, that found no place. */
  refused(): number
}

export function createConnectionPlaces({ maxConnections, maxConnectionsPerAddress }: PlaceLimits): ConnectionPlaces {
  const byAddress = new Map<string, number>()
  let [held, refused] = [0, 0]

  function release(group: string): void {
    held -= 1
    const left = (byAddress.get(group) ?? 1) - 1
    if (left === 0) byAddress.delete(group)
    else byAddress.set(group, left)
  }

  return {
    admits(socket) {
      const group = addressGroupOf(socket.remoteAddress ?? '')
      const ofAddress = byAddress.get(group) ?? 0
      // Without an address it is gone already.
      if (!socket.remoteAddress || held >= maxConnections || ofAddress >= maxConnectionsPerAddress) {
        refused += 1
        return false
      }
      held += 1
      byAddress.set(group, ofAddress + 1)
      socket.once('close', () => release(group))
      return true
    },
    takeOwn() {
      if (held >= maxConnections) return null
      held += 1
      let isHeld = true
      return {
        give() {
          if (isHeld) held -= 1
          isHeld = false
        },
      }
    },
    refused: () => refused,
  }
}
