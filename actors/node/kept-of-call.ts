/** Owns what a node knows of a call of which steps lie on its disk. */
import type { Place } from '../../store/journal-file.ts'

/** Where a step lies. */
export type Source = { read(place: Place): Promise<string>; done(): void }

export type Kept = {
  readonly source: Source
  readonly place: Place
  readonly epoch: number
  readonly firstTry: FirstTry
}

/** What becomes of a step that was on its way to the database when nobody waited for it any more: `written`, or something else. One for each step. */
export type FirstTry = Promise<unknown>

export type KeptOfCall = {
  /** On the disk, in their order. */
  readonly steps: Kept[]
  /** Being put there. */
  coming: number
  /** Of those, and of those being put there, the ones of which it is not known that the database has them. */
  readonly unwritten: Set<FirstTry>
  /** So often in a row its first step could be neither written nor put aside, although the database answers. */
  failures: number
  isShipped: boolean
  readonly settled: PromiseWithResolvers<void>
}

export function createKeptOfCall(): KeptOfCall {
  const settled = Promise.withResolvers<void>()
  settled.promise.catch(() => {})
  return { steps: [], coming: 0, unwritten: new Set(), failures: 0, isShipped: false, settled }
}

/** From before it is on the disk. */
export function expectStep({ unwritten }: KeptOfCall, firstTry: FirstTry): void {
  unwritten.add(firstTry)
  void firstTry.then((result) => result === 'written' && unwritten.delete(firstTry))
}

/** They are in the database, or will never be. */
export function leaveSteps(of: KeptOfCall, given: readonly Kept[]): void {
  of.steps.splice(0, of.steps.length, ...of.steps.filter((kept) => !given.includes(kept)))
  for (const { source, firstTry } of given) {
    of.unwritten.delete(firstTry)
    source.done()
  }
}
