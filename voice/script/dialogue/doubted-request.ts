/** Owns requests that would end the call or pass it on, at words that may have been others: the caller is asked first. */
import type { DialogueState } from './dialogue-state.ts'
import { speak, type Advanced } from './dialogue-turn.ts'
import { doubtOf } from './own-lines.ts'
import type { Meaning, Request } from '../phrases.ts'
import type { Script } from '../steps.ts'

export type DoubtedRequest = NonNullable<DialogueState['doubted']>

/** What is understood less surely than this may have been a noise, or a word like it: of such about one in a hundred is. */
const certain = 0.75

/** Null for a request that is not doubted. */
export function doubtedOf(script: Script, request: Request, confidence: number): DoubtedRequest | null {
  if (confidence >= certain) return null
  if (request === 'goodbye') return request
  return request === 'person' && script.asides.has(request) ? request : null
}

export const askAbout = (state: DialogueState, doubted: DoubtedRequest): Advanced =>
  speak({ ...state, doubted }, doubtOf(doubted))

/** A yes to "would you like to …?"; who says the request again means it as well. */
export const isMeant = (meaning: Meaning | null, doubted: DoubtedRequest): boolean => {
  if (meaning?.kind === 'choice') return meaning.index === 0
  return meaning?.kind === 'request' && (meaning.request === 'yes' || meaning.request === doubted)
}

/** What is no answer to it, but something else that the caller wants. */
export const isOtherWish = (meaning: Meaning | null): boolean =>
  meaning?.kind === 'intent' ||
  (meaning?.kind === 'request' && !['yes', 'no', 'nod', 'repeat'].includes(meaning.request))
