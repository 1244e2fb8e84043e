/** Owns how often something may happen: so many times a second, and as many at once after a pause (a token bucket). Pure: time is an argument. */

/** `now` in milliseconds that never jump. True takes one. */
export function createRateLimit(perSecond: number): (now: number) => boolean {
  let tokens = perSecond
  let countedAt = Number.NEGATIVE_INFINITY
  return (now) => {
    tokens = Math.min(perSecond, tokens + (Math.max(0, now - countedAt) * perSecond) / 1000)
    countedAt = now
    if (tokens < 1) return false
    tokens -= 1
    return true
  }
}
