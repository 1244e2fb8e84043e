/** Owns the rows of what came of simulated callers: the newest fifty of each account. */
import type { AccountId, NewId, SimulationId } from '../model/ids.ts'
import { invalidFields } from '../model/problem.ts'
import { cursorOf, toPage, type Page } from '../model/paging.ts'
import {
  factsOfRequest,
  toSimulationSummary,
  type Simulation,
  type SimulationContent,
  type SimulationFacts,
  type SimulationQuery,
  type SimulationRequest,
  type SimulationSummary,
} from '../model/simulation.ts'
import type { Sql } from './sql.ts'

const mostKept = 50

/** Throws Problem where a run names a call that the account has not. */
async function requireCalls(sql: Sql, accountId: AccountId, { runs }: SimulationRequest): Promise<void> {
  const named = runs.flatMap(({ callId }) => (callId === undefined ? [] : [callId.toLowerCase()]))
  const rows = await sql<{ id: string }[]>`
    select id from calls where account_id = ${accountId} and id = any(${named}::text[])`
  const known = new Set(rows.map(({ id }) => id))
  const issues = runs.flatMap(({ callId }, place) =>
    callId === undefined || known.has(callId.toLowerCase())
      ? []
      : [{ path: `runs.${place}.callId`, message: 'must be a call of this account' }],
  )
  if (issues.length > 0) throw invalidFields(issues.slice(0, 50))
}

type Kept = { readonly accountId: AccountId; readonly newId: NewId; readonly now: number }

export async function keepSimulation(
  sql: Sql,
  request: SimulationRequest,
  { accountId, newId, now }: Kept,
): Promise<SimulationSummary> {
  await requireCalls(sql, accountId, request)
  const { ranAt: _, target: __, ...content } = request
  const facts = { id: newId<'simulation'>(), ...factsOfRequest(request) }
  await sql.begin(async (tx) => {
    await tx`
      insert into simulations (id, account_id, created_at, ran_at, target, run_count, passed_count, content)
      values (${facts.id}, ${accountId}, ${now}, ${facts.ranAt}, ${facts.target}, ${facts.runCount}, ${facts.passedCount},
        ${tx.json(content)})`
    await tx`
      delete from simulations where account_id = ${accountId} and id <= (
        select id from simulations where account_id = ${accountId} order by id desc offset ${mostKept} limit 1)`
  })
  return toSimulationSummary(facts)
}

/** Newest first. */
export async function listSimulations(
  sql: Sql,
  accountId: AccountId,
  query: SimulationQuery,
): Promise<Page<SimulationSummary>> {
  const cursor = cursorOf<'simulation'>(query)
  const rows = await sql<SimulationFacts[]>`
    select id, ran_at, target, run_count, passed_count from simulations
    where account_id = ${accountId} ${cursor ? sql`and id < ${cursor}` : sql``}
    order by id desc limit ${query.limit + 1}`
  return toPage(rows, query.limit, toSimulationSummary)
}

export async function findSimulation(sql: Sql, accountId: AccountId, id: SimulationId): Promise<Simulation | null> {
  const [row] = await sql<(SimulationFacts & { content: SimulationContent })[]>`
    select id, ran_at, target, run_count, passed_count, content from simulations
    where account_id = ${accountId} and id = ${id}`
  if (!row) return null
  const { content, ...facts } = row
  return { ...toSimulationSummary(facts), ...content }
}

export async function deleteSimulation(sql: Sql, accountId: AccountId, id: SimulationId): Promise<boolean> {
  const { count } = await sql`delete from simulations where account_id = ${accountId} and id = ${id}`
  return count > 0
}

/** Their faults quote what was said: they are kept as long as transcripts are. */
export async function forgetSimulations(
  sql: Sql,
  { accountId, before }: { readonly accountId: AccountId; readonly before: number },
): Promise<void> {
  await sql`delete from simulations where account_id = ${accountId} and created_at < ${before}`
}
