/** Owns the dictation thread: one recogniser of free speech, one whole utterance after another. Started by dictation.ts. */
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import type { DictationReply, DictationRequest } from './dictation.ts'
import { createPreparation, summaryOf } from './recognition-sound.ts'
import { createDictation } from './pocketsphinx.ts'

/** This thread works for a second at a time, so it gets less priority than those that recognise and synthesise. */
const niceness = 10
/** 200 ms. */
const pieceSamples = 3200

async function main(): Promise<void> {
  const port = parentPort
  if (port === null) throw new Error('runs in a worker thread only')
  const dictation = await createDictation()
  setPriority(niceness)
  const reply = (message: DictationReply): void => port.postMessage(message)
  port.on('message', ({ sound, gain }: DictationRequest) => {
    const { prepare } = createPreparation(gain)
    dictation.start()
    for (let at = 0; at < sound.length; at += pieceSamples)
      dictation.feed(prepare(sound.subarray(at, at + pieceSamples)))
    reply({ type: 'taken', heard: summaryOf(dictation.stop()) })
  })
  reply({ type: 'ready' })
}

await main()
