/**
 * Owns how steps of calls become rows, those of many calls in one transaction: each with its log, its turns, its jobs and what it announces.
 * Fencing is per call: a step of an actor that no longer owns the call, or that worked on a stale snapshot, changes nothing, and the others
 * are written all the same. The calls are locked before their facts are read, so that nobody changes what the rows are made from.
 */
import { toIso } from '../model/clock.ts'
import type { AccountId, CallId, NewId, NodeId } from '../model/ids.ts'
import type { Json } from '../model/json.ts'
import { callColumns, workerConfigOf, type CallRow } from './call-rows.ts'
import type { LoggedStep } from './call-steps.ts'
import { insertDeliveries } from './deliveries.ts'
import { columnOf, type Sql, type Transaction } from './sql.ts'
import type { CallChange, StepFacts, StepReads, StepRows } from './step-rows.ts'
import { holdMatchingOf, type HeldSubscription } from './subscriptions.ts'
import { listTurnsOf, type TurnRow } from './transcripts.ts'

/** Who may write the next step, and on top of what. */
export type Tenure = {
  readonly callId: CallId
  readonly accountId: AccountId
  readonly nodeId: NodeId
  readonly epoch: number
  readonly version: number
}

export type CallStep = {
  readonly tenure: Tenure
  readonly next: { readonly snapshot: Json; readonly dormant: boolean; readonly finished: boolean }
  readonly logged: LoggedStep
  readonly reads: StepReads
  /** Pure; asked with the call as it is before this step, as often as the step is tried. */
  rowsOf(facts: StepFacts): StepRows
}

type Written = { readonly step: CallStep; readonly call: CallRow; readonly rows: StepRows }

/** Ms that one of a group may hold up the others by what somebody else has locked. */
const longestLock = 100

export type GroupResult = {
  readonly written: ReadonlySet<CallStep>
  /** How many deliveries announce them. */
  readonly announced: number
}

/** Of different calls. Of those that were not written it is not known why: fenced, or locked by somebody else. */
export function writeGroup(sql: Sql, newId: NewId, steps: readonly CallStep[]): Promise<GroupResult> {
  return sql.begin(async (tx): Promise<GroupResult> => {
    const found = await read(tx, steps, 'skips')
    const written = toRows(steps, found)
    const announced = await write(tx, newId, written, found.subscriptions)
    return { written: new Set(written.map(({ step }) => step)), announced }
  }) as Promise<GroupResult>
}

/**
 * Waits for whoever has locked the call. Nothing is written when the writer has been fenced. A step whose answer was lost with its connection
 * finds itself in the log, and is not written twice; what announces it is there already.
 */
export function writeAlone(sql: Sql, newId: NewId, step: CallStep): Promise<GroupResult> {
  return sql.begin(async (tx): Promise<GroupResult> => {
    const found = await read(tx, [step], 'waits')
    const written = toRows([step], found)
    const announced = await write(tx, newId, written, found.subscriptions)
    const isWritten = written.length > 0 || (await wasWritten(tx, step))
    // Of one that finds itself, whoever wrote it has woken nobody.
    return { written: new Set(isWritten ? [step] : []), announced: isWritten && written.length === 0 ? 1 : announced }
  }) as Promise<GroupResult>
}

type Locked = CallRow & { readonly owner: NodeId | null; readonly epoch: number; readonly version: number }
type OfCall = { readonly callId: CallId }

type Read = {
  readonly calls: readonly Locked[]
  readonly turns: readonly (TurnRow & OfCall)[]
  readonly configs: readonly (NonNullable<StepFacts['config']> & OfCall)[]
  /** None of them can be removed before the transaction ends: what is inserted for them stays valid. */
  readonly subscriptions: readonly HeldSubscription[]
}

/** Sent together. */
async function read(tx: Transaction, steps: readonly CallStep[], locks: 'skips' | 'waits'): Promise<Read> {
  const withTurns = idsOf(steps.filter(({ reads }) => reads.turns))
  const withConfig = idsOf(steps.filter(({ reads }) => reads.config))
  const [calls, turns, configs, subscriptions] = await Promise.all([
    lockCalls(tx, idsOf(steps), locks),
    withTurns.length === 0 ? [] : listTurnsOf(tx, withTurns),
    withConfig.length === 0 ? [] : listConfigs(tx, withConfig),
    holdTakers(
      tx,
      steps.filter(({ reads }) => reads.eventTypes.length > 0),
    ),
  ])
  return { calls, turns, configs, subscriptions }
}

const idsOf = (steps: readonly CallStep[]): CallId[] => steps.map(({ tenure }) => tenure.callId)

/** A group waits for nobody: what is locked is not among the rows, and further locks are waited for no longer than `longestLock`. */
async function lockCalls(tx: Transaction, callIds: readonly CallId[], locks: 'skips' | 'waits'): Promise<Locked[]> {
  const wait = locks === 'skips' ? tx`, set_config('lock_timeout', ${String(longestLock)}, true)` : tx``
  return tx<Locked[]>`
    select ${callColumns(tx)}, owner, epoch, version ${wait} from calls
    where id = any(${[...callIds]}::text[]) order by id
    for no key update ${locks === 'skips' ? tx`skip locked` : tx``}`
}

const listConfigs = (tx: Transaction, callIds: readonly CallId[]) => tx<Read['configs'][number][]>`
  select calls.id as call_id, request, hook_answer, ${workerConfigOf(tx)} as worker_config
  from calls join workers on workers.id = calls.worker_id join accounts on accounts.id = calls.account_id
  where calls.id = any(${[...callIds]}::text[])`

async function holdTakers(tx: Transaction, steps: readonly CallStep[]): Promise<readonly HeldSubscription[]> {
  if (steps.length === 0) return []
  return holdMatchingOf(tx, {
    accountIds: [...new Set(steps.map(({ tenure }) => tenure.accountId))],
    callIds: idsOf(steps),
    eventTypes: [...new Set(steps.flatMap(({ reads }) => reads.eventTypes))],
  })
}

/** Of the steps that are not fenced. */
function toRows(steps: readonly CallStep[], found: Read): Written[] {
  const calls = new Map(found.calls.map((call) => [call.id, call]))
  return steps.flatMap((step) => {
    const { callId, nodeId, epoch, version } = step.tenure
    const call = calls.get(callId)
    if (call?.owner !== nodeId || call.epoch !== epoch || call.version !== version) return []
    const turns = found.turns.filter((turn) => turn.callId === callId)
    const config = found.configs.find((of) => of.callId === callId) ?? null
    return [{ step, call, rows: step.rowsOf({ call, turns, config }) }]
  })
}

async function write(
  tx: Transaction,
  newId: NewId,
  written: readonly Written[],
  subscriptions: Read['subscriptions'],
): Promise<number> {
  if (written.length === 0) return 0
  const batches = written.map(({ step, call: { accountId, workerId }, rows }) => ({
    accountId,
    workerId,
    callId: step.tenure.callId,
    events: rows.events,
    now: step.logged.at,
  }))
  const [, announced] = await Promise.all([
    writeRows(tx, newId, written),
    insertDeliveries(tx, { batches, subscriptions, newId }),
  ])
  return announced
}

/** One statement; a row of `step` for each call. */
async function writeRows(tx: Transaction, newId: NewId, written: readonly Written[]): Promise<void> {
  const steps = written.map(({ step, rows }) => toStepRow(step, rows.change))
  const turns = written.flatMap(({ call, rows }) =>
    rows.turns.map(({ index, turn }) => ({ ...turn, callId: call.id, accountId: call.accountId, index })),
  )
  const ends = written.flatMap(({ call, rows: { turnsEndAt } }) =>
    turnsEndAt === null ? [] : [{ callId: call.id, at: turnsEndAt }],
  )
  const jobs = written.flatMap(({ call, rows }) =>
    rows.jobs.map(({ kind, runAt }) => ({
      id: newId(),
      callId: call.id,
      accountId: call.accountId,
      kind,
      runAt: toIso(runAt),
    })),
  )
  const moved = await tx`
    with step as materialized (
      select * from jsonb_to_recordset(${tx.json(steps as never)}) as s("callId" text, "accountId" text, owner text, epoch integer,
        seq integer, at timestamptz, snapshot jsonb, finished boolean, event jsonb, effects jsonb, ignored boolean, change jsonb)
    ), logged as (
      insert into call_events (call_id, account_id, epoch, seq, at, event, effects, ignored)
      select "callId", "accountId", epoch, seq, at, event, effects, ignored from step
    ), said as (
      insert into transcript_turns (call_id, account_id, turn_index, role, text, from_ms, to_ms, confidence, source, latency)
      select "callId", "accountId", index, role, text, "from", "to", confidence, source, nullif(latency, 'null')
      from jsonb_to_recordset(${tx.json(turns as never)}) as t("callId" text, "accountId" text, index integer, role text, text text,
        "from" integer, "to" integer, confidence real, source text, latency jsonb)
    ), cut as (
      update transcript_turns set from_ms = least(from_ms, e.at), to_ms = e.at
      from jsonb_to_recordset(${tx.json(ends)}) as e("callId" text, at integer)
      where call_id = any(${ends.map(({ callId }) => callId)}::text[]) and call_id = e."callId" and to_ms > e.at
    ), due as (
      insert into jobs (id, account_id, call_id, kind, run_at)
      select id, "accountId", "callId", kind, "runAt"
      from jsonb_to_recordset(${tx.json(jobs)}) as j(id text, "accountId" text, "callId" text, kind text, "runAt" timestamptz)
      on conflict (call_id, kind) do nothing
    )
    update calls set snapshot = s.snapshot, version = s.seq, finished = s.finished, owner = s.owner, ${tx.unsafe(changedColumns)}
    from step s
    where id = any(${written.map(({ call }) => call.id)}::text[]) and id = s."callId"`
  if (moved.count !== written.length) throw new Error('a call that is locked has no row')
}

function toStepRow({ tenure, next, logged }: CallStep, change: CallChange) {
  const { callId, accountId, nodeId, epoch, version } = tenure
  const { event, effects, ignored, at } = logged
  const { snapshot, dormant, finished } = next
  const owner = dormant || finished ? null : nodeId
  const row = { callId, accountId, owner, epoch, seq: version + 1, at: toIso(at), snapshot, finished }
  return { ...row, event, effects, ignored, change: timesAsText(change) }
}

const timesAsText = (change: CallChange): object => ({
  ...change,
  ...(typeof change.startedAt === 'number' && { startedAt: toIso(change.startedAt) }),
  ...(typeof change.endedAt === 'number' && { endedAt: toIso(change.endedAt) }),
})

/** A field that no column is named for does not compile. */
const changeable: Readonly<Record<keyof CallChange, 'text' | 'integer' | 'timestamptz' | 'jsonb'>> = {
  progress: 'text',
  outcome: 'text',
  failedReason: 'text',
  providerStatus: 'text',
  postProcessingStatus: 'text',
  metadata: 'jsonb',
  nextAction: 'jsonb',
  dimensions: 'jsonb',
  evidence: 'jsonb',
  summary: 'text',
  startedAt: 'timestamptz',
  endedAt: 'timestamptz',
  endedBy: 'text',
  endCause: 'text',
  recordingKey: 'text',
  recordedMs: 'integer',
  quality: 'jsonb',
  warnings: 'jsonb',
  recordingState: 'text',
  disclosure: 'jsonb',
  hookAnswer: 'jsonb',
  externalTools: 'jsonb',
  usage: 'jsonb',
}

/** What the change does not name keeps its value. */
const changedColumns = Object.entries(changeable)
  .map(([field, type]) => {
    const column = columnOf(field)
    const value = type === 'jsonb' ? `nullif(change->'${field}', 'null')` : `(change->>'${field}')::${type}`
    return `${column} = case when change ? '${field}' then ${value} else calls.${column} end`
  })
  .join(', ')

/** With the epoch of this actor nobody else has written, and nobody has taken the call since. */
async function wasWritten(tx: Transaction, step: CallStep): Promise<boolean> {
  const { callId, epoch } = step.tenure
  const owned = await tx`select from calls where id = ${callId} and epoch = ${epoch}`
  return owned.count > 0 && (await isInLog(tx, step))
}

/** Was it written, whoever has the call now? */
export async function isInLog(
  sql: Sql | Transaction,
  { tenure, logged }: Pick<CallStep, 'tenure' | 'logged'>,
): Promise<boolean> {
  const { callId, epoch, version } = tenure
  const found = await sql`
    select from call_events
    where call_id = ${callId} and seq = ${version + 1} and epoch = ${epoch} and at = ${logged.at}
      and event = ${sql.json(logged.event as never)}`
  return found.count > 0
}
