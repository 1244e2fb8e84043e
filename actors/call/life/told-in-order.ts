/**
 * Owns the order in which a client is told what is said: the text of a turn is told once its step is committed, and what is still being said after
 * that turn waits for it, however long the commit takes. docs/contract/signaling.md "transcript".
 */
import type { ServerMessage } from '../../../model/signaling.ts'

export type ToldInOrder = {
  /** What is final at once; what is still being said after the turns before it: of an utterance that waits only the newest text is told. */
  tell(message: ServerMessage): void
  /** A turn is on its way to the log; settles when that is over and its text was told. */
  turnIsWritten(writing: Promise<unknown>): void
}

/** So many utterances wait at most; of more, those that came first are not shown before they are final. */
const maxHeld = 16

export function createToldInOrder(send: (message: ServerMessage) => void): ToldInOrder {
  const held = new Map<string, ServerMessage>()
  let beingWritten = 0

  const written = (): void => {
    beingWritten--
    if (beingWritten > 0) return
    const messages = [...held.values()]
    held.clear()
    messages.forEach(send)
  }

  return {
    tell(message) {
      if (message.type !== 'transcript') return send(message)
      const key = `${message.role} ${message.turnIndex}`
      held.delete(key)
      if (beingWritten === 0 || message.isFinal) return send(message)
      held.set(key, message)
      if (held.size > maxHeld) held.delete(held.keys().next().value!)
    },
    turnIsWritten(writing) {
      beingWritten++
      void writing.then(written, written)
    },
  }
}
