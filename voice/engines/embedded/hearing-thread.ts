/** Owns a hearing thread: several recognisers side by side, one utterance each. Started by ear.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { z } from 'zod'
import type { HearingReply, HearingRequest } from './hearing-messages.ts'
import { createPreparation, plainWord, summaryOf, type Preparation } from './hearing-sound.ts'
import { createRecogniser, type Decoder } from './pocketsphinx.ts'

const Settings = z.object({ heapBytes: z.number(), seats: z.number() })

type Seat = { readonly decoder: Decoder; utterance: number | null; preparation: Preparation }

async function main(): Promise<void> {
  const port = parentPort
  if (port === null) throw new Error('runs in a worker thread only')
  const settings = Settings.parse(workerData)
  const recogniser = await createRecogniser(settings.heapBytes)
  const seats = Array.from({ length: settings.seats }, (): Seat => {
    return { decoder: recogniser.createDecoder(), utterance: null, preparation: createPreparation(1) }
  })
  const reply = (message: HearingReply): void => port.postMessage(message)

  const serve = (request: HearingRequest): void => {
    if (request.type === 'begin') {
      const free = seats.find((seat) => seat.utterance === null)
      if (free === undefined) throw new Error('more utterances than seats')
      free.utterance = request.utterance
      free.preparation = createPreparation(request.gain)
      free.decoder.start(request.grammar)
      return reply({ type: 'begun', utterance: request.utterance })
    }
    const seat = seats.find((candidate) => candidate.utterance === request.utterance)
    if (seat === undefined) return // It was dropped after its end.
    if (request.type === 'sound') {
      const words = seat.decoder.feed(seat.preparation(request.samples))
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

await main()
