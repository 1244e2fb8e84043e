/**
 * Owns what is still waited for when the caller's line is closed: the text of what they were saying, and what the model notes of it. Pure. Times are
 * frames of the line, which goes on as silence until then.
 */
import { frameMs } from '../../../model/frame.ts'
import { callerSpeaks, type TurnTaking } from './turn-taking.ts'

/** Kept from the beginning, because it counts in the end. */
export type LastWords = {
  /** Ends of speech whose final text has not come. */
  readonly untold: number
  /** The model has not answered what was said; from this frame on it will not. */
  readonly answeredUntil: number
  /** When the line was closed; null while it is open. */
  readonly closedAt: number | null
  /** When the caller was heard of last. */
  readonly changedAt: number
}

export const initialLastWords: LastWords = { untold: 0, answeredUntil: 0, closedAt: null, changedAt: 0 }

/** So much silence at once behind the line's last sound ends any speech, for a provider and for our own detector. */
export const silenceAtOnce = 800 / frameMs
/** A provider tells so late that somebody began to speak, and what comes of it. */
const toldWithin = 600 / frameMs
const changesWithin = 300 / frameMs
/** A model that answers begins within this. */
const answersWithin = 3_000 / frameMs

export const lineClosed = (words: LastWords, now: number): LastWords => ({ ...words, closedAt: words.closedAt ?? now })

export const speechBegun = (words: LastWords, now: number): LastWords => ({ ...words, changedAt: now })

export const speechEnded = (words: LastWords, now: number): LastWords => ({
  ...words,
  untold: words.untold + 1,
  answeredUntil: now + answersWithin,
  changedAt: now,
})

/** Nothing was said: nothing is answered. */
export const wordsTold = (words: LastWords, text: string, now: number): LastWords => ({
  ...words,
  untold: Math.max(0, words.untold - 1),
  answeredUntil: text === '' ? 0 : words.answeredUntil,
  changedAt: now,
})

/** The model speaks, or calls a tool. */
export const wordsAnswered = (words: LastWords): LastWords => ({ ...words, answeredUntil: 0 })

/** `notes`: there are values that a model could note. */
export function areHeardOut(words: LastWords, turns: TurnTaking, now: number, notes: boolean): boolean {
  const { untold, answeredUntil, closedAt, changedAt } = words
  if (closedAt === null || untold > 0 || callerSpeaks(turns, now)) return false
  if (now - closedAt < silenceAtOnce + toldWithin || now - changedAt < changesWithin) return false
  return !notes || (!turns.isReplying && now >= answeredUntil)
}
