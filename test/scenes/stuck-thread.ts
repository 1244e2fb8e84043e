/** Owns how a test makes a worker thread stand still, as an endless loop in it would: by the inspector, so that the thread has to lend no hand. */
import { Session } from 'node:inspector/promises'
import type { Worker } from 'node:worker_threads'

/** Resolves when the thread has been told; it stands still until it is terminated. */
export async function makeStandStill({ threadId }: Worker): Promise<void> {
  const session = new Session()
  session.connect()
  const found = Promise.withResolvers<string>()
  session.on('NodeWorker.attachedToWorker', ({ params: { sessionId, workerInfo } }) => {
    if (workerInfo.title.startsWith(`[worker ${threadId}]`)) found.resolve(sessionId)
  })
  await session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
  const loop = { id: 1, method: 'Runtime.evaluate', params: { expression: 'for (;;);' } }
  await session.post('NodeWorker.sendMessageToWorker', {
    sessionId: await found.promise,
    message: JSON.stringify(loop),
  })
  session.disconnect()
}
