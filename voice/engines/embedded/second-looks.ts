/**
 * Owns the second looks of a recognition thread: one after another, since they share decoders, and a piece at a time, so that whoever speaks meanwhile is
 * heard between the pieces. Where too many wait nobody gets another: who was not understood is asked again sooner than that.
 */
import type { HeardWords } from './recognition-messages.ts'

/** At what was said, as a whole. */
export type SecondLook = {
  /** Hears one more piece; null: there is more to hear. */
  goOn(): HeardWords | null
}

export type SecondLooks = {
  /** False: too many wait, and nothing comes of this one. */
  take(look: SecondLook, told: Told): boolean
}

type Told = { done(again: HeardWords): void; failed(error: unknown): void }

/** A second and a half of work on a slow machine. */
const most = 4

/** `later`: when what has come meanwhile has been seen to. */
export function createSecondLooks(later: (action: () => void) => void): SecondLooks {
  const waiting: { readonly look: SecondLook; readonly told: Told }[] = []

  const advance = ({ look, told }: (typeof waiting)[number]): boolean => {
    try {
      const again = look.goOn()
      if (again !== null) told.done(again)
      return again !== null
    } catch (error) {
      told.failed(error)
      return true
    }
  }
  const work = (): void => {
    const first = waiting[0]
    if (first && advance(first)) waiting.shift()
    if (waiting.length > 0) later(work)
  }
  return {
    take(look, told) {
      if (waiting.length >= most) return false
      waiting.push({ look, told })
      if (waiting.length === 1) later(work)
      return true
    },
  }
}
