/** Owns the messages of one session of the signaling socket while it runs, in bounded room; they are taken when it is over. */
import type { LadderEntry, MessageLadder } from '../model/message-ladder.ts'
import type { ClientMessage, ServerMessage } from '../model/signaling.ts'
import { maskedSignaling } from './masked-signaling.ts'

export type SignalingTrail = {
  /** The socket of the session is another one now. */
  at(socket: SocketPlace): void
  note(direction: 'in' | 'out', message: ClientMessage | ServerMessage): void
  /** What there is, which is forgotten. */
  take(): MessageLadder
}

export type SocketPlace = Pick<LadderEntry, 'local' | 'remote'>

const maxEntries = 100

export function createSignalingTrail({ now }: { now(): number }): SignalingTrail {
  let place: SocketPlace = { local: '', remote: '' }
  let entries: LadderEntry[] = []
  let leftOut = 0
  return {
    at: (socket) => void (place = socket),
    note(direction, message) {
      const text = maskedSignaling(message)
      if (text === null) return
      if (entries.length < maxEntries) entries.push({ at: now(), direction, protocol: 'ws', ...place, text })
      else leftOut++
    },
    take() {
      const taken = { entries, leftOut }
      ;[entries, leftOut] = [[], 0]
      return taken
    },
  }
}
