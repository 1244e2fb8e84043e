/** Owns a process of the load: it is given its part, tells twice a second what it saw, and ends with its last call or when its parent goes. */
import process from 'node:process'
import { failureText, isExpected } from '../cannot.ts'
import type { FromProcess, ToProcess } from './load-job.ts'
import { createLoadTally } from './load-tally.ts'
import { watchOwnLateness } from './own-lateness.ts'
import { runLoad } from './run-load.ts'
import { runReplay } from './session/run-replay.ts'

const tellEvery = 500
const endsWithin = 5_000

const stopping = new AbortController()
const tell = (message: FromProcess): void => void process.send?.(message)

async function work({ job }: Extract<ToProcess, { kind: 'job' }>): Promise<void> {
  const tally = createLoadTally()
  const unwatch = watchOwnLateness(tally)
  const telling = setInterval(() => tell({ kind: 'batch', batch: tally.take() }), tellEvery)
  try {
    const run = job.files.length > 0 ? runReplay : runLoad
    await run({ job, tally, stopping: stopping.signal })
  } finally {
    clearInterval(telling)
    unwatch()
  }
  tell({ kind: 'done', batch: tally.take() })
}

process.on('message', (message: ToProcess) => {
  if (message.kind === 'stop') return stopping.abort()
  work(message).catch((error: unknown) =>
    tell({ kind: 'broken', message: failureText(error), isExpected: isExpected(error) }),
  )
})
// Who sent the signal sends it to the parent as well, which says in which order calls end.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined)
// The parent has all it wants, or is gone: calls that still run are hung up.
process.on('disconnect', () => {
  stopping.abort()
  setTimeout(() => process.exit(), endsWithin).unref()
})
tell({ kind: 'ready' })
