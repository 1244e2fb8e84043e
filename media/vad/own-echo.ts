/**
 * Owns telling the agent's own sound, as it comes back on the caller's line, from a caller: what was sent is known, and what comes is compared with
 * it at every delay up to 850 ms. Both are reduced to 4 kHz. Pure: time is counted in frames of 20 ms of the caller's line.
 */

export type OwnEcho = {
  /** The agent says this after all that it is saying. 16-bit samples at the rate that `createOwnEcho` was given. */
  says(samples: Int16Array): void
  /** What was to be said and is not out yet is not said. */
  cut(): void
  /** One frame of the caller's line at 16 kHz. */
  hear(samples: Int16Array): void
  /** The last frames that were heard are an echo and nothing else. A millisecond of work: not for every frame. */
  isEcho(): boolean
}

const rateHz = 4000
const frameSamples = rateHz / 50
const lineRateHz = 16_000
/** 160 ms of the line are compared. */
const window = 640
/** What the agent has said of late: a second. */
const kept = 4096
/** Of two voices at their best delay up to 0.5. */
const alike = 0.6
/** Low sound is what lines change most, and it is the strongest. */
const emphasis = 0.9

export function createOwnEcho(saysRateHz: number): OwnEcho {
  const line = createReducer(lineRateHz, window)
  const said = createReducer(saysRateHz, kept)
  const sayFrame = saysRateHz / 50
  const silence = new Int16Array(sayFrame)
  let toSay: Int16Array[] = []
  let at = 0
  /** Frames since the agent's last sound. */
  let quiet = Number.POSITIVE_INFINITY

  const sayNext = (): void => {
    let missing = sayFrame
    let next = toSay[0]
    quiet = next === undefined ? quiet + 1 : 0
    while (missing > 0 && next !== undefined) {
      const to = Math.min(next.length, at + missing)
      said.push(next, at, to)
      missing -= to - at
      at = to
      if (at < next.length) break
      toSay.shift()
      at = 0
      next = toSay[0]
    }
    if (missing > 0) said.push(silence, 0, missing)
  }
  return {
    says(samples) {
      if (samples.length > 0) toSay.push(samples)
    },
    cut() {
      toSay = []
      at = 0
    },
    hear(samples) {
      sayNext()
      line.push(samples, 0, samples.length)
    },
    isEcho: () => quiet * frameSamples < kept && mostAlike(line.newest(), said.newest()) >= alike,
  }
}

/** The newest samples at 4 kHz, the strength of low and high sound evened. */
function createReducer(fromHz: number, length: number) {
  const step = fromHz / rateHz
  const ring = new Float32Array(length)
  const straight = new Float32Array(length)
  let [at, sum, count, before] = [0, 0, 0, 0]
  return {
    push(samples: Int16Array, from: number, to: number): void {
      for (let index = from; index < to; index++) {
        sum += samples[index]!
        if (++count < step) continue
        const value = sum / step
        ring[at] = value - emphasis * before
        before = value
        at = (at + 1) % length
        sum = 0
        count = 0
      }
    },
    /** Oldest first; valid until it is asked for again. */
    newest(): Float32Array {
      straight.set(ring.subarray(at))
      straight.set(ring.subarray(0, at), length - at)
      return straight
    },
  }
}

/** The correlation of the line with the part of what was said that is most like it, 0 to 1. */
function mostAlike(line: Float32Array, said: Float32Array): number {
  const heard = squareOf(line, 0, line.length)
  if (heard === 0) return 0
  let square = squareOf(said, 0, line.length)
  let most = 0
  for (let from = 0; from + line.length <= said.length; from++) {
    if (from > 0) square += said[from + line.length - 1]! ** 2 - said[from - 1]! ** 2
    if (square < heard) continue
    let product = 0
    for (let index = 0; index < line.length; index++) product += line[index]! * said[from + index]!
    most = Math.max(most, Math.abs(product) / Math.sqrt(heard * square))
  }
  return most
}

function squareOf(samples: Float32Array, from: number, to: number): number {
  let sum = 0
  for (let index = from; index < to; index++) sum += samples[index]! ** 2
  return sum
}
