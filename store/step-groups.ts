/**
 * Owns how steps of many calls come into the database together. A step that finds nothing under way goes at once, with those of the same turn of
 * the event loop; the others wait until the group before them is written, and go as one. Where several come, a group begins every 10 ms, and where many
 * do every 20, at the beats of all that is paced so (beat.ts), so that a disk that syncs fast is not asked more often than that. At a time one step of a call
 * is written.
 * One that is fenced, locked by somebody else or refused is tried again by itself, so that it holds up and spoils nobody else.
 */
import type { NewId } from '../model/ids.ts'
import { beatBehind } from './beat.ts'
import { isOfOneMember } from './database-unreachable.ts'
import type { Sql } from './sql.ts'
import { writeAlone, writeGroup, type CallStep } from './write-steps.ts'

export type StepWriter = {
  /**
   * `fenced`: another actor has the call, nothing was written. Rejects with what Postgres says; a step that is written again after its connection
   * was lost is written once.
   */
  write(step: CallStep): Promise<'written' | 'fenced'>
}

const maxSteps = 40
/** Ms between the beats behind a group of so many. Behind one that is not written by then: as behind a crowd. */
const paces = [
  { steps: 4, every: 20 },
  { steps: 2, every: 10 },
] as const
const behindMany = paces[0].every
const paceBehind = (steps: number): number => paces.find((pace) => steps >= pace.steps)?.every ?? 0
/** Groups under way at a time; so many connections are taken at most, of ten. */
const maxGroups = 3
/** Far more than a node has calls: each waits with one step. */
const maxWaiting = 10_000

export type CountedStepWriter = StepWriter & {
  /** Steps that are not written yet. */
  waiting(): number
}

type Waiting = {
  readonly step: CallStep
  resolve(result: 'written' | 'fenced'): void
  reject(error: unknown): void
}

type Deps = {
  readonly sql: Sql
  readonly newId: NewId
  /** So many deliveries have been committed. */
  readonly wakeDeliveries?: (written: number) => void
}

export function createStepWriter({ sql, newId, wakeDeliveries = () => {} }: Deps): CountedStepWriter {
  let waiting: Waiting[] = []
  let underWay = 0
  let unwritten = 0
  let former = { began: 0, steps: 0 }
  let look: NodeJS.Immediate | null = null
  let timer: NodeJS.Timeout | null = null

  const lookSoon = (): void => void (look ??= setImmediate(goOn))
  function goOn(): void {
    look = null
    if (timer) clearTimeout(timer)
    timer = null
    while (waiting.length > 0 && underWay < maxGroups) {
      const pace = underWay === 0 ? paceBehind(former.steps) : behindMany
      const left = beatBehind(former.began, pace) - performance.now()
      if (left > 0 && waiting.length < maxSteps) {
        timer = setTimeout(goOn, Math.ceil(left))
        return
      }
      void send(waiting.splice(0, maxSteps))
    }
  }
  const send = async (group: readonly Waiting[]): Promise<void> => {
    underWay++
    former = { began: performance.now(), steps: group.length }
    const left = await tryGroup(group).finally(() => underWay--)
    if (waiting.length > 0) lookSoon()
    for (const waiter of left) alone(waiter)
  }
  /** Returns those that are to be tried alone. */
  const tryGroup = async (group: readonly Waiting[]): Promise<readonly Waiting[]> => {
    try {
      const { written, announced } = await writeGroup(
        sql,
        newId,
        group.map(({ step }) => step),
      )
      if (announced > 0) wakeDeliveries(announced)
      return group.filter((waiter) => !written.has(waiter.step) || waiter.resolve('written'))
    } catch (error) {
      if (isOfOneMember(error)) return group
      // Who waits for the same database learns the same.
      for (const { reject } of [...group, ...waiting.splice(0)]) reject(error)
      return []
    }
  }
  const writeOne = async (step: CallStep): Promise<'written' | 'fenced'> => {
    const { written, announced } = await writeAlone(sql, newId, step)
    if (announced > 0) wakeDeliveries(announced)
    return written.has(step) ? 'written' : 'fenced'
  }
  const alone = ({ step, resolve, reject }: Waiting): void => void writeOne(step).then(resolve, reject)

  return {
    write(step) {
      if (waiting.length >= maxWaiting) return Promise.reject(new TooManySteps())
      const { promise, resolve, reject } = Promise.withResolvers<'written' | 'fenced'>()
      waiting.push({ step, resolve, reject })
      lookSoon()
      unwritten++
      return promise.finally(() => unwritten--)
    },
    waiting: () => unwritten,
  }
}

/** Of the operating system's kind: it passes, and is tried again. */
class TooManySteps extends Error {
  override readonly name = 'TooManySteps'
  readonly code = '53000'
  constructor() {
    super('too many steps of calls wait to be written')
  }
}
