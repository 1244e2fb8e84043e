/** Owns a worker thread that says it is ready and never answers: a recogniser that got stuck. */
import { parentPort } from 'node:worker_threads'

parentPort?.on('message', () => undefined)
parentPort?.postMessage({ type: 'ready' })
