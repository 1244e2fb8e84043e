/**
 * Owns the way to one client of the signaling socket: its present socket, and what the call said lately. A lost socket swallows what it
 * was given before anybody notices; a client that counts can say how much it has got, and gets the rest.
 */
import type { SocketConnection } from '../model/listener.ts'
import type { ServerMessage } from '../model/signaling.ts'

export type Outbox = {
  /** Numbered from 1 and kept for `repeat`: what the call says. */
  send(message: ServerMessage): void
  /** Now or never: what concerns this socket only. */
  sendNow(message: ServerMessage): void
  /** The old socket, if any, is closed. */
  attach(next: SocketConnection): void
  /** What the client has not got: everything after number `received`, or, when it did not count, what found no socket. */
  repeat(received: number | null): void
  /** False when it is not the present socket that is gone. */
  detach(gone: SocketConnection): boolean
  close(code: number, reason: string): void
}

type Entry = { readonly number: number; readonly message: ServerMessage; isSent: boolean }

/** The oldest go first. */
const maxKept = 200

/** `said`: so much the call has said to the client before, by another process. `sent` is told of what a socket took. */
export function createOutbox(said = 0, sent: (message: ServerMessage) => void = () => undefined): Outbox {
  const kept: Entry[] = []
  let connection: SocketConnection | null = null

  const isSent = (message: ServerMessage): boolean => {
    const isTaken = connection?.send(JSON.stringify(message)) === 'sent'
    if (isTaken) sent(message)
    return isTaken
  }

  return {
    send(message) {
      kept.push({ number: (said += 1), message, isSent: isSent(message) })
      if (kept.length > maxKept) kept.shift()
    },
    sendNow: (message) => void isSent(message),
    attach(next) {
      const old = connection
      connection = next
      old?.close(1000, 'replaced by a newer socket')
    },
    repeat(received) {
      for (const entry of kept)
        if (received === null ? !entry.isSent : entry.number > received) entry.isSent = isSent(entry.message)
    },
    detach(gone) {
      if (gone !== connection) return false
      connection = null
      return true
    },
    close: (code, reason) => connection?.close(code, reason),
  }
}
