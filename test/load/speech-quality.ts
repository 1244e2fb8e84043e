/**
 * Owns how much of speech a codec changed, as an ear would hear it: what perceptual measures like PESQ (ITU-T P.862) have in common, without their fit to
 * listeners. Sound that is compared is aligned, cut into half-overlapping frames of 32 ms, and told as loudness in critical bands (Bark). Where
 * the two differ by less than 1 dB nothing is heard; what was added disturbs more than what is missing. The score is
 * 4.5 for no difference, and falls with the mean disturbance of the frames in which there is speech. It compares ways to code the same sound, and is
 * no mean opinion score. Pure.
 */
import { createPowerSpectrum } from '../../media/vad/power-spectrum.ts'

export type Quality = {
  /** 4.5 to 1. */
  readonly score: number
  /** Mean over frames of speech, each within -10 and 35 dB. */
  readonly segmentalSnr: number
}

/** Upper edges of critical bands, Hz (E. Zwicker). */
const bandEdges = [
  100, 200, 300, 400, 510, 630, 770, 920, 1080, 1270, 1480, 1720, 2000, 2320, 2700, 3150, 3700, 4400, 5300, 6400, 7700,
]
/** Loudness grows with this power of the intensity (S. S. Stevens, E. Zwicker). */
const loudnessPower = 0.23
/** Of the mean power of speech: what is softer than that in a band is not heard beside it, and a frame that is softer is a pause. */
const hearing = 1e-6
const speech = 1e-3
/** A difference in level of 1 dB. */
const noticed = 0.05
const added = 1.5
/** How fast the score falls: µ-law of telephones, whose opinion score is known to be about 4.3, gets that. */
const perDisturbance = 1.5
const farthestMs = 30

/** Both at `rateHz`; `heard` is at most 30 ms late. */
export function qualityOf(said: Int16Array, heard: Int16Array, rateHz: number): Quality {
  const late = delayOf(said, heard, rateHz)
  const size = rateHz === 8000 ? 256 : 512
  const count = Math.floor((Math.min(said.length, heard.length - late) - size) / (size / 2))
  const bands = createBands(size, rateHz)
  const power = meanSquareOf(said, 0, said.length)
  const gain = Math.sqrt(power / Math.max(1e-9, meanSquareOf(heard, late, Math.min(heard.length, said.length + late))))
  const [sum, snr] = [{ disturbance: 0, frames: 0 }, { decibels: 0 }]
  for (let frame = 0; frame < count; frame++) {
    const at = (frame * size) / 2
    if (meanSquareOf(said, at, at + size) < speech * power) continue
    sum.frames++
    const wanted = bands.loudnessOf(said, at, 1, power).slice()
    sum.disturbance += disturbanceOf(wanted, bands.loudnessOf(heard, at + late, gain, power))
    snr.decibels += snrOf(said, heard, { at, late, size })
  }
  const mean = sum.disturbance / Math.max(1, sum.frames)
  return { score: 1 + 3.5 * Math.exp(-perDisturbance * mean), segmentalSnr: snr.decibels / Math.max(1, sum.frames) }
}

/** Where the two are most alike. */
function delayOf(said: Int16Array, heard: Int16Array, rateHz: number): number {
  let [best, most] = [0, -Infinity]
  const compared = Math.min(said.length, heard.length - (farthestMs * rateHz) / 1000, 3 * rateHz)
  for (let late = 0; late <= (farthestMs * rateHz) / 1000; late++) {
    let product = 0
    for (let at = 0; at < compared; at++) product += said[at]! * heard[at + late]!
    if (product > most) [best, most] = [late, product]
  }
  return best
}

function createBands(size: number, rateHz: number) {
  const spectrum = createPowerSpectrum(size)
  const ring = new Float64Array(size)
  const edges = bandEdges.filter((hertz) => hertz <= rateHz / 2)
  const loudness = new Float64Array(edges.length)
  return {
    loudnessOf(sound: Int16Array, at: number, gain: number, power: number): Float64Array {
      for (let i = 0; i < size; i++) ring[i] = (sound[at + i] ?? 0) * gain
      const powers = spectrum.of(ring, 0)
      let bin = 1
      edges.forEach((hertz, band) => {
        let sum = 0
        for (; bin < powers.length && (bin * rateHz) / size <= hertz; bin++) sum += powers[bin]!
        // Of a steady sound of that power the bins sum up to about so much.
        const relative = sum / (power * size * size * (3 / 16))
        loudness[band] = (relative + hearing) ** loudnessPower - hearing ** loudnessPower
      })
      return loudness
    },
  }
}

/** Root mean square over the bands of what is heard of the difference, over the loudness of an average band. */
function disturbanceOf(wanted: Float64Array, heard: Float64Array): number {
  let [squares, loudness] = [0, 0]
  for (let band = 0; band < wanted.length; band++) {
    const difference = heard[band]! - wanted[band]!
    const audible = Math.max(0, Math.abs(difference) - noticed * Math.min(heard[band]!, wanted[band]!))
    squares += (audible * (difference > 0 ? added : 1)) ** 2
    loudness += wanted[band]!
  }
  return Math.sqrt(squares / wanted.length) / (loudness / wanted.length)
}

function snrOf(
  said: Int16Array,
  heard: Int16Array,
  { at, late, size }: { at: number; late: number; size: number },
): number {
  let noise = 0
  for (let i = at; i < at + size; i++) noise += (said[i]! - heard[i + late]!) ** 2
  const ratio = 10 * Math.log10((meanSquareOf(said, at, at + size) * size + 1) / (noise + 1))
  return Math.max(-10, Math.min(35, ratio))
}

function meanSquareOf(sound: Int16Array, from: number, to: number): number {
  let sum = 0
  for (let at = from; at < to; at++) sum += (sound[at] ?? 0) ** 2
  return sum / Math.max(1, to - from)
}
