/**
 * Owns the durable waits: looks for jobs that are due, has them done, and tries again what failed. Looks when woken and when told that some are
 * due, or once a second, so that a job of another process, or of before a restart, is found too. One that takes long holds up no other: the next look takes what has room.
 */
import type { Clock } from '../../model/clock.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import { noTelemetry, type Telemetry } from '../../model/telemetry.ts'
import { claimJobs, finishJob, finishJobs, retryJob, type Job, type JobKind } from '../../store/jobs.ts'
import type { Sql } from '../../store/sql.ts'
import { createTogether } from '../../store/together.ts'
import { lookingFor, type DueWatch } from './due-watch.ts'
import type { Rounds } from './rounds.ts'
import { createWorkRounds } from './work-rounds.ts'

/** Throws to be tried again. `attempts` counts from 1; it is for the work itself to give up for good. */
export type Work = (job: Job) => Promise<void>

export type Scheduler = Rounds

const pollEvery = 1_000
/** Longer than any job takes; a job whose node died is due again after it. */
const lease = 60_000
const atOnce = 16
/** Ms between two looks, and between two notes of what is finished: jobs that become due in a crowd go together. */
const pace = 50
export const retryDelays = [1_000, 5_000, 30_000] as const

type Deps = {
  readonly sql: Sql
  readonly clock: Clock
  readonly nodeId: NodeId
  readonly log: Log
  readonly telemetry?: Telemetry
  /** By which trace somebody asked for the call; absent: nobody traces. */
  readonly knowTrace?: (callId: CallId) => Promise<void>
  /** Jobs of other kinds are left to another scheduler. */
  readonly work: Readonly<Partial<Record<JobKind, Work>>>
  /** Absent: it looks once a second by itself. */
  readonly dueWatch?: Pick<DueWatch, 'on'>
  /** False: the node has no room for a call now, and leaves those that have their place to others, or for later. */
  readonly mayDial?: () => boolean
}

export function createScheduler(deps: Deps): Scheduler {
  const { sql, clock, nodeId, log, dueWatch, mayDial = () => true } = deps
  const run = observedRun(deps)
  const kinds = Object.keys(deps.work) as JobKind[]
  const finishTogether = createTogether<string, boolean>({
    keyOf: () => '',
    async work(ids) {
      const finished = await finishJobs(sql, ids)
      return ids.map((id) => finished.has(id))
    },
    most: atOnce,
    pace,
  })
  /** What the others need not wait for is waited for here. */
  const finish = async (id: string): Promise<void> => {
    if (!(await finishTogether(id))) await finishJob(sql, id)
  }
  const doJob = async (job: Job): Promise<void> => {
    try {
      await run(job)
      await finish(job.id)
    } catch (error) {
      log.warn('a job failed and is tried again', { jobId: job.id, callId: job.callId, kind: job.kind, error })
      const delay = retryDelays[job.attempts - 1] ?? retryDelays.at(-1) ?? 0
      await retryJob(sql, job.id, clock.now() + delay)
    }
  }
  /** A job whose end cannot be written down is due again when its claim has run out. */
  const begin = (job: Job): Promise<void> =>
    doJob(job).catch((error: unknown) => log.error('the end of a job could not be written', { jobId: job.id, error }))
  const take = async (underWay: number) => {
    const room = atOnce - underWay
    if (room <= 0) return { items: [], isFull: true }
    const wanted = mayDial() ? kinds : kinds.filter((kind) => kind !== 'dial')
    const jobs = await claimJobs(sql, nodeId, clock.now(), lease, room, wanted)
    return { items: jobs, isFull: jobs.length >= room }
  }
  return createWorkRounds({ clock, log, pace, take, begin, ...lookingFor(dueWatch, kinds, pollEvery) })
}

/** Does a job, and tells how long it waited and how it ended. */
function observedRun({ work, clock, knowTrace, telemetry = noTelemetry }: Deps): Work {
  return async (job) => {
    const { id: jobId, callId, kind } = job
    telemetry.observe('job.wait', Math.max(0, clock.now() - job.runAt), { kind })
    await knowTrace?.(callId)
    const span = telemetry.span('job.run', { kind }, { jobId, callId })
    let result: 'ok' | 'failed' = 'failed'
    try {
      const act = work[kind]
      if (!act) throw new Error(`nobody here does jobs of the kind ${kind}`)
      await act(job)
      result = 'ok'
    } finally {
      span.end(result)
    }
  }
}
