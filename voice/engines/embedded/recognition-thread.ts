/** Owns a recognition thread: several decoders side by side, one utterance each. Started by decoders.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { z } from 'zod'
import type { RecognitionReply, RecognitionRequest } from './recognition-messages.ts'
import { createPreparation, plainWord, summaryOf, type Preparation } from './recognition-sound.ts'
import { createRecogniser, type Decoder } from './pocketsphinx.ts'

const Settings = z.object({ decoders: z.number() })

type Slot = { readonly decoder: Decoder; utterance: number | null; preparation: Preparation }

async function main(): Promise<void> {
  const port = parentPort
  if (port === null) throw new Error('runs in a worker thread only')
  const settings = Settings.parse(workerData)
  const recogniser = await createRecogniser()
  const slots = Array.from({ length: settings.decoders }, (): Slot => {
    return { decoder: recogniser.createDecoder(), utterance: null, preparation: createPreparation(1) }
  })
  const reply = (message: RecognitionReply): void => port.postMessage(message)

  const serve = (request: RecognitionRequest): void => {
    if (request.type === 'begin') {
      const free = slots.find((slot) => slot.utterance === null)
      if (free === undefined) throw new Error('more utterances than decoders')
      free.utterance = request.utterance
      free.preparation = createPreparation(request.gain)
      free.decoder.start(request.grammar)
      return reply({ type: 'begun', utterance: request.utterance })
    }
    const slot = slots.find((candidate) => candidate.utterance === request.utterance)
    if (slot === undefined) return // It was dropped after its end.
    if (request.type === 'sound') {
      const words = slot.decoder.feed(slot.preparation(request.samples))
      return reply({ type: 'partial', utterance: request.utterance, words: words.split(' ').map(plainWord) })
    }
    const segments = slot.decoder.stop()
    slot.utterance = null
    if (request.type === 'drop') return
    const { utterance } = request
    reply({ type: 'final', utterance, compiled: recogniser.compiledGrammars(), heard: summaryOf(segments) })
  }
  port.on('message', serve)
  reply({ type: 'ready' })
}

await main()
