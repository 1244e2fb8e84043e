/**
 * Owns how a hosted talk ends: by the model's word, by a caller who does not answer any more, or with last words that nobody answers. Each time all
 * that is under way is said to its end first. Counts frames of the caller's line.
 */
import { frameMs } from '../../../model/frame.ts'
import type { Floor } from './floor.ts'
import type { ToolWork } from './tool-work.ts'

export type Ending = {
  /** `goodbyeDue`: it has not said it yet. */
  byModel(nextAction: string | null, goodbyeDue: boolean): void
  /** The goodbye has been asked for. */
  bySilence(): void
  /** The last words have been asked for: the caller is not listened to any more, and nothing else is said. */
  withWords(): void
  callerSpoke(): void
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
  floor,
  work,
  finish,
}: {
  readonly floor: Floor
  readonly work: Pick<ToolWork, 'isBusy'>
  finish(nextAction: string | null): void
}): Ending {
  let due: Due | null = null
  let saysWords = false
  const isDeaf = (): boolean => due?.cause === 'words'
  const isMute = (): boolean => isDeaf() && !saysWords
  return {
    byModel(nextAction, goodbyeDue) {
      if (!isDeaf()) due = { cause: 'model', nextAction, goodbyeDue }
    },
    bySilence() {
      due ??= { cause: 'silence', nextAction: null, goodbyeDue: false }
    },
    withWords() {
      due = { cause: 'words', nextAction: null, goodbyeDue: false }
      saysWords = false
    },
    callerSpoke() {
      if (due?.cause === 'silence') due = null
    },
    replyStarted(says) {
      saysWords = says
    },
    replyDone() {
      if (due === null || (work.isBusy() && !isDeaf())) return
      // A reply that the provider began by itself: the words come after it.
      if (isMute()) floor.expectReply()
      else if (due.goodbyeDue && !floor.hasSpoken()) due.goodbyeDue = false
      else finish(due.nextAction)
    },
    frame() {
      if (due === null || (work.isBusy() && !isDeaf())) return
      if (floor.quietFrames() > lastWordsWithin) finish(due.nextAction)
    },
    isDue: () => due !== null,
    isDeaf,
    isMute,
  }
}
