/** Owns a recognition thread: several decoders side by side, one utterance each. Started by decoders.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { z } from 'zod'
import type { RecognitionReply, RecognitionRequest } from './recognition-messages.ts'
import { createLineHearings, type LineHearing } from './line-hearing.ts'
import { plainWord } from './recognition-sound.ts'
import { createRecogniser } from './pocketsphinx.ts'

const Settings = z.object({ decoders: z.number() })

type Slot = { readonly hearing: LineHearing; utterance: number | null }

async function main(): Promise<void> {
  const port = parentPort
  if (port === null) throw new Error('runs in a worker thread only')
  const settings = Settings.parse(workerData)
  const recogniser = await createRecogniser()
  const createHearing = createLineHearings(recogniser.createDecoder)
  const slots = Array.from({ length: settings.decoders }, (): Slot => {
    return { hearing: createHearing(), utterance: null }
  })
  const reply = (message: RecognitionReply): void => port.postMessage(message)

  const serve = (request: RecognitionRequest): void => {
    if (request.type === 'begin') {
      const free = slots.find((slot) => slot.utterance === null)
      if (free === undefined) throw new Error('more utterances than decoders')
      free.utterance = request.utterance
      free.hearing.start(request.grammar, request.gain)
      return reply({ type: 'begun', utterance: request.utterance })
    }
    const slot = slots.find((candidate) => candidate.utterance === request.utterance)
    if (slot === undefined) return // It was dropped after its end.
    if (request.type === 'sound') {
      const words = slot.hearing.feed(request.samples)
      return reply({ type: 'partial', utterance: request.utterance, words: words.split(' ').map(plainWord) })
    }
    slot.utterance = null
    if (request.type === 'drop') return slot.hearing.drop()
    const heard = slot.hearing.stop()
    reply({ type: 'final', utterance: request.utterance, compiled: recogniser.compiledGrammars(), heard })
  }
  port.on('message', serve)
  reply({ type: 'ready' })
}

await main()
