/** Owns work that a service does once when it starts, beside everything else: it is broken off and waited for when the service ends. */

/** `work` never throws. */
export function openWorkAtStart(closing: AsyncDisposableStack, work: (signal: AbortSignal) => Promise<void>): void {
  const abort = new AbortController()
  const working = work(abort.signal)
  closing.defer(async () => {
    abort.abort()
    await working
  })
}
