/** Owns when a session that will end by itself is given up: in the next pause of the talk, or at the last moment. */
import type { Cancel, Clock } from '../../model/clock.ts'

export type SessionExpiry = {
  /** It ends in so many ms. */
  begin(within: number): void
  /** Nobody speaks, perhaps. */
  quiet(): void
  /** It is over. */
  close(): void
}

/** This long before the end nobody waits for a pause any more. */
const lastMoment = 5_000

type Deps = { readonly clock: Clock; isQuiet(): boolean; renew(): void }

export function createSessionExpiry({ clock, isQuiet, renew }: Deps): SessionExpiry {
  let isDue = false
  let cancel: Cancel = () => {}
  const close = (): void => {
    isDue = false
    cancel()
  }
  const end = (): void => {
    close()
    renew()
  }
  const quiet = (): void => {
    if (isDue && isQuiet()) end()
  }
  return {
    quiet,
    begin(within) {
      isDue = true
      cancel()
      cancel = clock.after(Math.max(0, within - lastMoment), end)
      quiet()
    },
    close,
  }
}
