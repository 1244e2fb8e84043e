/**
 * Owns the guess at sound that never came, for codecs that have none of their own (G.711, G.722): the last period of the voice goes on, after
 * 10 ms the last two, then three, while it fades away within 60 ms. What comes after it is joined on softly. ITU-T G.711 Appendix I in spirit,
 * without its delay. Pure.
 */

export type Concealment = {
  /** Sound that came. Its beginning is changed in place when it follows on a guess. */
  readonly heard: (samples: Int16Array) => void
  /** The next `count` samples; null when too much is missing. Valid until the next call. */
  readonly guess: (count: number) => Int16Array | null
}

/** Ms. What is remembered holds three of the longest periods. */
export const rememberedMs = 50
const shortestPeriod = 2.5
const longestPeriod = 15
const comparedMs = 10
const silentAfter = 60
/** The way back to what comes next: longer ones blur more than they hide. */
const joinMs = 1
const maxJoinMs = 5

export function createConcealment(rateHz: number): Concealment {
  const perMs = rateHz / 1000
  const history = new Int16Array(rememberedMs * perMs)
  const loop = createVoiceLoop(history, perMs)
  let guessed = 0
  let out = new Int16Array(0)

  const gainAt = (sample: number) => Math.max(0, 1 - sample / (silentAfter * perMs))

  const join = (samples: Int16Array) => {
    const wanted = Math.min(maxJoinMs * perMs, joinMs * perMs + guessed / 10)
    const joined = Math.min(samples.length, Math.round(wanted))
    for (let i = 0; i < joined; i++) {
      const share = (i + 1) / (joined + 1)
      samples[i] = Math.round(samples[i]! * share + loop.next(guessed + i) * gainAt(guessed + i) * (1 - share))
    }
  }

  const remember = (samples: Int16Array) => {
    const kept = samples.length > history.length ? samples.subarray(samples.length - history.length) : samples
    history.copyWithin(0, kept.length)
    history.set(kept, history.length - kept.length)
  }

  return {
    heard(samples) {
      if (guessed > 0) join(samples)
      guessed = 0
      remember(samples)
    },
    guess(count) {
      if (guessed === 0) loop.begin()
      if (guessed >= silentAfter * perMs) return null
      if (out.length !== count) out = new Int16Array(count)
      for (let i = 0; i < count; i++, guessed++) out[i] = Math.round(loop.next(guessed) * gainAt(guessed))
      return out
    },
  }
}

/** The end of what was heard, over and over. */
function createVoiceLoop(history: Int16Array, perMs: number) {
  const length = history.length
  const voice = new Float64Array(length)
  let period = 0
  let at = 0
  /** What is missing at the seam to what was heard, and how long it is made up for. */
  let step = 0
  let seam = 0

  return {
    begin() {
      period = periodOf(history, perMs)
      voice.set(history)
      // The end of a period runs into what lay before its beginning, so that it can begin again.
      seam = period >> 2
      for (let i = 0; i < seam; i++) {
        const share = (i + 1) / (seam + 1)
        const here = length - seam + i
        voice[here] = voice[here]! * (1 - share) + history[here - period]! * share
      }
      at = length - period
      step = history[length - 1]! - history[length - 1 - period]!
    },
    /** `sample` counts from the beginning of the guess. */
    next(sample: number): number {
      const periods = Math.min(3, 1 + Math.floor(sample / (10 * perMs)))
      const value = voice[at]!
      if (++at >= length) at = length - Math.min(periods, Math.floor(length / period)) * period
      return sample < seam ? value + step * (1 - (sample + 1) / (seam + 1)) : value
    },
  }
}

/** The distance at which the last 10 ms are most like what lay before them; searched coarsely first. */
function periodOf(history: Int16Array, perMs: number): number {
  const [shortest, longest] = [Math.round(shortestPeriod * perMs), Math.round(longestPeriod * perMs)]
  const stride = perMs >= 16 ? 4 : 2
  const best = bestPeriod(history, perMs, { from: shortest, to: longest, stride })
  return bestPeriod(history, perMs, {
    from: Math.max(shortest, best - stride),
    to: Math.min(longest, best + stride),
    stride: 1,
  })
}

function bestPeriod(
  history: Int16Array,
  perMs: number,
  { from, to, stride }: { readonly from: number; readonly to: number; readonly stride: number },
): number {
  let best = from
  let most = -Infinity
  for (let period = from; period <= to; period += stride) {
    const likeness = likenessAt(history, comparedMs * perMs, { period, stride })
    if (likeness > most) [most, best] = [likeness, period]
  }
  return best
}

/** Normalised cross-correlation. */
function likenessAt(
  history: Int16Array,
  compared: number,
  { period, stride }: { readonly period: number; readonly stride: number },
): number {
  let product = 0
  let energy = 1
  for (let i = history.length - compared; i < history.length; i += stride) {
    const before = history[i - period]!
    product += history[i]! * before
    energy += before * before
  }
  return product / Math.sqrt(energy)
}
