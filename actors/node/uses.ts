/** Owns a count of what is in use. */

export type Uses = { more(): void; less(): void }

/** `none` is told when nothing is any more. */
export function createUses(none: () => void): Uses {
  let count = 0
  return {
    more: () => void count++,
    less() {
      if (--count === 0) none()
    },
  }
}
