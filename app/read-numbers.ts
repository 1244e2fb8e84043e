/** Owns that a service reads the stored numbers of persons once, when it starts with those of an older version, beside its work. */
import { readStoredNumbers } from '../store/read-stored-numbers.ts'
import type { Core } from './core.ts'
import { openWorkAtStart } from './work-at-start.ts'

export function openReadingOfNumbers({ sql, log }: Core, closing: AsyncDisposableStack): void {
  openWorkAtStart(closing, async (signal) => {
    try {
      const changed = await readStoredNumbers(sql, signal)
      if (changed > 0) log.info('numbers of persons were written as E.164', { changed })
    } catch (error) {
      if (!signal.aborted) log.error('numbers of persons could not be read', { error })
    }
  })
}
