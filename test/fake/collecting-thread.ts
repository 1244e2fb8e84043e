/** A thread that makes garbage of 64 MB and collects its heap; tells what its buffers took before and after. */
import { parentPort } from 'node:worker_threads'
import { collectorOfHeap } from '../../media/collect-heap.ts'

const pieces = 4
const pieceBytes = 16 * 1024 * 1024

/** What the buffers take while they are there; nobody has them after it. */
function fill(): number {
  const buffers = Array.from({ length: pieces }, () => new ArrayBuffer(pieceBytes))
  const { arrayBuffers } = process.memoryUsage()
  return buffers.length === pieces ? arrayBuffers : 0
}

const before = fill()
const collect = collectorOfHeap()
collect()
collect()
parentPort?.postMessage({ before, after: process.memoryUsage().arrayBuffers })
