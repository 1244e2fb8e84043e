/**
 * Owns when something is let go that nobody has used for long. A use costs a look at the time: one timer is set for all of them.
 */
import type { Cancel, Clock } from '../../../model/clock.ts'

/** Ms. A voice thread holds some 40 MB, and takes less than a second to be there again. */
export const usualRest = 300_000

export type Rest = {
  /** It is there, and used now. */
  used(): void
  /** Idempotent. */
  close(): void
}

type Deps = {
  readonly clock: Pick<Clock, 'now' | 'after'>
  /** Ms without a use. */
  readonly after: number
  /** Something is under way: it is looked at again as much later. */
  isBusy(): boolean
  letGo(): void
}

export function createRest({ clock, after, isBusy, letGo }: Deps): Rest {
  let usedAt = 0
  let isClosed = false
  let cancel: Cancel | null = null

  const look = (): void => {
    cancel = null
    const left = isBusy() ? after : usedAt + after - clock.now()
    if (left > 0) cancel = clock.after(left, look)
    else letGo()
  }
  return {
    used() {
      usedAt = clock.now()
      if (!isClosed) cancel ??= clock.after(after, look)
    },
    close() {
      isClosed = true
      cancel?.()
      cancel = null
    },
  }
}
