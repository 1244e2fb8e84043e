/**
 * Owns that a service seals its stored secrets anew when it starts, beside its work: by the newest of its keys, and in the way of this
 * version. Most times there is nothing to do.
 */
import { resealSecrets } from '../store/reseal-secrets.ts'
import type { Core } from './core.ts'
import { openWorkAtStart } from './work-at-start.ts'

export function openResealing({ sql, box, log }: Core, closing: AsyncDisposableStack): void {
  openWorkAtStart(closing, async (signal) => {
    try {
      const { resealed, unopened } = await resealSecrets({ sql, box, signal })
      if (resealed > 0) log.info('stored secrets were sealed anew', { resealed })
      if (unopened > 0)
        log.error('stored secrets do not open: the key they were sealed with is missing in APP_SECRET', { unopened })
    } catch (error) {
      if (!signal.aborted) log.error('stored secrets could not be sealed anew', { error })
    }
  })
}
