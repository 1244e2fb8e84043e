/**
 * Owns the calls of one process of the load: each begins when it is due, whatever became of those before, and each wait is measured from when it was due
 * and not from when this process got to it.
 */
import { systemClock } from '../../app/clock.ts'
import { createTicker, type Ticker } from '../../media/ticker/ticker.ts'
import { createRandom } from '../chaos/random.ts'
import { allowedHostsOf, type AllowedHosts } from './allowed-hosts.ts'
import { arrivalsOf } from './arrivals.ts'
import { prepareCallerSound, type CallerSound } from './caller-sound.ts'
import type { LineQuality } from './line-meter.ts'
import type { LoadJob, Way } from './load-job.ts'
import { weathered, type LoadLine } from './load-line.ts'
import { talk } from './load-talk.ts'
import type { LoadTally } from './load-tally.ts'
import { openSipLines, type SipLines } from './sip-line.ts'
import { openWebLine } from './web-line.ts'

export type RunDeps = { readonly job: LoadJob; readonly tally: LoadTally; readonly stopping: AbortSignal }

type Parts = {
  readonly job: LoadJob
  readonly tally: LoadTally
  readonly ticker: Ticker
  readonly sound: CallerSound
  readonly lines: SipLines | null
  readonly allowed: AllowedHosts
  readonly stopping: AbortSignal
}

const now = (): number => performance.now()

/** Resolves when the last call has ended. Aborted: no more calls, and those that run are hung up. */
export async function runLoad({ job, tally, stopping }: RunDeps): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const ticker = createTicker({ now, after: (ms, action) => systemClock.after(ms, action) })
  closing.defer(() => ticker.close())
  const allowed = await allowedHostsOf(job.allowedHosts)
  const lines = job.sip && job.ways.includes('sip') ? await openSipLines(job.sip, allowed) : null
  if (lines) closing.defer(() => lines.close())
  const sound = prepareCallerSound(job.phrases)
  const parts = { job, tally, ticker, sound, lines, allowed, stopping }
  await placeAll(job, { tally, stopping }, (index, due) => synthetic(parts, index, due))
}

/** Open loop: `place` is called when a call is due, and nobody waits for it but the end. */
export async function placeAll(
  job: LoadJob,
  { tally, stopping }: Pick<RunDeps, 'tally' | 'stopping'>,
  place: (index: number, due: number) => Promise<void>,
): Promise<void> {
  const underWay = new Set<Promise<void>>()
  // The parent's clock, turned into one that never jumps.
  const beginsAt = now() + (job.beginsAt - Date.now())
  let index = -1
  for (const at of arrivalsOf(job.arrivals)) {
    index++
    if (index % job.of !== job.part) continue
    const due = beginsAt + at
    await untilOrStopped(due - now(), stopping)
    if (stopping.aborted) break
    tally.count('due')
    tally.value('startLate', Math.max(0, now() - due))
    if (underWay.size >= job.atOnce) {
      tally.count('failed')
      tally.error('too many calls at once for this process of the load (--at-once)')
      continue
    }
    tally.count('running')
    const call: Promise<void> = place(index, due)
      .catch((error: unknown) => {
        tally.count('failed')
        tally.error(error instanceof Error ? error.message : String(error))
      })
      .finally(() => {
        tally.count('running', -1)
        underWay.delete(call)
      })
    underWay.add(call)
  }
  await Promise.all(underWay)
}

async function synthetic(parts: Parts, index: number, due: number): Promise<void> {
  const { job, tally, ticker, sound, stopping } = parts
  const way = job.ways[index % job.ways.length] ?? 'web'
  const random = createRandom(job.arrivals.seed + index)
  const line = weathered(await open(parts, way), job.weather, { random, tally })
  tally.value('setUp', now() - due)
  tally.count('answered')
  const talking = talk({ line, sound, ticker, tally, due, now })
  try {
    const isEnded = await endedOrHeld(line, job.holdMs, stopping)
    if (isEnded) tally.count('endedByService')
  } finally {
    tellQuality(tally, talking.stop())
    await line.hangUp()
  }
  tally.count('completed')
}

export function tellQuality(tally: LoadTally, { received, lost, late, jitter, loss, mos }: LineQuality): void {
  tally.count('packetsLost', lost)
  tally.count('packetsLate', late)
  if (received === 0 || loss === null || mos === null) return
  tally.value('jitter', jitter)
  tally.value('loss', 100 * loss)
  tally.value('mos', mos)
}

function open({ job, lines, allowed }: Parts, way: Way): Promise<LoadLine> {
  if (way === 'sip' && lines) return lines.open()
  if (job.web) return openWebLine({ web: job.web, allowed })
  return Promise.reject(new Error(`nobody said where calls by ${way} go`))
}

/** True: the other side has ended it. */
export async function endedOrHeld(line: LoadLine, ms: number, stopping: AbortSignal): Promise<boolean> {
  const over = new AbortController()
  const either = AbortSignal.any([over.signal, stopping])
  const held = untilOrStopped(ms, either).then(() => false)
  try {
    return await Promise.race([line.ended.then(() => true), held])
  } finally {
    over.abort()
  }
}

export function untilOrStopped(ms: number, stopping: AbortSignal): Promise<void> {
  if (stopping.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer)
      stopping.removeEventListener('abort', finish)
      resolve()
    }
    const timer = setTimeout(finish, Math.max(0, ms))
    stopping.addEventListener('abort', finish, { once: true })
  })
}
