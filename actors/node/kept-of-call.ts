/** Owns what a node knows of a call of which steps lie on its disk. */
import type { Place } from '../../store/journal-file.ts'

/** Where a step lies. */
export type Source = { read(place: Place): Promise<string>; done(): void }
export type Kept = { readonly source: Source; readonly place: Place; readonly epoch: number }

export type KeptOfCall = {
  readonly steps: Kept[]
  /** Being put on the disk. */
  coming: number
  /** What becomes of the first of these steps, which was on its way to the database when nobody waited for it any more. */
  late: Promise<unknown>
  /** So often in a row its first step could be neither written nor put aside, although the database answers. */
  failures: number
  isShipped: boolean
  readonly settled: PromiseWithResolvers<void>
}

export function createKeptOfCall(): KeptOfCall {
  const settled = Promise.withResolvers<void>()
  settled.promise.catch(() => {})
  return { steps: [], coming: 0, late: Promise.resolve(), failures: 0, isShipped: false, settled }
}

/** Its first step is in the database. */
export function leaveHead({ steps }: KeptOfCall): null {
  steps.shift()?.source.done()
  return null
}
