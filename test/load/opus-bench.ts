/**
 * Owns `npm run bench opus`: what each complexity of the Opus encoder costs, and how its speech sounds, at the rates at which agents speak: the voices that
 * the service brings along, as it sends them to browsers (24 kbit/s, no loss, and 10 %). Beside them what telephones do to the same speech.
 */
import process from 'node:process'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createOpusLibrary, type OpusLibrary } from '../../media/codecs/opus.ts'
import { joined } from '../../media/pcm/joined.ts'
import { createResampler } from '../../media/pcm/resample.ts'
import { createFlite, fliteVoices } from '../../voice/engines/embedded/flite.ts'
import { qualityOf, type Quality } from './speech-quality.ts'
import { printTable, quantile } from './table.ts'

const sentences = [
  'Good morning, you have reached the practice of Doctor Weber. How can I help you?',
  'I have an appointment on Thursday the nineteenth at half past four, or on Friday at a quarter to nine.',
  'Your booking number is seven, zero, eight, five, four, two. Shall I send you a message with all of it?',
]
const complexities = [0, 1, 2, 3, 4, 5, 10]
const rounds = 3

type Rate = 8000 | 16_000
type Speech = { readonly voice: string; readonly samples: Int16Array }

export async function benchOpus(): Promise<void> {
  const opus = createOpusLibrary()
  const flite = await createFlite()
  const wide = fliteVoices.map((voice) => ({ voice, samples: joined(sentences.map((text) => flite(voice, text))) }))
  const narrow = wide.map(({ voice, samples }) => ({ voice, samples: resampled(samples) }))
  console.log(
    `encoding: ${opus.encoding}; ${fliteVoices.join(', ')}: ${secondsOf(wide)} s of speech; score: test/load/speech-quality.ts`,
  )
  for (const [rateHz, speeches] of [
    [8000, narrow],
    [16_000, wide],
  ] as const) {
    console.log(`\nspeech of ${rateHz / 1000} kHz`)
    const costs = costsOf(opus, speeches, rateHz)
    const rows = complexities.map((complexity, at) => rowOf(opus, speeches, { rateHz, complexity, cost: costs[at]! }))
    printTable([...rows, lawRow(speeches, rateHz)])
  }
}

const secondsOf = (speeches: readonly Speech[]): string =>
  (speeches.reduce((sum, { samples }) => sum + samples.length, 0) / 16_000).toFixed(0)

const resampled = (samples: Int16Array): Int16Array =>
  createResampler(16_000, 8000)?.convert(samples).slice() ?? samples

/** Complexities take turns, so that whatever else the machine does meets all of them. */
function costsOf(opus: OpusLibrary, speeches: readonly Speech[], rateHz: Rate): number[] {
  const costs = complexities.map((): number[] => [])
  for (let round = 0; round < rounds; round++)
    complexities.forEach((complexity, at) =>
      costs[at]!.push(costOf(opus, speeches, { rateHz, complexity, lossPercent: 0 })),
    )
  return costs.map((some) => quantile(some, 0.5))
}

type Measured = { readonly rateHz: Rate; readonly complexity: number; readonly cost: number }

function rowOf(
  opus: OpusLibrary,
  speeches: readonly Speech[],
  { rateHz, complexity, cost }: Measured,
): Record<string, string> {
  const heard = (lossPercent: number): Quality[] =>
    speeches.map(({ samples }) => qualityOf(samples, coded(opus, samples, { rateHz, complexity, lossPercent }), rateHz))
  return cellsOf(String(complexity), { cost, clean: heard(0), lossy: heard(10) })
}

type Coding = { readonly rateHz: Rate; readonly complexity: number; readonly lossPercent: number }

const framesOf = (samples: Int16Array, size: number): Int16Array[] =>
  Array.from({ length: Math.floor(samples.length / size) }, (_, at) => samples.slice(at * size, (at + 1) * size))

/** Every tenth packet gets lost where some do, and is repaired from the one behind it, as a browser does. */
function coded(opus: OpusLibrary, samples: Int16Array, { rateHz, complexity, lossPercent }: Coding): Int16Array {
  const encoder = opus.createEncoder({ rateHz, complexity, expectedLossPercent: lossPercent })
  const decoder = opus.createDecoder({ rateHz })
  const packets = framesOf(samples, rateHz / 50).map((frame) => encoder.encode(frame).slice())
  const isLost = (at: number): boolean => lossPercent > 0 && at % 10 === 5
  const sound = packets.map((packet, at) => {
    const next = packets[at + 1]
    const decoded = isLost(at) && next ? decoder.recover(next, rateHz / 50) : decoder.decode(packet)
    return (decoded ?? new Int16Array(rateHz / 50)).slice()
  })
  encoder.close()
  decoder.close()
  return joined(sound)
}

/** µs of CPU a frame. */
function costOf(opus: OpusLibrary, speeches: readonly Speech[], { rateHz, complexity, lossPercent }: Coding): number {
  const frames = speeches.flatMap(({ samples }) => framesOf(samples, rateHz / 50))
  const encoder = opus.createEncoder({ rateHz, complexity, expectedLossPercent: lossPercent })
  const before = process.cpuUsage()
  for (const frame of frames) encoder.encode(frame)
  const { user, system } = process.cpuUsage(before)
  encoder.close()
  return (user + system) / frames.length
}

/** What a telephone line makes of it. */
function lawRow(speeches: readonly Speech[], rateHz: Rate): Record<string, string> {
  const qualities = speeches.map(({ samples }) => {
    const line = rateHz === 8000 ? samples : resampled(samples)
    const bytes = new Uint8Array(line.length)
    const decoded = new Int16Array(line.length)
    lawOfEncoding('pcmu').encode(line, bytes)
    lawOfEncoding('pcmu').decode(bytes, decoded)
    const heard = rateHz === 8000 ? decoded : (createResampler(8000, 16_000)?.convert(decoded) ?? decoded)
    return qualityOf(samples, heard, rateHz)
  })
  return cellsOf('PCMU', { cost: null, clean: qualities, lossy: null })
}

type Row = {
  readonly cost: number | null
  readonly clean: readonly Quality[]
  readonly lossy: readonly Quality[] | null
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

function cellsOf(name: string, { cost, clean, lossy }: Row): Record<string, string> {
  const scores = clean.map(({ score }) => score)
  return {
    complexity: name,
    'CPU µs per frame': cost === null ? '-' : cost.toFixed(1),
    score: meanOf(scores).toFixed(2),
    'worst voice': Math.min(...scores).toFixed(2),
    'segmental SNR dB': meanOf(clean.map(({ segmentalSnr }) => segmentalSnr)).toFixed(1),
    'score, 10 % lost': lossy === null ? '-' : meanOf(lossy.map(({ score }) => score)).toFixed(2),
  }
}
