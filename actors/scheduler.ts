/**
 * Owns the durable waits: looks for jobs that are due, has them done, and tries again what failed. Looks when woken and once a second, so that
 * a job of another process, or of before a restart, is found too.
 */
import type { Clock } from '../model/clock.ts'
import type { NodeId } from '../model/ids.ts'
import type { Log } from '../model/log.ts'
import { claimJobs, finishJob, retryJob, type Job, type JobKind } from '../store/jobs.ts'
import type { Sql } from '../store/sql.ts'
import { createRounds, type Rounds } from './rounds.ts'

/** Throws to be tried again. `attempts` counts from 1; it is for the work itself to give up for good. */
export type Work = (job: Job) => Promise<void>

export type Scheduler = Rounds

const pollEvery = 1_000
/** Longer than any job takes; a job whose node died is due again after it. */
const lease = 60_000
const atOnce = 16
export const retryDelays = [1_000, 5_000, 30_000] as const

export function createScheduler(deps: {
  readonly sql: Sql
  readonly clock: Clock
  readonly nodeId: NodeId
  readonly log: Log
  readonly work: Readonly<Record<JobKind, Work>>
}): Scheduler {
  const { sql, clock, nodeId, log } = deps

  const doJob = async (job: Job): Promise<void> => {
    try {
      await deps.work[job.kind](job)
      await finishJob(sql, job.id)
    } catch (error) {
      log.warn('a job failed and is tried again', { jobId: job.id, callId: job.callId, kind: job.kind, error })
      const delay = retryDelays[job.attempts - 1] ?? retryDelays.at(-1) ?? 0
      await retryJob(sql, job.id, clock.now() + delay)
    }
  }
  const look = async (): Promise<boolean> => {
    const jobs = await claimJobs(sql, nodeId, clock.now(), lease, atOnce)
    await Promise.all(jobs.map(doJob))
    return jobs.length === atOnce
  }
  return createRounds({ clock, log, every: pollEvery, look })
}
