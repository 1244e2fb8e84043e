/** Owns a recognition thread: several decoders side by side, one utterance each. Started by decoders.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { z } from 'zod'
import { collectWhenQuiet } from '../../../media/collect-heap.ts'
import type { HeardWords, RecognitionReply, RecognitionRequest } from './recognition-messages.ts'
import { createDecoderPool } from './decoder-pool.ts'
import { createLineHearing, type LineHearing } from './line-hearing.ts'
import { plainWord } from './recognition-sound.ts'
import { createRecogniser } from './pocketsphinx.ts'
import { createSecondLooks } from './second-looks.ts'
import { afterInThread } from './thread-clock.ts'

type OfUtterance = Exclude<RecognitionRequest, { readonly type: 'callers' }>

const Settings = z.object({ decoders: z.number() })

async function main(): Promise<void> {
  const port = parentPort
  if (port === null) throw new Error('runs in a worker thread only')
  const settings = Settings.parse(workerData)
  const recogniser = await createRecogniser()
  const pool = createDecoderPool(settings.decoders, recogniser.createDecoder)
  pool.prepare(0)
  const hearings = new Map<number, LineHearing>()
  // Behind it what has come for the thread is read before the next one.
  const later = (action: () => void): void => void setImmediate(action)
  const looks = createSecondLooks(later)
  let callers = 0
  const worked = collectWhenQuiet(afterInThread)
  const reply = (message: RecognitionReply): void => port.postMessage(message)

  const forget = (utterance: number): void => {
    hearings.get(utterance)?.drop()
    hearings.delete(utterance)
  }
  const serve = (request: OfUtterance): void => {
    // Also by sound: nothing is collected while somebody speaks.
    worked()
    const { utterance } = request
    if (request.type === 'begin') {
      hearings.set(utterance, createLineHearing(pool, request.grammar, request.gain))
      return reply({ type: 'begun', utterance })
    }
    const hearing = hearings.get(utterance)
    if (hearing === undefined) return gone(request)
    if (request.type === 'sound') {
      const words = hearing.feed(request.samples)
      return reply({ type: 'partial', utterance, words: words.split(' ').map(plainWord) })
    }
    if (request.type === 'drop') return forget(utterance)
    const { heard, look } = hearing.stop()
    hearings.delete(utterance)
    const final = (of: HeardWords): void =>
      reply({ type: 'final', utterance, compiled: recogniser.compiledGrammars(), heard: of })
    const told = {
      done: (again: HeardWords): void => final({ ...heard, again }),
      failed: (error: unknown): void => failed(utterance, error),
    }
    if (look === null || !looks.take(look, told)) final(heard)
  }
  /** A decoder at a time: whoever speaks meanwhile is heard between them. */
  const prepare = (): void => {
    try {
      if (pool.prepare(callers)) later(prepare)
    } catch {
      // Who speaks and gets none is told.
    }
  }
  const failed = (utterance: number, error: unknown): void =>
    reply({ type: 'failed', utterance, details: error instanceof Error ? error.message : String(error) })
  /** It was dropped after its end, or failed before its sound and its end came, each of which wants an answer. */
  const gone = ({ type, utterance }: OfUtterance): void => {
    if (type !== 'drop') reply({ type: 'failed', utterance, details: 'it failed before' })
  }
  port.on('message', (request: RecognitionRequest) => {
    if (request.type === 'callers') {
      callers = request.callers
      return later(prepare)
    }
    try {
      serve(request)
    } catch (error) {
      const { utterance } = request
      forget(utterance)
      failed(utterance, error)
    }
  })
  reply({ type: 'ready' })
  worked()
}

await main()
