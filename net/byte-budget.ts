/**
 * Owns how many bytes may be held for strangers at once, over all of them. What is small has a part of its own, so that the large ones of a
 * few do not keep the small ones of all others out; and one address has half of the rest at most.
 */
import { addressGroupOf } from './addresses.ts'

export type ByteBudgetLimits = {
  readonly maxBytes: number
  /** Addresses that stand for many clients. */
  readonly isExempt: (address: string) => boolean
}

/** Of one holder. */
export type ByteShare = {
  /** It holds so many from now on. False: there is no room for more, and nothing has changed. */
  hold(bytes: number): boolean
  /** Idempotent. */
  release(): void
}

export type ByteBudget = {
  open(address: string): ByteShare
  held(): number
}

/** What counts as small. */
const smallBytes = 16 * 1024

export function createByteBudget({ maxBytes, isExempt }: ByteBudgetLimits): ByteBudget {
  const byGroup = new Map<string, number>()
  const maxLarge = maxBytes * 0.75
  let held = 0

  function hasRoom(group: string | null, wanted: number, more: number): boolean {
    if (wanted <= smallBytes) return held + more <= maxBytes
    if (group !== null && (byGroup.get(group) ?? 0) + more > maxLarge / 2) return false
    return held + more <= maxLarge
  }

  function add(group: string | null, bytes: number): void {
    held += bytes
    if (group === null) return
    const left = (byGroup.get(group) ?? 0) + bytes
    if (left > 0) byGroup.set(group, left)
    else byGroup.delete(group)
  }

  return {
    open(address) {
      const group = isExempt(address) ? null : addressGroupOf(address)
      let own = 0
      return {
        hold(bytes) {
          const more = bytes - own
          if (more > 0 && !hasRoom(group, bytes, more)) return false
          add(group, more)
          own = bytes
          return true
        },
        release() {
          add(group, -own)
          own = 0
        },
      }
    },
    held: () => held,
  }
}
