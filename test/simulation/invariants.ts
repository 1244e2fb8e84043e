/** Owns what must be true of a world that has come to rest, whatever went wrong in it. */
import { replay } from '../../actors/call/machine/replay.ts'
import type { CallId } from '../../model/ids.ts'
import { inSpokenOrder } from '../../model/spoken-order.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import type { Sql } from '../../store/sql.ts'
import { listFoundTurns } from '../../store/transcripts.ts'
import type { Plan } from './plan.ts'
import type { Taken } from './receiver.ts'
import type { Done } from './simulated-edge.ts'
import { lineWords } from './simulated-engine.ts'

/** What was counted while the world went on, by what it was counted for. */
export type Seen = {
  readonly tools: Map<string, number>
  /** How often by the id of the tool call. */
  readonly asked: Map<string, number>
  readonly rang: Map<string, number>
  readonly jobs: Map<string, number>
  /** Lines of the log. */
  readonly errors: string[]
  readonly overbooked: string[]
  /** Steps that were kept on a disk, and that nobody could write any more. */
  readonly aside: string[]
  /** What callers did, call by call, in order; each thing once. */
  readonly done: ReadonlyMap<string, readonly Done[]>
}

const more = (counts: ReadonlyMap<string, number>, words: (key: string, count: number) => string): string[] =>
  [...counts].flatMap(([key, count]) => (count > 1 ? [words(key, count)] : []))

export async function findViolations(sql: Sql, plan: Plan, seen: Seen, taken: readonly Taken[]): Promise<string[]> {
  const violations = [
    ...seen.overbooked,
    ...more(seen.rang, (key, count) => `the telephone of call ${key} rang ${count} times`),
    ...more(seen.asked, (key, count) => `the tool call ${key} was asked for ${count} times`),
    ...(await ofCalls(sql, seen)),
    ...(await ofDeliveries(sql, taken)),
    ...(await ofCallers(sql, seen)),
  ]
  // Without a fault nothing is done twice and nobody complains.
  if (plan.faults.length === 0) {
    violations.push(...more(seen.jobs, (id, count) => `the job ${id} was done ${count} times`))
    // A database that is slow is a fault too: a step has some questions one after the other, each of which may be, and is to be written within a second.
    const errors = plan.weather.slow < 300 ? seen.errors : []
    violations.push(...errors.map((line) => `without a fault there is an error: ${line}`))
  }
  return violations
}

type Call = { readonly id: CallId; readonly finished: boolean; readonly owner: string | null; readonly version: number }

async function ofCalls(sql: Sql, { tools, aside }: Seen): Promise<string[]> {
  const calls = await sql<(Call & { outcome: string | null; ended: number })[]>`
    select id, finished, owner, version, outcome, (
      select count(distinct id)::int from deliveries where call_id = calls.id and event_type = 'call.ended') as ended
    from calls order by id`
  const violations: string[] = []
  for (const { id, finished, owner, version, outcome, ended } of calls) {
    const say = (words: string): void => void violations.push(`call ${id} ${words}`)
    if (!finished || outcome === null) say('has not ended')
    if (finished && owner !== null) say('has ended and has an owner')
    const log = await listCallEvents(sql, id)
    if (log.at(-1)?.seq !== version) say(`is at version ${version} and its log at ${log.at(-1)?.seq}`)
    log.forEach(({ seq, epoch }, index) => {
      const before = log[index - 1]
      if (before && seq !== before.seq + 1) say(`lacks what came before ${seq} in its log`)
      if (before && epoch < before.epoch) say(`was written by epoch ${epoch} behind epoch ${before.epoch}`)
    })
    const { differences } = replay(log)
    if (differences.length > 0)
      say(`replays with ${differences.length} differences, the first at ${differences[0]?.seq}`)
    const ordered = log.flatMap(({ effects }) =>
      (effects as { type: string; id?: string }[]).filter(({ type }) => type === 'run_tool'),
    )
    if (new Set(ordered.map((effect) => effect.id)).size < ordered.length) say('ordered one tool call twice')
    // An actor that dies before it has begun one leaves it to the next, whose engine may ask for it anew.
    const unwritten = aside.filter((line) => line.includes(id) && line.includes('"run_tool"')).length
    if ((tools.get(id) ?? 0) > ordered.length + unwritten)
      say(`ran ${tools.get(id)} tools and ordered ${ordered.length}`)
    // To each of the two subscriptions; a call that was taken back before it was dialed has none.
    const announced = log.filter(({ effects }) => JSON.stringify(effects).includes('"announce_ended"')).length
    const wasTakenBack = log.at(-1)?.event !== null && JSON.stringify(log.at(-1)?.event).includes('"cancel_requested"')
    if (announced !== (wasTakenBack ? 0 : 1)) say(`announced its end ${announced} times`)
    if (ended !== 2 * announced) say(`has ${ended} call.ended`)
  }
  // What a process kept on its disk is written by the next one on the same machine, under the epoch that it had.
  const doubled = await sql<{ callId: string; epoch: number }[]>`
    select call_id, epoch from sim.writers group by call_id, epoch having count(distinct split_part(writer, '.', 1)) > 1`
  for (const { callId, epoch } of doubled) violations.push(`two nodes wrote call ${callId} in epoch ${epoch}`)
  return violations
}

/** So many utterances that were said behind a key are written down, and the call did not end over the key. */
const saidBehind = 2

/** What callers say and press is heard once and in order; and a key was heard when what was said behind it was. An utterance may be broken off, and is said again. */
async function ofCallers(sql: Sql, { done, aside }: Seen): Promise<string[]> {
  const turns = await sql<{ callId: CallId; text: string; turnIndex: number; from: number; to: number }[]>`
    select call_id, text, turn_index, from_ms as "from", to_ms as "to" from transcript_turns
    where role = 'user' order by call_id, turn_index`
  const byCall = Map.groupBy(turns, ({ callId }) => callId)
  const violations: string[] = []
  for (const [callId, did] of done) {
    // Those that were found on a disk stand behind what was said later.
    const found = await listFoundTurns(sql, callId as CallId)
    const heard = inSpokenOrder(byCall.get(callId as CallId) ?? [], found).flatMap(({ text }) => doneOf(text))
    const counts = Map.groupBy(heard, (what) => what)
    for (const [what, times] of counts)
      if (times.length > 1) violations.push(`${tellOf(what)} of call ${callId} is written down ${times.length} times`)
    const keys = did.filter(isDigit)
    const told = heard.filter(isDigit)
    if (JSON.stringify(keys.filter((key) => counts.has(key))) !== JSON.stringify([...new Set(told)]))
      violations.push(`keys of call ${callId} were pressed as ${keys.join('')} and written down as ${told.join('')}`)
    // What its node had on its disk only is there to be read, and in no transcript.
    if (aside.some((line) => line.includes(callId))) continue
    did.forEach((what, at) => {
      const behind = did.slice(at + 1).filter((later) => typeof later === 'number' && counts.has(later))
      if (typeof what === 'string' && !counts.has(what) && behind.length >= saidBehind)
        violations.push(
          `${tellOf(what)} of call ${callId} was heard by nobody, and ${behind.join(', ')} behind it were`,
        )
    })
  }
  return violations
}

const isDigit = (what: Done): what is string => typeof what === 'string' && what.startsWith('[')
const tellOf = (what: Done): string => (typeof what === 'number' ? `utterance ${what}` : `the key ${what}`)

/** What a turn of a caller tells. */
function doneOf(text: string): Done[] {
  if (text.startsWith(lineWords)) return [Number(text.slice(lineWords.length))]
  const [, keys] = /^\[pressed (.+)\]$/.exec(text) ?? []
  return keys === undefined ? [text] : keys.split(' ').map((key) => `[${key}]`)
}

async function ofDeliveries(sql: Sql, taken: readonly Taken[]): Promise<string[]> {
  const rows = await sql<{ id: string; lane: string; status: string; eventType: string }[]>`
    select id, call_id || ' ' || subscription_id as lane, status, event_type from deliveries order by seq`
  const violations: string[] = []
  const arrived = new Map<string, number>()
  taken.forEach(({ eventId }, index) => arrived.set(eventId, arrived.get(eventId) ?? index))
  const lanes = Map.groupBy(rows, ({ lane }) => lane)
  for (const [lane, deliveries] of lanes) {
    let last = -1
    for (const { id, status, eventType } of deliveries) {
      const at = arrived.get(id)
      if (status === 'pending') violations.push(`${eventType} of ${lane} has no verdict`)
      if (status === 'delivered' && at === undefined)
        violations.push(`${eventType} of ${lane} counts as delivered and never arrived`)
      if (at === undefined) continue
      if (at < last) violations.push(`${eventType} of ${lane} arrived before what was announced before it`)
      last = Math.max(last, at)
    }
    if (
      deliveries.findIndex(({ eventType }) => eventType === 'call.ended') < deliveries.length - 1 &&
      deliveries.some(({ eventType }) => eventType === 'call.ended')
    )
      violations.push(`something was announced behind call.ended of ${lane}`)
  }
  const known = new Set(rows.map(({ id }) => id))
  for (const { eventId, type } of taken)
    if (!known.has(eventId)) violations.push(`${type} ${eventId} was told and is not in the database`)
  return violations
}
