/**
 * Owns what of a message of the signaling socket may be written down: all but what lets somebody in or proves who they are, and but words of the talk and
 * keys, which are told by how many they are. Pure.
 */
import { ladderTextOf } from '../model/message-ladder.ts'
import type { ClientMessage, ServerMessage } from '../model/signaling.ts'
import { masked, maskedCandidate, maskedSdp } from '../net/masked-sdp.ts'

type Message = ClientMessage | ServerMessage

/** Null: it tells nothing of how the call was set up, or is the talk itself. */
export function maskedSignaling(message: Message): string | null {
  const told = toldOf(message)
  return told && ladderTextOf(JSON.stringify(told))
}

function toldOf(message: Message): object | null {
  switch (message.type) {
    case 'ping':
    case 'pong':
    case 'transcript':
      return null
    case 'offer':
    case 'answer':
      return { ...message, sdp: maskedSdp(message.sdp) }
    case 'candidate':
      return { ...message, candidate: message.candidate && withoutFragment(message.candidate) }
    case 'ready':
      return { ...message, resumeToken: masked }
    case 'dtmf':
      return { ...message, digits: `[${message.digits.length} keys]` }
    case 'text':
      return { ...message, text: `[${message.text.length} characters]` }
    case 'bye':
    case 'status':
    case 'interrupted':
    case 'error':
    case 'warning':
      return message
  }
}

type Candidate = NonNullable<Extract<Message, { readonly type: 'candidate' }>['candidate']>

const withoutFragment = (candidate: Candidate): Candidate => ({
  ...candidate,
  candidate: maskedCandidate(candidate.candidate),
  ...(typeof candidate.usernameFragment === 'string' && { usernameFragment: masked }),
})
