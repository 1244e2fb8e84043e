/**
 * Owns music that callers are put on hold with and that nothing was tuned with, at 16 kHz: instruments, tempi and drums of other kinds than the bands
 * of line-noises.ts, loops with pauses, and music behind a ringback tone. Nobody sings.
 */
import { createRandom } from '../fake/random.ts'

/** Seconds since the beginning → a sample. */
type Wave = (seconds: number) => number
/** Of a note: seconds since it began, its frequency → −1 to 1 or so. */
type Instrument = (seconds: number, hertz: number) => number
/** Keys of a piano for each beat, again and again. */
type Score = readonly (readonly number[])[]
type Piece = {
  readonly play: Instrument
  readonly score: Score
  readonly beatsPerMinute: number
  readonly drums?: Wave
}

const hertzOf = (key: number): number => 440 * 2 ** ((key - 69) / 12)
const turn = 2 * Math.PI

const harp: Instrument = (s, f) => Math.exp(-4 * s) * (Math.sin(turn * f * s) + 0.4 * Math.sin(2 * turn * f * s))
/** Its parts are not in harmony. */
const musicBox: Instrument = (s, f) =>
  Math.exp(-6 * s) * Math.sin(turn * f * s) + 0.5 * Math.exp(-9 * s) * Math.sin(2.76 * turn * f * s)
const brass: Instrument = (s, f) => {
  const phase = turn * f * s + 0.02 * Math.sin(turn * 5 * s) * f * 0.02
  const swell = Math.min(1, s / 0.12)
  return (
    [0.5, 0.9, 1, 0.8, 0.5, 0.3].reduce((sum, part, index) => sum + swell * part * Math.sin((index + 1) * phase), 0) / 2
  )
}
/** Two reeds that beat with each other. */
const accordion: Instrument = (s, f) =>
  [1, 3, 5, 7].reduce(
    (sum, part) => sum + (Math.sin(part * turn * f * s) + Math.sin(part * turn * f * 1.006 * s)) / part,
    0,
  ) / 2
const synthesiser: Instrument = (s, f) => Math.exp(-2 * s) * ((2 * ((s * f) % 1) - 1) * 0.8)

function drums(beatsPerMinute: number): Wave {
  const random = createRandom(31)
  const beat = 60 / beatsPerMinute
  return (seconds) => {
    const count = Math.floor(seconds / beat)
    const within = seconds - count * beat
    const noise = 2 * random.next() - 1
    const kick = count % 2 === 0 ? Math.exp(-12 * within) * Math.sin(turn * 60 * within) : 0
    const snare = count % 2 === 1 ? Math.exp(-25 * within) * (noise + 0.5 * Math.sin(turn * 190 * within)) : 0
    return kick + 0.8 * snare + 0.3 * Math.exp(-60 * (within % (beat / 2))) * noise
  }
}

const waltz: Score = [
  [48],
  [60, 64, 67],
  [60, 64, 67],
  [43],
  [59, 62, 67],
  [59, 62, 67],
  [45],
  [60, 64, 69],
  [60, 64, 69],
]
const arpeggio: Score = [60, 64, 67, 72, 67, 64, 57, 60, 64, 69, 64, 60, 65, 69, 72, 77, 72, 69].map((key) => [key])
const melody: Score = [[72], [74], [76, 60], [], [79], [77], [76, 64], [74], [72, 67], [], [71], [72, 55]]
const chorale: Score = [
  [55, 62, 67, 71],
  [55, 62, 67, 71],
  [52, 60, 67, 72],
  [53, 60, 65, 69],
  [50, 57, 65, 69],
  [43, 59, 62, 67],
]
const bass: Score = [[36], [36], [48], [36], [39], [39], [51], [41]]

/** Of each note the sound lasts until the next beat. Its root mean square is about 10 dB below `peak`, of full scale. */
function piece({ play, score, beatsPerMinute, drums: beaten }: Piece, level: number): Wave {
  const beat = 60 / beatsPerMinute
  const loudness = 32_768 * 10 ** (level / 20)
  return (seconds) => {
    const count = Math.floor(seconds / beat)
    const within = seconds - count * beat
    const fading = Math.min(1, within / 0.005, (beat - within) / 0.02)
    let sample = 0
    for (const key of score[count % score.length] ?? []) sample += fading * play(within, hertzOf(key))
    return loudness * (0.5 * sample + (beaten?.(seconds) ?? 0))
  }
}

const pausing =
  (sounding: number, pause: number, wave: Wave): Wave =>
  (seconds) =>
    seconds % (sounding + pause) < sounding ? wave(seconds) : 0
const ringing: Wave = (seconds) => 2_500 * (Math.sin(turn * 440 * seconds) + Math.sin(turn * 480 * seconds))
/** Twice for two seconds, four apart; then the music. */
const rungBefore =
  (wave: Wave): Wave =>
  (seconds) => {
    if (seconds < 9) return seconds % 6 < 2 ? ringing(seconds) : 0
    return wave(seconds - 9)
  }

/** By what it is called. */
export const otherHoldMusic: Readonly<Record<string, () => Wave>> = {
  'a harp': () => piece({ play: harp, score: arpeggio, beatsPerMinute: 240 }, -14),
  'a harp, slow and faint': () => piece({ play: harp, score: arpeggio, beatsPerMinute: 80 }, -34),
  'a music box': () => piece({ play: musicBox, score: melody, beatsPerMinute: 150 }, -17),
  brass: () => piece({ play: brass, score: chorale, beatsPerMinute: 66 }, -17),
  'an accordion': () => piece({ play: accordion, score: waltz, beatsPerMinute: 160 }, -20),
  'a melody with drums': () => piece({ play: synthesiser, score: melody, beatsPerMinute: 118, drums: drums(118) }, -17),
  'a bass with drums': () => piece({ play: synthesiser, score: bass, beatsPerMinute: 96, drums: drums(96) }, -14),
  'drums alone': () => piece({ play: harp, score: [[]], beatsPerMinute: 132, drums: drums(132) }, -11),
  'a harp that pauses': () => pausing(6, 1.5, piece({ play: harp, score: arpeggio, beatsPerMinute: 180 }, -17)),
  'brass behind a ringback tone': () => rungBefore(piece({ play: brass, score: chorale, beatsPerMinute: 84 }, -20)),
}
