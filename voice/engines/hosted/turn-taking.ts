/**
 * Owns the turn-taking of a hosted talk: what the model is saying, what the caller has not heard yet, and whether the caller speaks. Pure. Times are
 * frames of the caller's line; what nobody tells the end of ends by itself.
 */
import { frameMs } from '../../../model/frame.ts'

export type TurnTaking = {
  /** A reply of the model is under way. */
  readonly isReplying: boolean
  /** The model has said something in the reply that is under way, or in the last one. */
  readonly hasSpoken: boolean
  /** Items that the caller has not heard to their end. */
  readonly unplayed: readonly string[]
  readonly unplayedUntil: number
  /** A reply has been asked for that has not begun. */
  readonly awaitedUntil: number
  readonly callerSpeaksUntil: number
  /** The last frame in which somebody spoke or was awaited. */
  readonly quietSince: number
}

export const initialTurns: TurnTaking = {
  isReplying: false,
  hasSpoken: false,
  unplayed: [],
  unplayedUntil: 0,
  awaitedUntil: 0,
  callerSpeaksUntil: 0,
  quietSince: 0,
}

/** A reply that was asked for and does not begin is awaited no longer. */
const awaitedFrames = 15_000 / frameMs
/** The caller has stopped although no end of speech was told. */
const speakingFrames = 60_000 / frameMs
/** Sound has been played although its end was not told. */
const unplayedFrames = 300_000 / frameMs

export const replyExpected = (turns: TurnTaking, now: number): TurnTaking => ({
  ...turns,
  awaitedUntil: now + awaitedFrames,
})

export const replyBegun = (turns: TurnTaking): TurnTaking => ({
  ...turns,
  isReplying: true,
  hasSpoken: false,
  awaitedUntil: 0,
})

export const replyEnded = (turns: TurnTaking): TurnTaking => ({ ...turns, isReplying: false })

export const agentSounded = (turns: TurnTaking, itemId: string, now: number): TurnTaking => ({
  ...turns,
  hasSpoken: true,
  unplayed: turns.unplayed.includes(itemId) ? turns.unplayed : [...turns.unplayed, itemId],
  unplayedUntil: now + unplayedFrames,
})

export const itemPlayed = (turns: TurnTaking, itemId: string): TurnTaking => ({
  ...turns,
  unplayed: turns.unplayed.filter((unplayed) => unplayed !== itemId),
})

/** What was not heard will not be heard any more. */
export const agentCutOff = (turns: TurnTaking): TurnTaking => ({ ...turns, unplayed: [] })

export const callerSpeech = (turns: TurnTaking, speaks: boolean, now: number): TurnTaking => ({
  ...turns,
  callerSpeaksUntil: speaks ? now + speakingFrames : 0,
})

/** Frame `now` has passed. */
export function turnsAfterFrame(turns: TurnTaking, now: number): TurnTaking {
  const known = turns.unplayed.length > 0 && now >= turns.unplayedUntil ? agentCutOff(turns) : turns
  return isQuiet(known, now) ? known : { ...known, quietSince: now }
}

export const isAwaiting = ({ awaitedUntil }: TurnTaking, now: number): boolean => now < awaitedUntil

export const callerSpeaks = ({ callerSpeaksUntil }: TurnTaking, now: number): boolean => now < callerSpeaksUntil

/** Nothing of the agent is under way to the caller. */
export const isSilent = ({ isReplying, unplayed }: TurnTaking): boolean => !isReplying && unplayed.length === 0

/** Nobody speaks, and no reply is awaited. */
export const isQuiet = (turns: TurnTaking, now: number): boolean =>
  isSilent(turns) && !isAwaiting(turns, now) && !callerSpeaks(turns, now)

/** For how many frames nobody has spoken or been awaited, up to the last frame. */
export const quietFrames = ({ quietSince }: TurnTaking, now: number): number => now - quietSince
