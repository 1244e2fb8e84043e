/**
 * Owns that a key is told once, whichever way it comes: a gateway that sends a key by signaling may leave its tones in the sound as well. What the
 * signaling told once it tells always; the sound is not listened to for keys any more.
 */

export type KeyPresses = {
  /** Found in the sound. */
  readonly heard: (digit: string) => void
  /** Told by signaling. */
  readonly signaled: (digit: string) => void
}

/** The same press comes by the other way so much later at most, ms: when the key is let go, and after a slow proxy. */
const sameWithin = 2_000

export function createKeyPresses(now: () => number, tell: (digit: string) => void): KeyPresses {
  let isSignaled = false
  let untold: { readonly digit: string; readonly at: number }[] = []
  return {
    heard(digit) {
      if (isSignaled) return
      untold = [...untold.filter(({ at }) => now() - at < sameWithin), { digit, at: now() }]
      tell(digit)
    },
    signaled(digit) {
      isSignaled = true
      const index = untold.findIndex((press) => press.digit === digit && now() - press.at < sameWithin)
      if (index === -1) return tell(digit)
      untold = untold.slice(index + 1)
    },
  }
}
