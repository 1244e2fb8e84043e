/**
 * Owns how steps of calls become rows, those of many calls in one statement: each with its log, its turns, its jobs and what it announces.
 * Fencing is per call: a step of an actor that no longer owns the call, or that worked on a stale snapshot, changes nothing, and the others
 * are written all the same. Where somebody has changed a call since it was read, its step is not written with the others, and is made anew by itself from
 * a call that is locked first.
 */
import { toIso } from '../model/clock.ts'
import type { AccountId, CallId, NewId, NodeId } from '../model/ids.ts'
import type { Json } from '../model/json.ts'
import { callColumns, workerConfigOf, type CallRow } from './call-rows.ts'
import type { Claim, LoggedStep } from './call-steps.ts'
import { insertionOf, newDeliveriesOf, type NewDeliveries } from './deliveries.ts'
import { inTime } from './in-time.ts'
import { columnOf, type Fragment, type Sql, type Transaction } from './sql.ts'
import type { CallChange, StepFacts, StepReads, StepRows } from './step-rows.ts'
import { holdMatchingOfCall, takersColumn, type Taker } from './subscriptions.ts'
import { turnsColumn, type TurnRow } from './transcripts.ts'

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

type Written = { readonly step: CallStep; readonly call: ReadCall; readonly rows: StepRows }

/** Ms that one of a group may hold up the others by what somebody else has locked. */
const longestLock = 100

export type GroupResult = {
  readonly written: ReadonlySet<CallStep>
  /** How many deliveries announce them. */
  readonly announced: number
}

/**
 * Of different calls: what they are made from is read, and one statement writes those whose calls are as they were read. Of those that were not written
 * it is not known why: fenced, changed in between, or locked by somebody else.
 */
export async function writeGroup(sql: Sql, newId: NewId, steps: readonly CallStep[]): Promise<GroupResult> {
  const hurry = sql`set_config('lock_timeout', ${String(longestLock)}, true)`
  return write(sql, newId, { written: toRows(steps, await read(sql, steps)), hurry })
}

/**
 * Waits for whoever has locked the call. Nothing is written when the writer has been fenced. A step whose answer was lost with its connection
 * finds itself in the log, and is not written twice; what announces it is there already.
 */
export function writeAlone(sql: Sql, newId: NewId, step: CallStep): Promise<GroupResult> {
  return sql.begin(async (tx): Promise<GroupResult> => {
    await lockCall(tx, step)
    await holdTakers(tx, step)
    const found = await read(tx, [step])
    const result = await write(tx, newId, { written: toRows([step], found), hurry: tx`true` })
    // Of one that finds itself, whoever wrote it has woken nobody.
    return result.written.size === 0 && (await wasWritten(tx, step))
      ? { written: new Set([step]), announced: 1 }
      : result
  }) as Promise<GroupResult>
}

/**
 * One step more of a call that nobody runs, over or not: it is claimed and given back in the same transaction. `stepOf` null: it has no use for one. Nor has
 * a call whose words were removed.
 */
export function writeUnowned(
  sql: Sql,
  newId: NewId,
  { callId, nodeId }: Pick<Tenure, 'callId' | 'nodeId'>,
  stepOf: (claim: Omit<Claim, 'leftFor'>) => CallStep | null,
): Promise<GroupResult> {
  return sql.begin(async (tx): Promise<GroupResult> => {
    const [claim] = await tx<Omit<Claim, 'leftFor'>[]>`
      select account_id, epoch + 1 as epoch, version, snapshot from calls
      where id = ${callId} and owner is null and erased_at is null and log_removed_at is null for no key update`
    const step = claim ? stepOf(claim) : null
    if (!step) return { written: new Set(), announced: 0 }
    await tx`update calls set owner = ${nodeId}, epoch = epoch + 1 where id = ${callId}`
    await holdTakers(tx, step)
    return write(tx, newId, { written: toRows([step], await read(tx, [step])), hurry: tx`true` })
  }) as Promise<GroupResult>
}

const lockCall = (tx: Transaction, { tenure }: CallStep) => tx`
  select from calls where id = ${tenure.callId} for no key update`

/** None of them can be removed before the transaction ends: what is inserted for them stays valid. */
async function holdTakers(tx: Transaction, { tenure: { callId, accountId }, reads }: CallStep): Promise<void> {
  if (reads.eventTypes.length > 0) await holdMatchingOfCall(tx, { accountId, callId, eventTypes: reads.eventTypes })
}

type ReadCall = CallRow & {
  readonly owner: NodeId | null
  readonly epoch: number
  readonly version: number
  /** Another one after each change of the row, whoever makes it. */
  readonly rowVersion: string
  readonly takers: readonly Taker[]
  readonly turns: readonly TurnRow[] | null
}
type OfCall = { readonly callId: CallId }

type Read = {
  readonly calls: readonly ReadCall[]
  readonly configs: readonly (NonNullable<StepFacts['config']> & OfCall)[]
}

/** Sent together. */
async function read(sql: Sql | Transaction, steps: readonly CallStep[]): Promise<Read> {
  const withConfig = idsOf(steps.filter(({ reads }) => reads.config))
  const [calls, configs] = await Promise.all([
    readCalls(sql, steps),
    withConfig.length === 0 ? [] : listConfigs(sql, withConfig),
  ])
  return { calls, configs }
}

const idsOf = (steps: readonly CallStep[]): CallId[] => steps.map(({ tenure }) => tenure.callId)

const readCalls = (sql: Sql | Transaction, steps: readonly CallStep[]) => sql<ReadCall[]>`
  select ${callColumns(sql)}, owner, epoch, version, calls.xmin::text as row_version,
    ${takersColumn(sql, [...new Set(steps.flatMap(({ reads }) => reads.eventTypes))])} as takers,
    case when id = any(${idsOf(steps.filter(({ reads }) => reads.turns))}::text[]) then ${turnsColumn(sql)} end as turns
  from calls where id = any(${idsOf(steps)}::text[])`

const listConfigs = (sql: Sql | Transaction, callIds: readonly CallId[]) => sql<Read['configs'][number][]>`
  select calls.id as call_id, request, hook_answer, ${workerConfigOf(sql)} as worker_config
  from calls join workers on workers.id = calls.worker_id join accounts on accounts.id = calls.account_id
  where calls.id = any(${[...callIds]}::text[])`

/** Of the steps that are not fenced. */
function toRows(steps: readonly CallStep[], found: Read): Written[] {
  const calls = new Map(found.calls.map((call) => [call.id, call]))
  return steps.flatMap((step) => {
    const { callId, nodeId, epoch, version } = step.tenure
    const call = calls.get(callId)
    if (call?.owner !== nodeId || call.epoch !== epoch || call.version !== version) return []
    const config = found.configs.find((of) => of.callId === callId) ?? null
    return [{ step, call, rows: step.rowsOf({ call, turns: call.turns ?? [], config }) }]
  })
}

/** `hurry`: what keeps them from waiting long for anybody's lock. */
type ToWrite = { readonly written: readonly Written[]; readonly hurry: Fragment }

async function write(on: Sql | Transaction, newId: NewId, { written, hurry }: ToWrite): Promise<GroupResult> {
  if (written.length === 0) return { written: new Set(), announced: 0 }
  const batches = written.map(({ step, call: { accountId, takers }, rows: { events } }) => {
    return { accountId, callId: step.tenure.callId, events, takers, now: step.logged.at }
  })
  const deliveries = newDeliveriesOf(batches, newId)
  const moved = new Set(await writeRows(on, newId, { written, hurry, deliveries }))
  const announced = deliveries.rows.filter(({ event }) => moved.has(deliveries.bodies[event]!.callId)).length
  return { written: new Set(written.flatMap(({ step, call }) => (moved.has(call.id) ? [step] : []))), announced }
}

/**
 * One statement; a row of `step` for each call. Who takes what is announced is held first, which may wait, and then the calls that are as they were
 * read, which does not. Returns those that were written.
 */
async function writeRows(
  on: Sql | Transaction,
  newId: NewId,
  { written, hurry, deliveries }: ToWrite & { readonly deliveries: NewDeliveries },
): Promise<CallId[]> {
  const steps = written.map(({ step, call, rows }) => ({
    ...toStepRow(step, rows.change),
    rowVersion: call.rowVersion,
  }))
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
  const callIds = written.map(({ call }) => call.id)
  const takerIds = [...new Set(deliveries.rows.map(({ subscriptionId }) => subscriptionId))]
  const moved = await on<{ id: CallId }[]>`
    with step as materialized (
      select * from jsonb_to_recordset(${on.json(steps as never)}) as s("callId" text, "accountId" text, owner text, epoch integer,
        seq integer, at timestamptz, snapshot jsonb, finished boolean, event jsonb, effects jsonb, ignored boolean, change jsonb,
        "rowVersion" text)
    ), hurried as materialized (
      select ${hurry}
    ), held as materialized (
      select id from webhook_subscriptions cross join hurried
      where id = any(${takerIds}::text[]) and enabled order by id for key share of webhook_subscriptions
    ), locked as materialized (
      select calls.id from hurried cross join (select count(*) from held) as waited cross join step join calls on calls.id = step."callId"
      where calls.id = any(${callIds}::text[]) and calls.epoch = step.epoch and calls.version = step.seq - 1
        and calls.xmin::text = step."rowVersion"
      order by calls.id for no key update of calls skip locked
    ), logged as (
      insert into call_events (call_id, account_id, epoch, seq, at, event, effects, ignored)
      select "callId", "accountId", epoch, seq, at, event, effects, ignored from step join locked on id = "callId"
    ), said as (
      insert into transcript_turns (call_id, account_id, turn_index, role, text, from_ms, to_ms, confidence, source, latency)
      select "callId", "accountId", index, role, text, "from", "to", confidence, source, nullif(latency, 'null')
      from jsonb_to_recordset(${on.json(turns as never)}) as t("callId" text, "accountId" text, index integer, role text, text text,
        "from" integer, "to" integer, confidence real, source text, latency jsonb) join locked on locked.id = "callId"
    ), cut as (
      update transcript_turns set from_ms = least(from_ms, e.at), to_ms = e.at
      from jsonb_to_recordset(${on.json(ends)}) as e("callId" text, at integer) join locked on locked.id = "callId"
      where call_id = any(${ends.map(({ callId }) => callId)}::text[]) and call_id = e."callId" and to_ms > e.at
    ), due as (
      insert into jobs (id, account_id, call_id, kind, run_at)
      select j.id, "accountId", "callId", kind, "runAt"
      from jsonb_to_recordset(${on.json(jobs)}) as j(id text, "accountId" text, "callId" text, kind text, "runAt" timestamptz)
        join locked on locked.id = "callId"
      on conflict (call_id, kind) do nothing
    ), announced as (
      ${insertionOf(on, deliveries, on`join locked on locked.id = b."callId" join held on held.id = r."subscriptionId"`)}
    )
    update calls set snapshot = s.snapshot, version = s.seq, finished = s.finished, owner = s.owner, ${on.unsafe(changedColumns)}
    from step s join locked on locked.id = s."callId"
    where calls.id = any(${callIds}::text[]) and calls.id = s."callId"
    returning calls.id, ${inTime(on)} as in_time`
  return moved.map(({ id }) => id)
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
