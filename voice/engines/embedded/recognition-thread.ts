/** Owns a recognition thread: several decoders side by side, one utterance each. Started by decoders.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { z } from 'zod'
import { collectWhenQuiet } from '../../../media/collect-heap.ts'
import type { HeardWords, RecognitionReply, RecognitionRequest } from './recognition-messages.ts'
import { createDecoderSlots } from './decoder-slots.ts'
import { createLineHearings } from './line-hearing.ts'
import { plainWord } from './recognition-sound.ts'
import { createRecogniser } from './pocketsphinx.ts'
import { createSecondLooks } from './second-looks.ts'
import { afterInThread } from './thread-clock.ts'

const Settings = z.object({ decoders: z.number() })

async function main(): Promise<void> {
  const port = parentPort
  if (port === null) throw new Error('runs in a worker thread only')
  const settings = Settings.parse(workerData)
  const recogniser = await createRecogniser()
  const slots = createDecoderSlots(settings.decoders, createLineHearings(recogniser.createDecoder))
  // Behind it what has come for the thread is read before the next one.
  const looks = createSecondLooks((action) => void setImmediate(action))
  const worked = collectWhenQuiet(afterInThread)
  const reply = (message: RecognitionReply): void => port.postMessage(message)

  const serve = (request: RecognitionRequest): void => {
    // Also by sound: nothing is collected while somebody speaks.
    worked()
    const { utterance } = request
    if (request.type === 'begin') {
      slots.take(utterance).start(request.grammar, request.gain)
      return reply({ type: 'begun', utterance })
    }
    const hearing = slots.of(utterance)
    if (hearing === null) return gone(request)
    if (request.type === 'sound') {
      const words = hearing.feed(request.samples)
      return reply({ type: 'partial', utterance, words: words.split(' ').map(plainWord) })
    }
    slots.giveBack(utterance)
    if (request.type === 'drop') return hearing.drop()
    const { heard, look } = hearing.stop()
    const final = (of: HeardWords): void =>
      reply({ type: 'final', utterance, compiled: recogniser.compiledGrammars(), heard: of })
    const told = {
      done: (again: HeardWords): void => final({ ...heard, again }),
      failed: (error: unknown): void => failed(utterance, error),
    }
    if (look === null || !looks.take(look, told)) final(heard)
  }
  const failed = (utterance: number, error: unknown): void =>
    reply({ type: 'failed', utterance, details: error instanceof Error ? error.message : String(error) })
  /** It was dropped after its end, or failed before its sound and its end came, each of which wants an answer. */
  const gone = ({ type, utterance }: RecognitionRequest): void => {
    if (type !== 'drop') reply({ type: 'failed', utterance, details: 'it failed before' })
  }
  port.on('message', (request: RecognitionRequest) => {
    try {
      serve(request)
    } catch (error) {
      const { utterance } = request
      slots.giveBack(utterance)
      failed(utterance, error)
    }
  })
  reply({ type: 'ready' })
  worked()
}

await main()
