/**
 * Owns finding hum: mains, fans, engines. Frames of 20 ms hold no whole periods of 60 Hz, so that their levels swing as if somebody spoke; over 100 ms
 * they stand still, and nearly all of it lies below voices. Pure; some 3 µs a frame.
 */

export type Hum = {
  /** 20 ms at 16 kHz. */
  hear(samples: Int16Array): void
  /** By the last 220 ms. A voice may look like it for some moments. */
  isLikely(): boolean
  /** By the last 320 ms. */
  isSure(): boolean
}

const rateHz = 16_000
/** Of the part that is low, Hz: a Butterworth filter of the second order. */
const lowHertz = 350
/** Frames of a window. */
const wide = 5
/** Windows, one for each frame, that are compared. */
const [likely, sure] = [7, 12]
/** Of their energies: 0.4 dB from the greatest to the least. */
const sameEnergy = 1.1
const leastLow = 0.7

export function createHum(): Hum {
  const filter = createLowPass()
  const totals = new Float64Array(wide + sure - 1)
  const lows = new Float64Array(wide + sure - 1)
  let frames = 0

  /** Energy of the window that ended so many frames ago. */
  const energyOf = (of: Float64Array, ago: number): number => {
    let sum = 0
    for (let back = ago; back < ago + wide; back++) sum += of[(frames - 1 - back) % of.length]!
    return sum
  }
  const isHum = (windows: number): boolean => {
    if (frames < wide + windows - 1) return false
    const newest = energyOf(totals, 0)
    if (newest === 0 || energyOf(lows, 0) < leastLow * newest) return false
    let [least, most] = [newest, newest]
    for (let ago = 1; ago < windows; ago++) {
      const energy = energyOf(totals, ago)
      least = Math.min(least, energy)
      most = Math.max(most, energy)
    }
    return most <= sameEnergy * least
  }
  return {
    hear(samples) {
      const at = frames++ % totals.length
      let [total, low] = [0, 0]
      for (let index = 0; index < samples.length; index++) {
        const sample = samples[index]!
        const passed = filter(sample)
        total += sample * sample
        low += passed * passed
      }
      totals[at] = total
      lows[at] = low
    },
    isLikely: () => isHum(likely),
    isSure: () => isHum(sure),
  }
}

function createLowPass(): (sample: number) => number {
  const turn = Math.tan((Math.PI * lowHertz) / rateHz)
  const scale = 1 / (1 + Math.SQRT2 * turn + turn * turn)
  const gain = turn * turn * scale
  const [feedback1, feedback2] = [2 * (turn * turn - 1) * scale, (1 - Math.SQRT2 * turn + turn * turn) * scale]
  let [kept1, kept2] = [0, 0]
  return (sample) => {
    const passed = gain * sample + kept1
    kept1 = 2 * gain * sample - feedback1 * passed + kept2
    kept2 = gain * sample - feedback2 * passed
    return passed
  }
}
