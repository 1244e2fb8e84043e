/**
 * Owns what becomes of the steps of calls while the database is away, or slow: they are kept on the disk of this node, and count as written when they are
 * there, or in the database after all. Once the database answers they are written in their order, by this process or by the one after it, under the tenure
 * that they were made under: one that is in the log already is not written twice, and of a call that somebody else has taken meanwhile turns are brought to
 * that one, and the rest is put aside for people.
 * Steps of a call that has some here go here too, until the last of them is known to be written. The birth of a call that begins meanwhile is kept as well,
 * before its steps.
 */
import type { Clock } from '../../model/clock.ts'
import { pause } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import type { CallId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import { createRecent } from '../../net/recent.ts'
import { databaseUnreachable, isOfOneMember } from '../../store/database-unreachable.ts'
import type { AdoptedJournal, JournalFolder } from '../../store/journal-folder.ts'
import type { Sql } from '../../store/sql.ts'
import type { StepWriter } from '../../store/step-groups.ts'
import type { CallStep, Tenure } from '../../store/write-steps.ts'
import { birthOfText, textOfBirth, type KeptBirth } from '../call/birth/kept-birth.ts'
import { stepOfText, textOfStep, toCallStep } from '../call/call-step.ts'
import { createRounds } from '../rounds/rounds.ts'
import type { BringFound } from './found-turns.ts'
import {
  createKeptOfCall,
  expectStep,
  leaveSteps,
  type FirstTry,
  type Kept,
  type KeptOfCall,
  type Source,
} from './kept-of-call.ts'
import { linesOfUnwritten } from './lines-of-unwritten.ts'
import { createStepPatience, longestPatience } from './step-patience.ts'
import { createUses } from './uses.ts'

export type KeptSteps = StepWriter & {
  /** The call begins although the database does not know it; rejects when its birth cannot be kept. `late`: what may still come of writing it. */
  bear(birth: KeptBirth, late: Promise<unknown>): Promise<void>
  /** Calls of which steps are here: the database does not know yet how far they are. */
  ids(): CallId[]
  keeps(callId: CallId): boolean
  /** Steps that lie here. */
  count(): number
  /** The database has not answered the last that was asked of it here. */
  isAway(): boolean
  /** Resolves when no step of the call is here. Rejects when this closes before. */
  settled(callId: CallId): Promise<void>
  /** Looks for what former processes have left; resolves when the calls of it are among `ids`. */
  adopt(): Promise<void>
  /** The same; resolves when it is written, or the database does not answer, or the disk does not take what is put aside. */
  start(): Promise<void>
  /** What is not written within `leaveWithin` is for the next process. Idempotent. */
  close(): Promise<void>
}

const [shortestWait, longestWait] = [100, 1_000]
/** Ms. The disk on which a step is to be put aside may be full until somebody makes room. */
const longestWaitForDisk = 30_000
/** Nobody waits for a call that has failed so often. */
const mostFailures = 3
const lookForOthers = 5_000
/** Ms to write what is kept before the process leaves. */
const leaveWithin = 2_000
const fencedKept = 1_000

type Deps = {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly writer: StepWriter
  readonly journal: JournalFolder
  readonly writeBirth: (birth: KeptBirth) => Promise<void>
  readonly bringFound: BringFound
  /** Somebody else has the call: whoever runs it here since this epoch, or before, does so in vain. */
  readonly fenced: (callId: CallId, epoch: number) => void
  /** Steps were written: there may be work that they tell of. */
  readonly written: () => void
}

type ToKeep = Pick<Tenure, 'callId' | 'epoch'> & { readonly firstTry: FirstTry }

const noTry = (): FirstTry => Promise.resolve()

/** Of the kind that passes: its actor tries again. */
class NotKept extends Error {
  override readonly name = 'NotKept'
  readonly code = '53100'
}

export function createKeptSteps(deps: Deps): KeptSteps {
  const { clock, log, writer, journal } = deps
  const calls = new Map<CallId, KeptOfCall>()
  const patience = createStepPatience(clock)
  const fencedEpochs = createRecent<number>(fencedKept)
  const stopping = new AbortController()
  const work = new Set<Promise<void>>()
  let awaySince: number | null = null
  let isTold = false
  let written = 0
  let probing: Promise<void> | null = null
  let notice = Promise.withResolvers<void>()

  const changed = (): void => {
    notice.resolve()
    notice = Promise.withResolvers()
  }
  const isAway = (): boolean => awaySince !== null
  const away = (error: unknown): void => {
    if (awaySince === null) log.error('the database does not answer; steps of calls are kept on the disk', { error })
    awaySince ??= clock.now()
    changed()
    probeSoon()
  }
  const probeSoon = (): void => {
    if (!stopping.signal.aborted) probing ??= follow(probe().finally(() => (probing = null)))
  }
  const answers = (): void => {
    if (awaySince !== null) log.info('the database answers again', { afterMs: clock.now() - awaySince })
    awaySince = null
    isTold = false
  }
  const follow = (job: Promise<void>): Promise<void> => {
    const guarded = job
      .catch((error: unknown) => log.error('kept steps of calls could not be written', { error }))
      .finally(() => work.delete(guarded))
    work.add(guarded)
    return guarded
  }

  const ofCall = (callId: CallId): KeptOfCall => {
    const known = calls.get(callId)
    if (known) return known
    const made = createKeptOfCall()
    calls.set(callId, made)
    return made
  }
  const leaveIfDone = (callId: CallId, of: KeptOfCall): void => {
    if (of.steps.length > 0 || of.coming > 0) return
    calls.delete(callId)
    of.settled.resolve()
    if (calls.size === 0 && written > 0) {
      log.info('all steps of calls that were kept are in the database', { steps: written })
      written = 0
    }
    deps.written()
    changed()
  }
  const ownLeft = createUses(() => journal.own.clear())
  const own: Source = { read: (place) => journal.own.read(place), done: ownLeft.less }

  const keep = (step: CallStep, firstTry = noTry()): Promise<'written'> =>
    keepText({ ...step.tenure, firstTry }, textOfStep(step))
  const keepText = async ({ callId, epoch, firstTry }: ToKeep, text: string): Promise<'written'> => {
    const of = ofCall(callId)
    of.coming++
    expectStep(of, firstTry)
    ownLeft.more()
    try {
      const place = await journal.own.append(text)
      of.steps.push({ source: own, place, epoch, firstTry })
      return 'written'
    } catch (error) {
      of.unwritten.delete(firstTry)
      ownLeft.less()
      if (!isTold) log.error('steps of calls cannot be kept on the disk', { error })
      isTold = true
      throw new NotKept('a step of a call could be neither written nor kept', { cause: error })
    } finally {
      of.coming--
      shipSoon(callId, of)
      leaveIfDone(callId, of)
    }
  }
  const tooLate = (): void => away(new Error(`a step was not written within ${longestPatience / 1_000} s`))
  const direct: StepWriter['write'] = async (step) => {
    const wait = patience.of(step)
    const writing = patience.measured(writer.write(step))
    try {
      const result = await deadline(clock, wait, writing, () => 'late' as const)
      if (result !== 'late') {
        answers()
        return result
      }
    } catch (error) {
      if (!databaseUnreachable(error)) throw error
      if (!isOfOneMember(error)) away(error)
      // As it would have gone without a disk to keep it on.
      return keep(step).catch(() => Promise.reject(error as Error))
    }
    // Whoever ships it waits for what becomes of this.
    const firstTry = writing.catch(goOn)
    void follow(deadline(clock, longestPatience - wait, firstTry, tooLate).then(goOn))
    // Either will do: the disk may be slower than the database is.
    return Promise.any([writing, keep(step, firstTry)]).catch(() => writing)
  }

  const shipSoon = (callId: CallId, of: KeptOfCall): void => {
    if (of.isShipped || of.steps.length === 0 || stopping.signal.aborted) return
    if (isAway()) return probeSoon()
    of.isShipped = true
    const left = (): void => {
      of.isShipped = false
      shipSoon(callId, of)
    }
    void follow(ship(callId, of).finally(left))
  }
  const ship = async (callId: CallId, of: KeptOfCall): Promise<void> => {
    while (of.steps.length > 0 && !stopping.signal.aborted) {
      const wait = (): number => Math.min(longestWaitForDisk, shortestWait * 2 ** of.failures)
      if (!(await shipHead(callId, of)) && !(await pause(clock, wait(), stopping.signal))) return
      if (isAway()) return
    }
  }
  /** False: the database did not do it. */
  const shipHead = async (callId: CallId, of: KeptOfCall): Promise<boolean> => {
    const head = of.steps[0]!
    try {
      const flaw = (await head.firstTry) === 'written' ? null : await writeKept(head)
      answers()
      if (flaw === null) leaveSteps(of, [head])
      else await giveUp(callId, of, flaw)
      of.failures = 0
      leaveIfDone(callId, of)
      return true
    } catch (error) {
      if (databaseUnreachable(error)) {
        if (!isOfOneMember(error)) away(error)
        return false
      }
      of.failures++
      log.error('kept steps of a call are not written', { callId, failures: of.failures, error })
      changed()
      return false
    }
  }
  /** Why it can never be written; null: it is. */
  const writeKept = async ({ source, place }: Kept): Promise<string | null> => {
    try {
      const text = await source.read(place)
      const birth = birthOfText(text)
      if (birth) await deps.writeBirth(birth)
      else if ((await writer.write(toCallStep(stepOfText(text)))) === 'fenced') return 'another actor has the call'
    } catch (error) {
      if (databaseUnreachable(error)) throw error
      log.error('a kept step of a call cannot be written', { error })
      return 'it cannot be written'
    }
    written++
    return null
  }
  /** What follows on a step that was not written can be written no more. */
  const giveUp = async (callId: CallId, of: KeptOfCall, reason: string): Promise<void> => {
    const epoch = of.steps[0]!.epoch
    fencedEpochs.set(callId, Math.max(epoch, fencedEpochs.get(callId) ?? 0))
    deps.fenced(callId, epoch)
    const given = of.steps.filter((kept) => kept.epoch === epoch)
    const lines = await linesOfUnwritten(deps, callId, given, stopping.signal)
    if (lines.length > 0) {
      const file = await journal.setAside(lines)
      log.error('steps of a call were put aside', { callId, epoch, steps: lines.length, reason, file })
    }
    leaveSteps(of, given)
  }
  /** One step at a time, of one call after the other, until one is written. */
  const probe = async (): Promise<void> => {
    let wait = shortestWait
    while (isAway() && !stopping.signal.aborted) {
      if (!(await pause(clock, wait, stopping.signal))) return
      wait = Math.min(longestWait, wait * 2)
      const next = [...calls].find(([, of]) => of.steps.length > 0 && !of.isShipped)
      if (!next) {
        if (calls.size === 0) return
        continue
      }
      const [callId, of] = next
      // Behind the others: it may be this call alone that cannot be written.
      calls.delete(callId)
      calls.set(callId, of)
      of.isShipped = true
      await shipHead(callId, of).finally(() => (of.isShipped = false))
    }
    for (const [callId, of] of calls) shipSoon(callId, of)
  }

  const adopt = async (): Promise<boolean> => {
    for (const found of await journal.adopt()) await take(found)
    return false
  }
  const take = async (found: AdoptedJournal): Promise<void> => {
    const left = createUses(() => void follow(found.remove()))
    left.more()
    const source: Source = { read: (place) => found.read(place), done: left.less }
    let steps = 0
    const damaged = await found.scan((text, place) => {
      const { tenure } = stepOfText(text)
      const firstTry = noTry()
      const of = ofCall(tenure.callId)
      expectStep(of, firstTry)
      of.steps.push({ source, place, epoch: tenure.epoch, firstTry })
      left.more()
      steps++
    })
    log.warn('steps of calls of a former process were found', { steps, damaged })
    left.less()
    for (const [callId, of] of calls) shipSoon(callId, of)
  }
  const lookAround = createRounds({ clock, log, every: lookForOthers, look: adopt })

  const allWritten = async (): Promise<void> => {
    while (calls.size > 0) await notice.promise
  }
  const close = async (): Promise<void> => {
    await lookAround.close()
    // What is left lies on the disk of a node that may not come back soon.
    await deadline(clock, leaveWithin, allWritten(), goOn)
    stopping.abort()
    await Promise.all(work)
    for (const { settled } of calls.values()) settled.reject(new Error('the node closes'))
    await journal.close()
  }
  let closing: Promise<void> | null = null
  return {
    async write(step) {
      const { callId, epoch } = step.tenure
      if ((fencedEpochs.get(callId) ?? -1) >= epoch) return 'fenced'
      if ((calls.get(callId)?.unwritten.size ?? 0) > 0) return keep(step)
      if (isAway() && calls.size > 0) return keep(step).catch(() => direct(step))
      return direct(step)
    },
    async bear(birth, late) {
      away(new Error('a call could not be written'))
      await keepText({ ...birth, epoch: 1, firstTry: late.catch(goOn) }, textOfBirth(birth))
    },
    ids: () => [...calls.keys()],
    keeps: (callId) => calls.has(callId),
    count: () => calls.values().reduce((sum, { steps }) => sum + steps.length, 0),
    isAway,
    settled: async (callId) => calls.get(callId)?.settled.promise,
    adopt: lookAround.idle,
    async start() {
      await lookAround.idle()
      const isComing = (): boolean => calls.values().some(({ failures }) => failures < mostFailures)
      while (isComing() && !isAway() && !stopping.signal.aborted) await notice.promise
    },
    close: () => (closing ??= close()),
  }
}
