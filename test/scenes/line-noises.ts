/**
 * Owns what comes on lines and is nobody's voice, at 16 kHz: the signals of exchanges (ITU-T E.180), faxes and modems (T.30, V.8, V.21) and keys
 * (Q.23), beeps, hum, noise, and hold music made of chords with a rhythm.
 */
import { createRandom } from '../fake/random.ts'

/** Seconds since the beginning → a sample. */
type Wave = (seconds: number) => number

const rateHz = 16_000

export const soundOf = (ms: number, wave: Wave): Int16Array =>
  Int16Array.from({ length: (ms * rateHz) / 1000 }, (_, index) =>
    Math.max(-32_768, Math.min(32_767, Math.round(wave(index / rateHz)))),
  )

/** `level` is that of its root mean square, dB of full scale. */
export const sine = (hertz: number, level: number): Wave => {
  const peak = 32_768 * Math.SQRT2 * 10 ** (level / 20)
  return (seconds) => peak * Math.sin(2 * Math.PI * hertz * seconds)
}
const together =
  (...waves: readonly Wave[]): Wave =>
  (seconds) =>
    waves.reduce((sum, wave) => sum + wave(seconds), 0)

/** So many ms of it, so many of silence, again and again. */
const inCadence =
  (on: number, off: number, wave: Wave): Wave =>
  (seconds) =>
    (seconds * 1000) % (on + off) < on ? wave(seconds) : 0

/** 2100 Hz that turns its phase every 450 ms and swings by a fifth at 15 Hz: what a modem answers with. */
const ansAm: Wave = (seconds) =>
  (Math.floor(seconds / 0.45) % 2 === 0 ? 1 : -1) *
  (1 + 0.2 * Math.sin(2 * Math.PI * 15 * seconds)) *
  sine(2100, -12)(seconds)

/** 300 bits a second, by frequency. */
function v21(): Wave {
  const random = createRandom(21)
  const bits = Array.from({ length: 997 }, () => random.next() < 0.5)
  let phase = 0
  return (seconds) => {
    phase += (2 * Math.PI * (bits[Math.floor(seconds * 300) % bits.length] ? 1650 : 1850)) / rateHz
    return 9_000 * Math.sin(phase)
  }
}

const keyRows = [697, 770, 852, 941]
const keyColumns = [1209, 1336, 1477, 1633]
const keys = (on: number, off: number): Wave =>
  inCadence(on, off, (seconds) => {
    const key = Math.floor((seconds * 1000) / (on + off)) % 16
    return together(sine(keyRows[key >> 2] ?? 0, -12), sine(keyColumns[key & 3] ?? 0, -10))(seconds)
  })

/** A square wave of 400 Hz: what Chromium's fake microphone beeps with. */
const square = (hertz: number): Wave => {
  const swing = sine(hertz, 0)
  return (seconds) => (swing(seconds) > 0 ? 9_000 : -9_000)
}

const white = (level: number): Wave => {
  const random = createRandom(1)
  const peak = 32_768 * Math.sqrt(3) * 10 ** (level / 20)
  return () => peak * (2 * random.next() - 1)
}
/** Three first-order filters beside each other (Paul Kellet). */
const pink = (level: number): Wave => {
  const noise = white(level)
  let [low, middle, high] = [0, 0, 0]
  return (seconds) => {
    const sample = noise(seconds) * 0.46
    low = 0.99765 * low + sample * 0.099046
    middle = 0.963 * middle + sample * 0.2965164
    high = 0.57 * high + sample * 1.0526913
    return low + middle + high + sample * 0.1848
  }
}

/** Keys of a piano: a bass and three notes, four beats each. */
const chords = [
  [48, 60, 64, 67],
  [45, 57, 60, 64],
  [41, 60, 65, 69],
  [43, 59, 62, 67],
] as const
const melody = [72, 74, 76, 79, 76, 74, 72, 67]
const hertzOf = (key: number): number => 440 * 2 ** ((key - 69) / 12)

export type Band = { readonly beatsPerMinute: number; readonly decay: number; readonly overtones: number }

/** Chords, a melody, and a drum that keeps the time. */
export function music({ beatsPerMinute, decay, overtones }: Band, level: number): Wave {
  const beat = 60 / beatsPerMinute
  const hiss = white(-10)
  const loudness = 10 ** (level / 20) * 0.35
  return (seconds) => {
    const count = Math.floor(seconds / beat)
    const within = seconds - count * beat
    const strength = Math.min(1, within / 0.01) * Math.exp(-decay * within)
    const played = [...(chords[Math.floor(count / 4) % 4] ?? []), melody[count % 8] ?? 0]
    let sample = 0
    for (const key of played)
      for (let overtone = 1; overtone <= overtones; overtone++)
        sample += (strength / overtone) * Math.sin(2 * Math.PI * hertzOf(key) * overtone * seconds)
    const cymbal = Math.exp(-40 * (within % (beat / 2))) * hiss(seconds)
    const drum = 32_768 * Math.exp(-15 * within) * Math.sin(2 * Math.PI * 55 * within)
    return loudness * (0.7 * 32_768 * sample + cymbal + drum)
  }
}

export const bands: Readonly<Record<string, Band>> = {
  organ: { beatsPerMinute: 100, decay: 0, overtones: 3 },
  piano: { beatsPerMinute: 120, decay: 3, overtones: 5 },
  guitar: { beatsPerMinute: 140, decay: 5, overtones: 6 },
  strings: { beatsPerMinute: 60, decay: 0.5, overtones: 8 },
}

/** By what it is called. Tones and signals. */
export const signals: Readonly<Record<string, () => Wave>> = {
  '440 Hz at -11 dB': () => sine(440, -11),
  'a whistle of 1000 Hz': () => sine(1000, -20),
  'dial tone': () => together(sine(350, -19), sine(440, -19)),
  'American ringback': () => inCadence(2000, 4000, together(sine(440, -19), sine(480, -19))),
  'American busy tone': () => inCadence(500, 500, together(sine(480, -19), sine(620, -19))),
  'European ringback': () => inCadence(1000, 4000, sine(425, -14)),
  'European busy tone': () => inCadence(480, 480, sine(425, -14)),
  'fax, CED': () => sine(2100, -12),
  'modem, ANSam': () => ansAm,
  'fax, CNG': () => inCadence(500, 3000, sine(1100, -12)),
  'fax, V.21': v21,
  'keys of 100 ms': () => keys(100, 100),
  'keys held': () => keys(300, 200),
  'a beep every second': () => inCadence(200, 800, sine(1000, -14)),
  'a square beep every second': () => inCadence(150, 850, square(400)),
  "Chromium's fake microphone": () => inCadence(20, 480, square(400)),
}

export const constantNoises: Readonly<Record<string, () => Wave>> = {
  'white noise at -25 dB': () => white(-25),
  'white noise at -40 dB': () => white(-40),
  'pink noise at -20 dB': () => pink(-20),
  'pink noise at -35 dB': () => pink(-35),
  'hum of 60 Hz': () => together(sine(60, -21), sine(120, -27)),
  'a fan': () => together(sine(93, -31), sine(186, -37)),
  'hum of 50 Hz': () => together(...[50, 100, 150, 250].map((hertz, index) => sine(hertz, -22 - 3 * index))),
}

export const holdMusic: Readonly<Record<string, () => Wave>> = Object.fromEntries(
  Object.entries(bands).map(([name, band]) => [`hold music, ${name}`, () => music(band, -14)]),
)
