/** Owns the count of requests that are being answered, so that closing can wait for them, for a while. */

export function createRunningRequests() {
  let running = 0
  let whenIdle: (() => void) | null = null

  async function track(answering: Promise<void>): Promise<void> {
    running++
    try {
      await answering
    } finally {
      running--
      if (running === 0) whenIdle?.()
    }
  }

  /** Resolves when nothing runs, at the latest after `graceMs`. */
  async function idle(graceMs: number): Promise<void> {
    if (running === 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, graceMs)
      whenIdle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  return { track, idle }
}
