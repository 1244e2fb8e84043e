/**
 * Owns how a hosted talk ends: by the model, by a caller who does not answer any more, or with last words. Each time all
 * that is under way is said to its end first. Counts frames of the caller's line.
 */
import { frameMs } from '../../../model/frame.ts'
import type { TurnTaking } from './turn-taking.ts'
import type { ToolWork } from './tool-work.ts'

export type Ending = {
  /** `goodbyeDue`: it has not said it yet. */
  byModel(nextAction: string | null, goodbyeDue: boolean): void
  /** The goodbye has been asked for. */
  bySilence(): void
  /** The last words have been asked for: the caller is not listened to any more, and nothing else is said. */
  withWords(): void
  callerSpoke(): void
  /** What the caller said in the end: who has something to say is not hung up on. */
  heard(text: string): void
  /** `says`: it is one that was to be said word for word. */
  replyStarted(says: boolean): void
  replyDone(): void
  frame(): void
  isDue(): boolean
  isDeaf(): boolean
  /** What the model says now is not what it was asked to say last. */
  isMute(): boolean
}

type Due = { readonly cause: 'model' | 'silence' | 'words'; readonly nextAction: string | null; goodbyeDue: boolean }

/** A model that owes its goodbye, and from which nothing is awaited any more, has said it. */
const lastWordsWithin = 3_000 / frameMs

export function createEnding({
  turns,
  work,
  finish,
}: {
  readonly turns: TurnTaking
  readonly work: Pick<ToolWork, 'isBusy'>
  finish(nextAction: string | null): void
}): Ending {
  let due: Due | null = null
  let saysWords = false
  let hasSpoken = false
  const isDeaf = (): boolean => due?.cause === 'words'
  const isMute = (): boolean => isDeaf() && !saysWords
  return {
    byModel(nextAction, goodbyeDue) {
      hasSpoken = false
      if (!isDeaf()) due = { cause: 'model', nextAction: nextAction ?? due?.nextAction ?? null, goodbyeDue }
    },
    bySilence() {
      due ??= { cause: 'silence', nextAction: null, goodbyeDue: false }
    },
    withWords() {
      due = { cause: 'words', nextAction: null, goodbyeDue: false }
      saysWords = false
    },
    callerSpoke() {
      hasSpoken = due !== null
      if (due?.cause === 'silence') due = null
    },
    heard(text) {
      // Not what was said before the end was decided, whose text is late.
      if (hasSpoken && !isDeaf() && text.trim() !== '') due = null
      hasSpoken = false
    },
    replyStarted(says) {
      saysWords = says
    },
    replyDone() {
      if (due === null) return
      // A reply that the provider began by itself, or one that failed: the words come after it.
      if (isDeaf() && (isMute() || !turns.hasSpoken())) return turns.expectReply()
      if (!isDeaf() && (work.isBusy() || turns.isAwaiting() || turns.callerIsSpeaking())) return
      if (isDeaf()) finish(due.nextAction)
      else if (due.goodbyeDue && !turns.hasSpoken()) due.goodbyeDue = false
      else finish(due.nextAction)
    },
    frame() {
      if (due === null || (work.isBusy() && !isDeaf())) return
      if (turns.quietFrames() > lastWordsWithin) finish(due.nextAction)
    },
    isDue: () => due !== null,
    isDeaf,
    isMute,
  }
}
