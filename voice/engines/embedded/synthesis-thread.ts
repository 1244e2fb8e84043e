/** Owns the synthesis thread: one sentence after another. Started by synthesiser.ts. */
import { parentPort } from 'node:worker_threads'
import { createFlite } from './flite.ts'
import type { SynthesisReply, SynthesisRequest } from './synthesis-messages.ts'
import { trimmed } from './trim.ts'

async function main(): Promise<void> {
  const port = parentPort
  if (port === null) throw new Error('runs in a worker thread only')
  const synthesise = await createFlite()
  const reply = (message: SynthesisReply, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer)
  port.on('message', ({ voice, text }: SynthesisRequest) => {
    const samples = trimmed(synthesise(voice, text))
    reply({ type: 'spoken', samples }, [samples.buffer])
  })
  reply({ type: 'ready' })
}

await main()
