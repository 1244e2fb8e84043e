/**
 * Owns the two UDP sockets of one call: RTP on an even port, RTCP on the next (RFC 3550 §11). Addresses are plain ones: an IPv4 peer of a
 * socket for both families reads as IPv4.
 */
import type { RemoteInfo, Socket } from 'node:dgram'
import { peerAddressOf } from '../../net/addresses.ts'
import { bindUdp, closeUdp, isPort, sendUdp } from './udp-socket.ts'
import type { Address } from './peer-source.ts'

export type SocketPair = {
  /** Of RTP. */
  readonly port: number
  readonly rtp: UdpPort
  readonly rtcp: UdpPort
  /** Idempotent; what was sent before is on its way. */
  close(): Promise<void>
}

export type UdpPort = {
  /** Never throws: what cannot be sent is lost, as on the way. */
  send(datagram: Buffer, to: Address): void
  onDatagram(listener: (datagram: Buffer, from: Address) => void): void
  onError(listener: (error: Error) => void): void
}

/** Rejects with EADDRINUSE and its like when one of the two is taken. */
export async function openSocketPair(bindAddress: string, port: number): Promise<SocketPair> {
  const rtp = await bindUdp(bindAddress, port)
  const rtcp = await bindUdp(bindAddress, port + 1).catch(async (error: unknown) => {
    await closeUdp(rtp)
    throw error
  })
  let closing: Promise<unknown> | null = null
  const isOpen = (): boolean => closing === null
  return {
    port,
    rtp: udpPortOf(rtp, isOpen),
    rtcp: udpPortOf(rtcp, isOpen),
    async close() {
      closing ??= Promise.all([closeUdp(rtp), closeUdp(rtcp)])
      await closing
    },
  }
}

/** A port that is even and was free a moment ago. */
export async function freeEvenPort(bindAddress: string): Promise<number> {
  const socket = await bindUdp(bindAddress, 0)
  const { port } = socket.address()
  await closeUdp(socket)
  return port - (port % 2)
}

function udpPortOf(socket: Socket, isOpen: () => boolean): UdpPort {
  const isV6 = socket.address().family === 'IPv6'
  return {
    send(datagram, { address, port }) {
      if (!isOpen()) return
      const reachable = isV6 && !address.includes(':') ? `::ffff:${address}` : address
      sendUdp(socket, datagram, { address: reachable, port })
    },
    onDatagram(listener) {
      // Nearly every packet comes from where the one before came from: whoever compares addresses finds the same one.
      let written = ''
      let from: Address = { address: '', port: 0 }
      socket.on('message', (datagram: Buffer, { address, port }: RemoteInfo) => {
        if (!isOpen() || !isPort(port)) return
        if (from.port !== port || written !== address) from = { address: isV6 ? peerAddressOf(address) : address, port }
        written = address
        listener(datagram, from)
      })
    },
    onError: (listener) => void socket.on('error', listener),
  }
}
