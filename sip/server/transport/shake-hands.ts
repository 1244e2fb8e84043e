/** Owns the TLS handshake of a connection that was taken: it may take its time, and not longer. */
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Clock } from '../../../model/clock.ts'

/** `unready` holds the socket meanwhile. `secured` is called once, or never. */
export function shakeHands(
  socket: TLSSocket,
  clock: Clock,
  timeout: number,
  unready: Set<Socket>,
  secured: () => void,
): void {
  unready.add(socket)
  const settled = (): void => {
    giveUp()
    unready.delete(socket)
  }
  const giveUp = clock.after(timeout, () => socket.destroy())
  socket.once('close', settled)
  socket.once('secure', () => {
    settled()
    if (!socket.destroyed) secured()
  })
}
