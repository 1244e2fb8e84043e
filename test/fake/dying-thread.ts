/** Owns a worker thread that says it is ready and dies of the first thing it is asked. */
import { parentPort } from 'node:worker_threads'

parentPort?.on('message', () => {
  throw new Error('this thread always dies')
})
parentPort?.postMessage({ type: 'ready' })
