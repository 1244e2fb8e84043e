/** Owns the turn-taking of a hosted talk: what the model is saying, what the caller has not heard yet, and whether the caller speaks. Counts frames of the caller's line. */
import { frameMs } from '../../../model/frame.ts'

export type TurnTaking = {
  /** A reply has been asked for. */
  expectReply(): void
  replyStarted(): void
  replyDone(): void
  sound(itemId: string): void
  played(itemId: string): void
  /** What was not heard is not heard any more. */
  cut(): void
  callerSpeaks(speaks: boolean): void
  callerIsSpeaking(): boolean
  /** A reply has been asked for that has not begun. */
  isAwaiting(): boolean
  /** 20 ms have passed. */
  frame(): void
  /** The model has said something in the reply that is under way, or in the last one. */
  hasSpoken(): boolean
  /** Nothing of the agent is under way to the caller. */
  isSilent(): boolean
  /** Nobody speaks, and no reply is awaited. */
  isQuiet(): boolean
  /** For how many frames that has been so. */
  quietFrames(): number
}

/** A reply that was asked for and does not begin is awaited no longer. */
const awaitedFrames = 15_000 / frameMs
/** The caller has stopped although no end of speech was told. */
const speakingFrames = 60_000 / frameMs
/** Sound has been played although its end was not told. */
const unplayedFrames = 300_000 / frameMs

export function createTurnTaking(): TurnTaking {
  const unplayed = new Set<string>()
  let replying = false
  let awaited = 0
  let speaking = 0
  let sounding = 0
  let spoken = false
  let quiet = 0

  const isSilent = (): boolean => !replying && unplayed.size === 0
  const isQuiet = (): boolean => isSilent() && awaited === 0 && speaking === 0
  return {
    expectReply() {
      awaited = awaitedFrames
    },
    replyStarted() {
      replying = true
      spoken = false
      awaited = 0
    },
    replyDone() {
      replying = false
    },
    sound(itemId) {
      unplayed.add(itemId)
      spoken = true
      sounding = unplayedFrames
    },
    played: (itemId) => void unplayed.delete(itemId),
    cut: () => unplayed.clear(),
    callerSpeaks(speaks) {
      speaking = speaks ? speakingFrames : 0
    },
    callerIsSpeaking: () => speaking > 0,
    isAwaiting: () => awaited > 0,
    frame() {
      awaited = Math.max(0, awaited - 1)
      speaking = Math.max(0, speaking - 1)
      sounding = Math.max(0, sounding - 1)
      if (sounding === 0) unplayed.clear()
      quiet = isQuiet() ? quiet + 1 : 0
    },
    hasSpoken: () => spoken,
    isSilent,
    isQuiet,
    quietFrames: () => quiet,
  }
}
