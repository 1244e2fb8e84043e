/**
 * Owns finding the two tones of a telephone key in sound (ITU-T Q.23, Q.24): one of the low and one of the high group, of about the same level, and
 * hardly anything else. Voices and music have other parts, or do not hold both tones for as long. Pure: time is counted in samples.
 */
import { createDcOffset } from '../pcm/dc-offset.ts'
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

/** What nearly all sound is. */
const noKey = { began: [], isPressed: false } as const

/**
 * Of windows without a key only every fourth is looked at: a press is in four in a row, so that one of them is. Those before it are looked at
 * when it has a key, which finds the same presses at the same time for a quarter of the work.
 */
export function createKeyDetector(rateHz: number): KeyDetector {
  const size = Math.round((rateHz * windowMs) / 1000)
  const hop = size >> 1
  const heard = new Int16Array(size + (pressWindows - 1) * hop)
  const windows = Array.from({ length: pressWindows }, (_, at) => heard.subarray(at * hop, at * hop + size))
  const toneOf = createTones(rateHz, size)
  const offset = createDcOffset()
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
  /** Windows in front of the one that is being filled, which are looked at only if that has a key. */
  const passedBy = (): number => (held === null && found === null ? pressWindows - 1 : 0)
  /** A window is full. Answers the key whose press was found with it. */
  const look = (passedOver: number): string | null => {
    const digit = toneOf(windows[passedOver]!)
    // Three are too few for a press of their own.
    for (let before = 0; digit !== null && before < passedOver; before++) follow(toneOf(windows[before]!))
    const began = follow(digit)
    heard.copyWithin(0, (passedOver + 1) * hop, filled)
    filled -= (passedOver + 1) * hop
    return began
  }
  return {
    hear(given) {
      const samples = offset.without(given)
      let began: string[] | null = null
      for (let at = 0; at < samples.length;) {
        const passed = passedBy()
        const count = Math.min(size + passed * hop - filled, samples.length - at)
        copy(samples, at, heard, filled, count)
        at += count
        filled += count
        const digit = filled === size + passed * hop ? look(passed) : null
        if (digit !== null) began = [...(began ?? []), digit]
      }
      if (began === null && held === null) return noKey
      return { began: began ?? noKey.began, isPressed: held !== null }
    },
  }
}

/** By hand: a view for each piece would be garbage. */
function copy(from: Int16Array, at: number, to: Int16Array, position: number, count: number): void {
  for (let index = 0; index < count; index++) to[position + index] = from[at + index]!
}

/** The key whose tones a window is, or null. */
function createTones(rateHz: number, size: number): (window: Int16Array) => string | null {
  const lows = createGroup(low, rateHz)
  const highs = createGroup(high, rateHz)
  return (window) => {
    const energy = energyOf(window)
    // A sine of amplitude A has the energy A^2 * size / 2.
    const whole = (energy * size) / 2
    if (energy < quietest * quietest * size) return null
    const row = lows.loudestIn(window)
    const rowPower = lows.power(row)
    if (rowPower < whole * 0.05 || !lows.isAlone(row)) return null
    const column = highs.loudestIn(window)
    const columnPower = highs.power(column)
    if (rowPower + columnPower < whole * purity || !highs.isAlone(column)) return null
    if (columnPower > rowPower * strongerHigh || rowPower > columnPower * weakerHigh) return null
    return digits[row]![column]!
  }
}

/** Four tones, of which a key has one. Its answers are of the window that was asked for last. */
function createGroup(tones: readonly number[], rateHz: number) {
  const factors = tones.map((hertz) => factorOf(hertz, rateHz))
  const powers = new Float64Array(tones.length)
  return {
    loudestIn(window: Int16Array): number {
      let best = 0
      for (let tone = 0; tone < powers.length; tone++) {
        powers[tone] = powerAt(window, factors[tone]!)
        if (powers[tone]! > powers[best]!) best = tone
      }
      return best
    },
    power: (tone: number): number => powers[tone]!,
    isAlone(best: number): boolean {
      for (let tone = 0; tone < powers.length; tone++)
        if (tone !== best && powers[tone]! * aboveOthers >= powers[best]!) return false
      return true
    },
  }
}
