/** A thread that makes garbage of 64 MB and collects its heap; tells what its buffers took before and after. */
import { parentPort } from 'node:worker_threads'
import { collectorOfHeap } from '../../media/collect-heap.ts'

const pieces = 4
const pieceBytes = 16 * 1024 * 1024

const fill = (): number => Array.from({ length: pieces }, () => new ArrayBuffer(pieceBytes)).length

fill()
const before = process.memoryUsage().arrayBuffers
const collect = collectorOfHeap()
collect()
collect()
parentPort?.postMessage({ before, after: process.memoryUsage().arrayBuffers })
