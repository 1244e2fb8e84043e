/** Owns which connection of the node driver has which place, and that one without a place is closed before anything is read of it. */
import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { peerAddressOf } from '../../net/addresses.ts'
import type { ConnectionPlaces, Place } from '../../net/connection-places.ts'

export type NodePlaces = {
  /** Of a connection that is open. */
  of(socket: Socket): Place | undefined
}

export function createNodePlaces(server: http.Server | https.Server, places: ConnectionPlaces): NodePlaces {
  const bySocket = new WeakMap<Socket, Place>()
  /** Of connections in their handshake of TLS, which is the system's socket; what comes of it is another object with the same ends. */
  const byEnds = new Map<string, Place>()

  server.on('connection', (socket: Socket) => {
    const place = places.take(peerAddressOf(socket.remoteAddress ?? ''), () => socket.destroy())
    if (!place) return void socket.destroy()
    bySocket.set(socket, place)
    const ends = endsOf(socket)
    if (server instanceof https.Server) byEnds.set(ends, place)
    socket.once('close', () => {
      byEnds.delete(ends)
      place.give()
    })
  })
  server.on('secureConnection', (socket: Socket) => {
    const place = byEnds.get(endsOf(socket))
    byEnds.delete(endsOf(socket))
    if (place) bySocket.set(socket, place)
  })
  return { of: (socket) => bySocket.get(socket) }
}

const endsOf = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress}`
