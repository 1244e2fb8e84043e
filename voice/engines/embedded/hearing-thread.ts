/** Owns a hearing thread: several recognisers side by side, one utterance each. Started by ear.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { z } from 'zod'
import { isPhone } from './grammar.ts'
import type { HearingReply, HearingRequest, HeardWords } from './hearing-messages.ts'
import { createLostBand, type LostBand } from './lost-band.ts'
import { createRecogniser, type Decoder, type Segment } from './pocketsphinx.ts'

const Settings = z.object({ heapBytes: z.number(), seats: z.number() })

/** Loudness of a least significant bit or so: the recogniser does not like digital silence. */
const dither = 4

/** Sound becomes what the recogniser hears. */
type Preparation = { readonly gain: number; readonly band: LostBand; readonly noise: () => number }
type Seat = { readonly decoder: Decoder; utterance: number | null; preparation: Preparation }

async function main(): Promise<void> {
  const port = parentPort
  if (port === null) throw new Error('runs in a worker thread only')
  const settings = Settings.parse(workerData)
  const recogniser = await createRecogniser(settings.heapBytes)
  const seats = Array.from({ length: settings.seats }, (): Seat => {
    return { decoder: recogniser.createDecoder(), utterance: null, preparation: preparationOf(1) }
  })
  const reply = (message: HearingReply): void => port.postMessage(message)

  const serve = (request: HearingRequest): void => {
    if (request.type === 'begin') {
      const free = seats.find((seat) => seat.utterance === null)
      if (free === undefined) throw new Error('more utterances than seats')
      free.utterance = request.utterance
      free.preparation = preparationOf(request.gain)
      free.decoder.start(request.grammar)
      return reply({ type: 'begun', utterance: request.utterance })
    }
    const seat = seats.find((candidate) => candidate.utterance === request.utterance)
    if (seat === undefined) return // It was dropped after its end.
    if (request.type === 'sound') {
      const words = seat.decoder.feed(prepared(request.samples, seat.preparation))
      return reply({ type: 'partial', utterance: request.utterance, words: words.split(' ').map(plainWord) })
    }
    const segments = seat.decoder.stop()
    seat.utterance = null
    if (request.type === 'drop') return
    const { utterance } = request
    reply({ type: 'final', utterance, compiled: recogniser.compiledGrammars(), heard: summaryOf(segments) })
  }
  port.on('message', serve)
  reply({ type: 'ready' })
}

/** Shorter segments have scores of chance. In frames of 10 ms. */
const tellingWord = 8
const tellingSilence = 12

/** Words without fillers, and how well the sound fits them. */
function summaryOf(segments: readonly Segment[]): HeardWords {
  const spoken = segments.filter(({ word }) => !isFiller(word))
  const score = spoken.reduce((sum, segment) => sum + segment.score, 0) / Math.max(1, framesOf(spoken))
  const first = segments.findIndex(({ word }) => !isFiller(word))
  const telling = segments.slice(first).filter((segment) => {
    const frames = framesOf([segment])
    return frames >= (isFiller(segment.word) ? tellingSilence : tellingWord)
  })
  const worst = Math.min(0, ...telling.map((segment) => segment.score / framesOf([segment])))
  return { words: spoken.map(({ word }) => plainWord(word)), score, worst }
}

const isFiller = (word: string): boolean => /^[<[(]/.test(word)
const framesOf = (segments: readonly Segment[]): number =>
  segments.reduce((sum, { start, end }) => sum + end - start + 1, 0)

/** `the(2)` is the second way to say `the`. */
const plainWord = (word: string): string => (isPhone(word) ? word : word.replace(/\(\d\)$/, ''))

/** At the level that the recogniser likes, with all that a voice has, and never quite silent. */
function prepared(samples: Int16Array, { band, gain, noise }: Preparation): Int16Array {
  const sound = band.restore(samples, gain)
  return Int16Array.from(sound, (sample) => Math.max(-32768, Math.min(32767, Math.round(sample + dither * noise()))))
}

/** A new one for every utterance: nothing of the last one is left. */
function preparationOf(gain: number): Preparation {
  const noise = createNoise()
  return { gain, noise, band: createLostBand(noise) }
}

/** From -1 to 1, always the same (a linear congruential generator): the same sound gives the same words. */
function createNoise(): () => number {
  let state = 1
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 31 - 1
  }
}

await main()
