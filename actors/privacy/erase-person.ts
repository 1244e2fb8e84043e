/**
 * Owns the erasure of persons: begun by an account or its operator, carried out a few calls at a time, gone on with by whatever process is there when
 * one dies half-way, and told of by its row. First the calls that are linked to the person, then a walk through all calls of the account: the
 * person's own are emptied, in those of others the naming texts are replaced. A call that began while the erasure did is waited for.
 * docs/contract/rest.md "Erasure of a person".
 */
import { deadline } from '../../model/deadline.ts'
import type { Clock } from '../../model/clock.ts'
import { sumOf, toErasure, type ErasedCounts, type ErasePerson } from '../../model/erasure.ts'
import type { CallId, NewId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import { eraseCalls, findErasedColumns } from '../../store/erase-calls.ts'
import {
  beginErasure,
  claimErasure,
  completeErasure,
  findErasure,
  listCallsAfter,
  listLinkedCalls,
  noteProgress,
  type CallOwnership,
  type ErasureRow,
  type PersonTraces,
} from '../../store/erasures.ts'
import {
  countRemaining,
  deleteNamingConfirmations,
  deleteNamingKeys,
  deleteNamingRefusals,
  findTextColumns,
  redactMentions,
} from '../../store/mentions.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { createRounds } from '../rounds/rounds.ts'
import { blankedAnswer, blankedBody, blankedLog, blankedSnapshot } from './blanked.ts'
import { createOwnershipTest, createTraceFinder } from './person-traces.ts'
import { createRecordingRemoval } from './recording-removal.ts'

export type Erasures = {
  /** Answers when it is done, or after `patience` what is done by then. */
  readonly erasePerson: ErasePerson
  /** Goes on with what other processes left. */
  start(): void
  /** Stops between two parts. Idempotent. */
  close(): Promise<void>
}

type Deps = {
  readonly sql: Sql
  readonly box: SecretBox
  /** Null: recordings are left to the service that runs. */
  readonly recordings: RecordingStore | null
  readonly clock: Clock
  readonly log: Log
  readonly newId: NewId
  /** Ms. Absent: as long as a request waits. */
  readonly patience?: number
}

type End = Omit<PromiseWithResolvers<void>, 'reject'> & { waiting: number }

/** Below what balancers wait for an answer. */
const defaultPatience = 25_000
const lookEvery = 30_000
const seeEvery = 1_000
/** Longer than one part takes; an erasure whose process died is gone on with after it. */
const lease = 60_000
/** In one transaction. */
const callsAtOnce = 10
const walkedAtOnce = 50

export function createErasures(deps: Deps): Erasures {
  const { sql, clock, log, newId, patience = defaultPatience } = deps
  let closed = false
  /** By erasure: who here waits for its end. */
  const ends = new Map<string, End>()
  const rounds = createRounds({ clock, log, every: lookEvery, look })

  async function look(): Promise<boolean> {
    const erasure = closed ? null : await claimErasure(sql, clock.now(), lease)
    if (!erasure?.traces) return false
    try {
      await carryOut(deps, erasure, erasure.traces, () => closed)
    } catch (error) {
      log.error('an erasure was broken off and is gone on with later', { erasureId: erasure.id, error })
    }
    ends.get(erasure.id)?.resolve()
    return true
  }

  /** Another process may be the one that carries it out. */
  async function awaitEnd(begun: ErasureRow): Promise<ErasureRow> {
    const until = clock.now() + patience
    const end = ends.get(begun.id) ?? { ...Promise.withResolvers<void>(), waiting: 0 }
    ends.set(begun.id, end)
    end.waiting += 1
    rounds.wake()
    try {
      const stopped = end.promise.then(() => true)
      for (let isStopped = false; ;) {
        const seen = (await findErasure(sql, begun.accountId, begun.id)) ?? begun
        if (isStopped || seen.completedAt !== null || clock.now() >= until) return seen
        isStopped = await deadline(clock, Math.min(patience, seeEvery), stopped, () => false)
      }
    } finally {
      // Not while others wait: who sees the end first is not the one who is told of it.
      end.waiting -= 1
      if (end.waiting === 0) ends.delete(begun.id)
    }
  }

  return {
    async erasePerson(accountId, personId) {
      const belongs = (call: CallOwnership, traces: PersonTraces) => createOwnershipTest(traces)(call)
      const begun = await beginErasure(sql, { accountId, personId, belongs, newId, now: clock.now() })
      if (!begun) return null
      if (begun.completedAt !== null) return toErasure(begun)
      return toErasure(await awaitEnd(begun))
    },
    start: () => rounds.wake(),
    async close() {
      closed = true
      await rounds.close()
    },
  }
}

/** Its claim is held as long as it makes progress, and given back when it stops or waits. */
async function carryOut(deps: Deps, erasure: ErasureRow, traces: PersonTraces, stops: () => boolean): Promise<void> {
  const { sql, clock, log } = deps
  const { id, accountId } = erasure
  const finder = createTraceFinder(traces)
  const belongs = createOwnershipTest(traces)
  const removeRecordings = createRecordingRemoval(deps)
  const work = await openWork(deps, erasure)
  const texts = await findTextColumns(sql)

  for (let linked: CallOwnership[] | null = null; linked === null || linked.length > 0;) {
    if (stops()) return work.giveBack(0)
    linked = await listLinkedCalls(sql, { accountId, personId: traces.personId, limit: callsAtOnce })
    await work.erase(linked)
  }
  // Before the walk: what is confirmed until then is a call that the walk comes to.
  await deleteNamingConfirmations(sql, accountId, finder)
  let { afterCall } = erasure
  let isWaiting = false
  for (let walked: CallOwnership[] | null = null; walked === null || walked.length === walkedAtOnce;) {
    if (stops()) return work.giveBack(0)
    walked = await listCallsAfter(sql, { accountId, after: afterCall, limit: walkedAtOnce })
    const own = walked.filter(belongs)
    await work.erase(own.filter((call) => call.isOver))
    const others = walked.filter((call) => !own.includes(call)).map((call) => call.id)
    work.add({ mentions: await redactMentions(sql, others, finder, texts) })
    afterCall = walked.at(-1)?.id ?? afterCall
    isWaiting ||= own.some((call) => !call.isOver)
    // Whoever goes on sees again the first that is waited for.
    await work.note(isWaiting ? null : afterCall)
  }
  if (isWaiting) return work.giveBack(lookEvery)
  work.add({ callRefusals: await deleteNamingRefusals(sql, accountId, finder) })
  work.add({ idempotentAnswers: await deleteNamingKeys(sql, accountId, finder) })
  while ((await removeRecordings()) > 0);
  const remaining = await countRemaining(sql, accountId, finder)
  const erased = work.erased()
  await completeErasure(sql, id, { erased, remaining, now: clock.now() })
  log.info('a person was erased', { erasureId: id, accountId, calls: erased.calls })
}

/** How far it has come, in memory and in its row. */
async function openWork(deps: Deps, { id, accountId, ...begun }: ErasureRow) {
  const { sql, clock, log } = deps
  const columns = await findErasedColumns(sql)
  const removeRecordings = createRecordingRemoval(deps)
  let { erased, afterCall } = begun
  const progress = (claimedFor: number) => ({ erased, afterCall, claimedUntil: clock.now() + claimedFor })
  const eraseSome = async (callIds: readonly CallId[]): Promise<void> => {
    const erasing = { accountId, callIds, columns, blanking: blankingOf(deps), now: clock.now() }
    const counted = await eraseCalls(sql, erasing, async (tx, counts) => {
      const next = sumOf(erased, counts)
      await noteProgress(tx, id, { ...progress(lease), erased: next })
      return next
    })
    erased = counted ?? erased
    await removeRecordings(callsAtOnce).catch((error: unknown) => log.warn('recordings are removed later', { error }))
  }
  return {
    erased: () => erased,
    add: (counts: Partial<ErasedCounts>) => void (erased = sumOf(erased, counts)),
    /** Of calls that are over. */
    async erase(calls: readonly CallOwnership[]): Promise<void> {
      const ids = calls.map((call) => call.id)
      for (let at = 0; at < ids.length; at += callsAtOnce) await eraseSome(ids.slice(at, at + callsAtOnce))
    },
    /** All calls up to this one are done; null: as far as was noted. */
    note: (upTo: CallId | null) => {
      afterCall = upTo ?? afterCall
      return noteProgress(sql, id, progress(lease))
    },
    /** For so many ms nobody goes on with it. */
    giveBack: (ms: number) => noteProgress(sql, id, progress(ms)),
  }
}

const blankingOf = ({ box }: Deps) => ({
  log: blankedLog,
  snapshot: blankedSnapshot,
  body: blankedBody,
  answers: { box, rewrite: blankedAnswer },
})
