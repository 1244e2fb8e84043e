/** Owns what of a leg concerns its call and not only the conversation. */
import { storableText } from '../../../model/json.ts'
import type { LegEvent } from '../../../model/leg.ts'
import type { CallFact } from '../call-event.ts'

/** Bounds text from the other side. A NUL in it would make a fact that cannot be stored, and the call would not end. */
const maxWords = 300
const wordsOf = (text: string): string => storableText(text.replace(/\p{Cc}+/gu, ' '), maxWords)

export function factOf(event: LegEvent): CallFact | null {
  const { type } = event
  switch (type) {
    case 'ringing':
    case 'transfer_failed':
      return { type, providerStatus: wordsOf(event.providerStatus) }
    case 'transferred':
      return { type, providerStatus: wordsOf(event.providerStatus), ...endOf(event) }
    case 'dial_failed': {
      const providerStatus = event.providerStatus && wordsOf(event.providerStatus)
      return { type, outcome: event.outcome, providerStatus, ...endOf(event) }
    }
    case 'connected':
      return { type: 'leg_connected', providerStatus: wordsOf(event.providerStatus) }
    case 'disconnected':
      return { type: 'leg_disconnected', cause: event.cause, details: wordsOf(event.details), ...endOf(event) }
    case 'voice_lost':
      return { type }
    case 'dtmf':
    case 'typed':
    case 'sounding':
    case 'drained':
      return null
  }
}

/** Without an age it has just ended. */
const endOf = ({ endedBy, endCause, silentFor = 0 }: LegEnd) => ({
  ...(endedBy && { endedBy }),
  ...(endCause && { endCause: wordsOf(endCause) }),
  silentFor,
})

type LegEnd = Extract<LegEvent, { readonly type: 'disconnected' | 'dial_failed' | 'transferred' }>
