/**
 * Owns what people of an account may do with a running call of it besides hanging up: listen, whisper, speak in the agent's place. Whether it can be, the
 * call itself decides when the fact reaches it; its snapshot tells the answer. docs/supervision.md.
 */
import type { Bus } from '../../model/bus.ts'
import { pause, type Clock } from '../../model/clock.ts'
import type { CallId, NewId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import { notFound, Problem } from '../../model/problem.ts'
import { maxSupervisors, type Supervise, type SupervisedCall, type Supervision } from '../../model/supervision.ts'
import type { OpenWebMedia } from '../../media/plane/media-plane.ts'
import { findCallFacts } from '../../store/call-steps.ts'
import type { Sql } from '../../store/sql.ts'
import { findSupervised, maySupervise, namesOfUsers, type SupervisedRow } from '../../store/supervision.ts'
import type { LlmProvider } from '../../model/worker.ts'
import type { CallFact } from '../call/call-event.ts'
import type { Engines } from '../call/engine-choice.ts'
import { engineOf } from '../call/fallback.ts'
import type { CallRouter } from '../node/call-router.ts'
import { createSupervisorLine, type SupervisorLine } from './supervisor-line.ts'

export type SuperviseDeps = {
  readonly sql: Sql
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly newId: NewId
  readonly router: CallRouter
  readonly engines: Engines
  /** A web leg that is none of a call's. Null: browsers do not come to this process. */
  readonly openMedia: OpenWebMedia | null
}

type Asked = Parameters<Supervise['listen']>[0]
type OfListening = Parameters<Supervise['takeOver']>[0]

/** In all of the process. */
const maxLines = 100
/** A call is told for two minutes; ms. */
const [tellAttempts, tellEvery] = [24, 5_000]

const notAllowed = () =>
  new Problem(
    'INSUFFICIENT_SCOPE',
    'The account does not allow that its calls are listened to; its operator can allow it.',
  )
const notTalking = () => new Problem('CONFLICT', 'The call is not answered yet, or is over.')
const notListening = () => new Problem('CONFLICT', 'You do not listen to this call any more: listen first.')
const outOfReach = () => new Problem('SERVICE_UNAVAILABLE', 'The call cannot be reached now; try again in a moment.')

export type Supervising = Supervise & { close(): Promise<void> }

export function createSupervise(deps: SuperviseDeps): Supervising {
  const { sql, router, log } = deps
  const lines = new Map<string, SupervisorLine>()
  /** Calls are being told that somebody is gone. */
  const telling = new Set<Promise<void>>()
  const closing = new AbortController()

  async function requireAllowed(call: SupervisedCall): Promise<SupervisedRow> {
    const row = await findSupervised(sql, call)
    if (!row) throw notFound()
    if (!row.isAllowed) throw notAllowed()
    return row
  }
  async function requireTalking(call: SupervisedCall): Promise<SupervisedRow> {
    const row = await requireAllowed(call)
    if (!row.isTalking) throw notTalking()
    return row
  }
  /** The row after the call has taken the fact. */
  async function tell(call: SupervisedCall, fact: CallFact): Promise<SupervisedRow> {
    if (!(await router.route(call.callId, fact))) throw outOfReach()
    return requireTalking(call)
  }
  async function requireOwn(asked: OfListening): Promise<SupervisedRow> {
    const row = await requireTalking(asked)
    if (!isOwn(row, asked)) throw notListening()
    return row
  }
  const left = (callId: CallId, id: string, lost: boolean): Promise<boolean> =>
    router.route(callId, { type: 'supervisor_left', id, ...(lost && { lost: true as const }) })

  function tellLeft(call: SupervisedCall, id: string): void {
    const told = tellUntilHeard(call, id).finally(() => telling.delete(told))
    telling.add(told)
  }
  /** Until the call has heard it, or is over: a caller may be waiting for a voice that does not come any more. */
  async function tellUntilHeard(call: SupervisedCall, id: string): Promise<void> {
    for (let attempt = 0; attempt < tellAttempts; attempt++) {
      if (await left(call.callId, id, true).catch(() => false)) return
      const isOver = await findSupervised(sql, call).then(
        (row) => row?.isTalking !== true,
        () => false,
      )
      if (isOver || !(await pause(deps.clock, tellEvery, closing.signal))) return
    }
    log.error('a call was not told that its supervisor is gone', { callId: call.callId })
  }

  function openLine(openMedia: OpenWebMedia, { callId, accountId, userId }: Asked) {
    const id = deps.newId<'call'>()
    const failed = (error: unknown): void => log.error('the leg of a supervisor failed', { callId, error })
    const media = openMedia(id, {
      legClosed: () => line.end(),
      failed,
      gone: () => lines.delete(id),
    })
    // There is no socket by which a browser is known to be there: its sound tells.
    media.presence('left')
    const ended = (): void => {
      lines.delete(id)
      tellLeft({ accountId, callId }, id)
    }
    const mayStill = () => maySupervise(sql, { accountId, userId })
    const line = createSupervisorLine({ ...deps, media, callId, id, mayStill, ended })
    lines.set(id, line)
    return { id, media, line }
  }

  async function listen(asked: Asked): Promise<{ readonly id: string; readonly sdp: string }> {
    await requireTalking(asked)
    if (!deps.openMedia)
      throw new Problem('SERVICE_UNAVAILABLE', 'Browsers do not come to this process: no supervisor can listen by it.')
    if (lines.size >= maxLines)
      throw new Problem('SERVICE_UNAVAILABLE', 'Too many supervisors listen by this process; try again later.')
    const { id, media, line } = openLine(deps.openMedia, asked)
    try {
      const sdp = await media.answer(asked.sdp)
      if (!(await line.start())) throw new Problem('SERVICE_UNAVAILABLE', 'The line of the supervisor did not begin.')
      const row = await tell(asked, { type: 'supervisor_joined', id, userId: asked.userId })
      if (row.supervisors.some((one) => one.id === id)) return { id, sdp }
      throw row.supervisors.length >= maxSupervisors
        ? new Problem('CONFLICT', `${maxSupervisors} people listen to this call already.`)
        : notTalking()
    } catch (error) {
      lines.delete(id)
      await line.close()
      // The call may have noted it all the same.
      tellLeft(asked, id)
      throw error
    }
  }

  return {
    async read(call) {
      const row = await findSupervised(sql, call)
      if (!row) throw notFound()
      return shownOf(
        row,
        await namesOfUsers(
          sql,
          row.supervisors.map(({ userId }) => userId),
        ),
      )
    },
    listen,
    async leave(asked) {
      const row = await findSupervised(sql, asked)
      if (!row) throw notFound()
      // The browser may have gone faster than its word.
      if (!isOwn(row, asked)) return
      const closing = lines.get(asked.id)?.close()
      await left(asked.callId, asked.id, false)
      await closing
    },
    async whisper({ userId, text, ...call }) {
      const { engine } = await requireTalking(call)
      await requireHearing(deps, call.callId, engine)
      await tell(call, { type: 'whispered', userId, text })
    },
    async takeOver(asked) {
      const { voice } = await requireOwn(asked)
      if (voice !== null && voice !== asked.id) throw new Problem('CONFLICT', 'Somebody else speaks with the caller.')
      if (voice === asked.id) return
      const row = await tell(asked, { type: 'voice_taken', id: asked.id })
      if (row.voice === null)
        throw new Problem(
          'CONFLICT',
          'The agent cannot be silenced now: something must be said first, or the talk is about to end.',
        )
      if (row.voice !== asked.id) throw new Problem('CONFLICT', 'Somebody else speaks with the caller.')
    },
    async giveBack(asked) {
      const { voice } = await requireOwn(asked)
      if (voice !== asked.id) throw new Problem('CONFLICT', 'The call is not yours to give back.')
      await tell(asked, { type: 'voice_returned', id: asked.id })
    },
    async close() {
      const open = [...lines.values()]
      for (const line of open) line.end()
      await Promise.all(open.map((line) => line.close()))
      closing.abort()
      await Promise.all(telling)
    },
  }
}

const isOwn = ({ supervisors }: SupervisedRow, { id, userId }: OfListening): boolean =>
  supervisors.some((one) => one.id === id && one.userId === userId)

/** Throws Problem where the engine of the call would not understand a whisper. */
async function requireHearing(deps: SuperviseDeps, callId: CallId, named: LlmProvider | null): Promise<void> {
  const call = await findCallFacts(deps.sql, callId)
  const engine = named ? deps.engines.get(named) : call && (await engineOf(deps, call))
  if (engine?.ignoresWhispers)
    throw new Problem(
      'CONFLICT',
      'The agent of this call follows its script and nothing else: take the call over instead.',
    )
}

const shownOf = ({ supervisors, voice }: SupervisedRow, names: ReadonlyMap<string, string>): Supervision => ({
  supervisors: supervisors.map(({ id, userId }) => ({
    id,
    userId,
    name: names.get(userId) ?? '',
    speaks: id === voice,
  })),
})
