/** Owns the levels of the newest frames, in whole dB, and how far their quietest moments lie below their loudest ones. Pure, nothing is allocated. */

export type RecentLevels = {
  add(level: number): void
  /** Of a pause after the newest one: it counts in its place when it is lower. */
  lower(level: number): void
  /** dB between the frame that only one in twenty is quieter than and the third loudest. 0 of none. */
  depth(): number
  clear(): void
}

const highest = 96

export function createRecentLevels(frames: number): RecentLevels {
  const levels = new Uint8Array(frames)
  const counts = new Uint16Array(highest + 1)
  let added = 0

  const boundOf = (level: number): number => Math.max(0, Math.min(highest, Math.round(level)))
  const put = (at: number, level: number): void => {
    levels[at] = level
    counts[level]!++
  }
  return {
    add(level) {
      const at = added % frames
      if (added >= frames) counts[levels[at]!]!--
      added++
      put(at, boundOf(level))
    },
    lower(level) {
      if (added === 0) return
      const at = (added - 1) % frames
      const lowered = boundOf(level)
      if (lowered >= levels[at]!) return
      counts[levels[at]!]!--
      put(at, lowered)
    },
    depth() {
      const count = Math.min(added, frames)
      if (count === 0) return 0
      let [low, high] = [0, highest]
      for (let below = counts[low]!; below <= count * 0.05; below += counts[low]!) low++
      for (let above = counts[high]!; above < Math.min(3, count); above += counts[high]!) high--
      return high - low
    },
    clear() {
      counts.fill(0)
      added = 0
    },
  }
}
