/** Owns that a service reads what was said in calls of an older version once, so that they are found by words, beside its work. */
import { pause } from '../model/clock.ts'
import { readFormerCallWords } from '../store/call-words.ts'
import type { Core } from './core.ts'
import { openWorkAtStart } from './work-at-start.ts'

/** Ms. */
const againAfter = 60_000

export function openReadingOfWords({ sql, log, clock }: Core, closing: AsyncDisposableStack): void {
  openWorkAtStart(closing, async (signal) => {
    while (!signal.aborted)
      try {
        const calls = await readFormerCallWords(sql, signal)
        if (calls > 0) log.info('calls of before are found by words', { calls })
        return
      } catch (error) {
        if (signal.aborted) return
        log.warn('words of calls could not be read; tried again in a minute', { error })
        await pause(clock, againAfter, signal)
      }
  })
}
