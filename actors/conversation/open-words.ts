/** Owns what somebody is saying, as far as it is known: told now and then, and no more when it is over. */
import type { Cancel, Clock } from '../../model/clock.ts'

export type OpenWords<Words> = {
  show(words: Words): void
  /** What was shown last, and whether it was told; nothing is open afterwards. */
  close(): { readonly words: Words | null; readonly wasTold: boolean }
}

/** The first of it is told at once. */
const toldEvery = 500

export function createOpenWords<Words>(clock: Pick<Clock, 'after'>, tell: (words: Words) => void): OpenWords<Words> {
  let words: Words | null = null
  let told: Words | null = null
  let rest: Cancel | null = null

  const tellNewest = (): void => {
    rest = null
    if (words === null || words === told) return
    told = words
    tell(words)
    rest = clock.after(toldEvery, tellNewest)
  }
  return {
    show(newest) {
      words = newest
      if (rest === null) tellNewest()
    },
    close() {
      rest?.()
      rest = null
      const closed = { words, wasTold: told !== null }
      words = null
      told = null
      return closed
    },
  }
}
