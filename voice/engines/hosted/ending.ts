/**
 * Owns how a hosted talk ends: by the model, by a caller who does not answer any more, or with last words. Each time all that is under way is said to
 * its end first. Pure.
 */
import { frameMs } from '../../../model/frame.ts'
import { isBusy, type ToolWork } from './tool-work.ts'
import { callerSpeaks, isAwaiting, quietFrames, type TurnTaking } from './turn-taking.ts'

/** `goodbyeDue`: the model has not said its goodbye yet. */
type Due = {
  readonly cause: 'model' | 'silence' | 'words'
  readonly nextAction: string | null
  readonly goodbyeDue: boolean
}

export type Ending = {
  /** Null: the talk goes on. */
  readonly due: Due | null
  /** The reply that is under way, or was the last one, is one that was to be said word for word. */
  readonly saysWords: boolean
  /** The caller has begun to speak since the end is due. */
  readonly callerSpoke: boolean
}

/** What the rest of the talk is: turn-taking, and tools at work. */
type Rest = { readonly turns: TurnTaking; readonly tools: ToolWork; readonly now: number }

export const initialEnding: Ending = { due: null, saysWords: false, callerSpoke: false }

/** A model that owes its goodbye, and from which nothing is awaited any more, has said it. */
const lastWordsWithin = 3_000 / frameMs

export function endedByModel(ending: Ending, nextAction: string | null, goodbyeDue: boolean): Ending {
  const due: Due = { cause: 'model', nextAction: nextAction ?? ending.due?.nextAction ?? null, goodbyeDue }
  return { ...ending, due: isDeaf(ending) ? ending.due : due, callerSpoke: false }
}

/** The goodbye has been asked for. A first answer without a word is not it. */
export const endedBySilence = (ending: Ending): Ending => ({
  ...ending,
  due: ending.due ?? { cause: 'silence', nextAction: null, goodbyeDue: true },
})

/** The last words have been asked for: the caller is not listened to any more, and nothing else is said. */
export const endedWithWords = (ending: Ending): Ending => ({
  ...ending,
  due: { cause: 'words', nextAction: null, goodbyeDue: false },
  saysWords: false,
})

export const endingSpokenOver = (ending: Ending): Ending => ({
  ...ending,
  due: ending.due?.cause === 'silence' ? null : ending.due,
  callerSpoke: ending.due !== null,
})

/** What the caller said in the end: who has something to say is not hung up on. The late text of what was said before the end was due is not that. */
export function endingHeard(ending: Ending, text: string): Ending {
  const goesOn = ending.callerSpoke && !isDeaf(ending) && text.trim() !== ''
  return { ...ending, due: goesOn ? null : ending.due, callerSpoke: false }
}

/** `says`: the reply is one that was to be said word for word. */
export const endingReplied = (ending: Ending, says: boolean): Ending => ({ ...ending, saysWords: says })

export const isDue = ({ due }: Ending): boolean => due !== null

/** The caller is not listened to. */
export const isDeaf = ({ due }: Ending): boolean => due?.cause === 'words'

/** What the model says now is not what it was asked to say last. */
export const isMute = (ending: Ending): boolean => isDeaf(ending) && !ending.saysWords

/** A reply is over. `expect`: another one is awaited. */
export function endingAfterReply(
  ending: Ending,
  { turns, tools, now }: Rest,
): { readonly ending: Ending; readonly wants: 'finish' | 'expect' | null } {
  const { due } = ending
  if (due === null) return { ending, wants: null }
  if (due.cause === 'words')
    // A reply that the provider began by itself, or one that failed: the words come after it.
    return { ending, wants: isMute(ending) || !turns.hasSpoken ? 'expect' : 'finish' }
  if (isBusy(tools) || isAwaiting(turns, now) || callerSpeaks(turns, now)) return { ending, wants: null }
  if (!due.goodbyeDue || turns.hasSpoken) return { ending, wants: 'finish' }
  return { ending: { ...ending, due: { ...due, goodbyeDue: false } }, wants: null }
}

/** Frame `now` has passed: true when nothing more is to be waited for. */
export const isOverAfterFrame = (ending: Ending, { turns, tools, now }: Rest): boolean =>
  ending.due !== null && (isDeaf(ending) || !isBusy(tools)) && quietFrames(turns, now) > lastWordsWithin
