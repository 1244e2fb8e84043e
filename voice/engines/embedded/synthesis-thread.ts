/** Owns the synthesis thread: one sentence after another. Started by synthesiser.ts. */
import { parentPort } from 'node:worker_threads'
import { collectWhenQuiet } from '../../../media/collect-heap.ts'
import { createFlite } from './flite.ts'
import type { SynthesisReply, SynthesisRequest } from './synthesis-messages.ts'
import { afterInThread } from './thread-clock.ts'
import { trimmed } from './trim.ts'

async function main(): Promise<void> {
  const port = parentPort
  if (port === null) throw new Error('runs in a worker thread only')
  const synthesise = await createFlite()
  // Its program was read as 21 MB, and each sentence leaves the memory of an instance behind: nothing else makes a thread that rests let go of them.
  const worked = collectWhenQuiet(afterInThread)
  const reply = (message: SynthesisReply, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer)
  port.on('message', ({ voice, text }: SynthesisRequest) => {
    const samples = trimmed(synthesise(voice, text))
    reply({ type: 'spoken', samples }, [samples.buffer])
    worked()
  })
  reply({ type: 'ready' })
  worked()
}

await main()
