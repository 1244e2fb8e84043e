/**
 * Owns finding the two tones of a telephone key in sound (ITU-T Q.23, Q.24): one of the low and one of the high group, of about the same level, and
 * hardly anything else. Voices and music have other parts, or do not hold both tones for as long. Pure: time is counted in samples.
 */
import { factorOf, powerAt } from './goertzel.ts'
import { energyOf } from './tone.ts'

export type KeyDetector = {
  /** Any number of samples. `began`: keys whose press was found in them; `isPressed`: one is held. */
  readonly hear: (samples: Int16Array) => { readonly began: readonly string[]; readonly isPressed: boolean }
}

const low = [697, 770, 852, 941] as const
const high = [1209, 1336, 1477, 1633] as const
const digits = ['123A', '456B', '789C', '*0#D'] as const

/** A window tells the tones of a group from each other; it moves on by half of itself. Ms. */
const windowMs = 12.75
/** So many windows in a row, 32 ms of both tones: a press of 40 ms is found wherever it begins. */
const pressWindows = 4
/** So many without the key end its press: a dropout of 10 ms does not, a pause of 40 ms does. */
const pauseWindows = 4
/** Of all energy, that at both frequencies; a tone that is 1.5 % off is not found whole. */
const purity = 0.75
/** The high tone may be so much stronger, or weaker, than the low one: 4 and 8 dB (Q.24 Table A-1), with some for the line. */
const strongerHigh = 4
const weakerHigh = 10
/** Against the other tones of the group: 8 dB. */
const aboveOthers = 6.3
/** -40 dBm0 of each tone, root mean square. */
const quietest = 100

export function createKeyDetector(rateHz: number): KeyDetector {
  const size = Math.round((rateHz * windowMs) / 1000)
  const hop = size >> 1
  const window = new Int16Array(size)
  const toneOf = createTones(rateHz, size)
  let filled = 0
  let found: string | null = null
  let times = 0
  let held: string | null = null
  let missed = 0

  const follow = (digit: string | null): string | null => {
    times = digit !== null && digit === found ? times + 1 : 1
    found = digit
    if (digit !== null && digit === held) missed = 0
    else if (held !== null && ++missed >= pauseWindows) held = null
    if (digit === null || times < pressWindows || digit === held) return null
    held = digit
    missed = 0
    return digit
  }
  return {
    hear(samples) {
      const began: string[] = []
      for (let at = 0; at < samples.length;) {
        const part = samples.subarray(at, at + size - filled)
        window.set(part, filled)
        filled += part.length
        at += part.length
        if (filled < size) break
        const digit = follow(toneOf(window))
        if (digit !== null) began.push(digit)
        window.copyWithin(0, hop)
        filled = size - hop
      }
      return { began, isPressed: held !== null }
    },
  }
}

/** The key whose tones a window is, or null. */
function createTones(rateHz: number, size: number): (window: Int16Array) => string | null {
  const lows = low.map((hertz) => factorOf(hertz, rateHz))
  const highs = high.map((hertz) => factorOf(hertz, rateHz))

  const strongest = (window: Int16Array, factors: readonly number[]) => {
    const powers = factors.map((factor) => powerAt(window, factor))
    const best = powers.indexOf(Math.max(...powers))
    const isAlone = powers.every((power, index) => index === best || power * aboveOthers < powers[best]!)
    return { best, power: powers[best]!, isAlone }
  }
  return (window) => {
    const energy = energyOf(window)
    // A sine of amplitude A has the energy A^2 * size / 2.
    const whole = (energy * size) / 2
    if (energy < quietest * quietest * size) return null
    const row = strongest(window, lows)
    if (!row.isAlone || row.power < whole * 0.05) return null
    const column = strongest(window, highs)
    if (!column.isAlone || row.power + column.power < whole * purity) return null
    if (column.power > row.power * strongerHigh || row.power > column.power * weakerHigh) return null
    return digits[row.best]![column.best]!
  }
}
