/** Owns that a service reads what was said in calls of an older version once, so that they are found by words, beside its work. */
import { readFormerCallWords } from '../store/call-words.ts'
import type { Core } from './core.ts'
import { openWorkAtStart } from './work-at-start.ts'

export function openReadingOfWords({ sql, log }: Core, closing: AsyncDisposableStack): void {
  openWorkAtStart(closing, async (signal) => {
    try {
      const calls = await readFormerCallWords(sql, signal)
      if (calls > 0) log.info('calls of before are found by words', { calls })
    } catch (error) {
      if (!signal.aborted) log.error('words of calls could not be read', { error })
    }
  })
}
