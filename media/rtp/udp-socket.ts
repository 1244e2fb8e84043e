/** Owns opening and closing a UDP socket that never asks a resolver. */
import { createSocket, type Socket, type SocketOptions } from 'node:dgram'
import { once } from 'node:events'
import { familyOf } from '../../net/addresses.ts'

/** Rejects with EADDRINUSE and its like. Port 0 takes a free one. `ipv6Only`: `::` leaves IPv4 to another socket on the same port. */
export async function bindUdp(address: string, port: number, { ipv6Only = false } = {}): Promise<Socket> {
  // Targets are addresses, never names. Answering at once also sends each packet in the turn of the event loop it was given in, so that
  // a last word before `close` is not lost.
  const family = familyOf(address)
  const lookup: SocketOptions['lookup'] = (host, _options, callback) => callback(null, host, family)
  const isIpv6 = family === 6
  const socket = createSocket({ type: isIpv6 ? 'udp6' : 'udp4', ipv6Only: ipv6Only && isIpv6, lookup })
  // Asked first: with this lookup, binding is done before `bind` returns.
  const listening = once(socket, 'listening')
  try {
    socket.bind(port, address)
    await listening
    return socket
  } catch (error) {
    socket.close()
    throw error
  }
}

/**
 * Never throws: what cannot be sent is lost, as on the way. Nothing can go to port 0, which any stranger may claim to send from. No callback, of which
 * each packet would cost another turn: what the network says of an address that cannot be reached, nobody asks.
 */
export function sendUdp(socket: Socket, datagram: Buffer, { address, port }: { address: string; port: number }): void {
  if (isPort(port)) socket.send(datagram, port, address)
}

/** One that can be answered. */
export const isPort = (port: number): boolean => port > 0 && port < 65_536

export async function closeUdp(socket: Socket): Promise<void> {
  const done = once(socket, 'close')
  socket.close()
  await done
}
