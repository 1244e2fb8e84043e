/**
 * Owns how many bytes go by UDP to whom an INVITE names as its sender while nobody has taken the call: no more than came, because the sender
 * may have written another's address into it. The refusal goes first; a 100 and repetitions of the refusal (Timer G) go where there is room, and
 * when the INVITE comes again, as it does from a client that has heard nothing (RFC 3261 §17.1.1.2, Timer A).
 */
import type { SipRequest, SipResponse } from '../message/message.ts'
import { writeMessage } from '../message/write-message.ts'

export type AnswerBudget = {
  /** The INVITE once more. */
  came(request: SipRequest): void
  /** False: it is not sent now. What is sent is spent. */
  allows(response: SipResponse): boolean
}

/** Null: as much as there is to say. Of calls that were taken, of other requests and of connections the sender is where it says. */
export function createAnswerBudget(invite: SipRequest, protocol: string, isOfCall: boolean): AnswerBudget | null {
  if (protocol !== 'udp' || invite.method !== 'INVITE' || isOfCall || invite.size === undefined) return null
  let left = invite.size
  let isRefused = false
  return {
    came: ({ size = 0 }) => void (left += size),
    allows(response) {
      const { status } = response
      if (status > 100 && status < 300) return true
      const { length } = writeMessage(response)
      // A refusal is a little longer than a 100: it has a tag.
      const wanted = status === 100 ? 2 * length + roomForTag : length
      const isFirstRefusal = status >= 300 && !isRefused
      if (wanted > left && !isFirstRefusal) return false
      isRefused ||= status >= 300
      left -= length
      return true
    },
  }
}

const roomForTag = 64
