/**
 * Owns what a process that is soaked tells of its inside: loaded in front of the service (`node --import`), it collects garbage and writes a sample to the file
 * SOAK_SAMPLE_FILE when SIGUSR2 comes. A file that is renamed into place is never read half.
 */
import { renameSync, writeFileSync } from 'node:fs'
import process from 'node:process'
import { isMainThread } from 'node:worker_threads'
import { readEnvironment } from '../../app/config.ts'

const { SOAK_SAMPLE_FILE: file } = readEnvironment()

if (isMainThread && file !== undefined) {
  const collect = (globalThis as { gc?: () => void }).gc
  let count = 0
  process.on('SIGUSR2', () => {
    collect?.()
    const { heapUsed, external } = process.memoryUsage()
    const resources: Record<string, number> = {}
    for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1
    writeFileSync(`${file}.new`, JSON.stringify({ count: ++count, heapUsed, external, resources }), { mode: 0o600 })
    renameSync(`${file}.new`, file)
  })
}
