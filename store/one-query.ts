/**
 * Owns lookups that share a query: those that are asked for in one turn of the event loop go to the database together, and each gets its own
 * answer. Nothing is kept. A query is sent only after everybody in it has asked, so nobody is told what was true before his question; and
 * no query waits for another one, so a slow one holds up its own members only. A connection that was lost under a query, or a member that it cannot
 * be asked with, is nothing to the others (settle-group.ts); a database that is away is the answer to all of them.
 */
import type { Clock } from '../model/clock.ts'
import { retry, waitsOf } from '../model/retry.ts'
import { isFinal, isOfOneMember } from './database-unreachable.ts'
import { halves, overAnyConnection, settleGroup, type Member } from './settle-group.ts'

/** Null: there is no such thing. */
export type Lookup<Asked, Found> = (asked: Asked) => Promise<Found | null>

export type OneQueryOptions<Asked, Found> = {
  /** Asked for under one key are one question. */
  keyOf(asked: Asked): string
  /** Finds what there is of the questions, by their keys. */
  query(asked: readonly Asked[]): Promise<ReadonlyMap<string, Found>>
  /** Questions of one query at most; the next one begins another query, in the same turn. */
  readonly maxQuestions?: number
  /** For who would rather wait: a database that is away for a moment is asked again, 2.6 s long. */
  readonly clock?: Pick<Clock, 'after'>
}

type Gathering<Asked, Found> = {
  readonly members: Map<string, Member<Asked, Found | null>>
  send(): void
}

const defaultMaxQuestions = 100
const delays = [20, 100, 500, 2_000]

/** One that gave no answer in time has had its time. */
const passesSoon = (error: unknown): boolean => !isOfOneMember(error) && !isFinal(error)

export function createOneQuery<Asked, Found>(options: OneQueryOptions<Asked, Found>): Lookup<Asked, Found> {
  const { keyOf, query, maxQuestions = defaultMaxQuestions, clock } = options
  let open: Gathering<Asked, Found> | null = null

  const find = overAnyConnection(async (questions: readonly Asked[]): Promise<(Found | null)[]> => {
    const found = await query(questions)
    return questions.map((asked) => found.get(keyOf(asked)) ?? null)
  })
  const patient = clock && { clock, wait: waitsOf(delays, passesSoon) }
  const work = patient ? (questions: readonly Asked[]) => retry(patient, () => find(questions)) : find

  function begin(): Gathering<Asked, Found> {
    const members: Gathering<Asked, Found>['members'] = new Map()
    const gathering = {
      members,
      send: () => {
        if (open !== gathering) return
        open = null
        void settleGroup([...members.values()], work, halves)
      },
    }
    // After everything that had already arrived in this turn was read.
    setImmediate(gathering.send)
    return gathering
  }

  return async (asked) => {
    const { members, send } = (open ??= begin())
    const key = keyOf(asked)
    const member = members.get(key) ?? { asked, done: Promise.withResolvers<Found | null>() }
    members.set(key, member)
    if (members.size >= maxQuestions) send()
    return member.done.promise
  }
}
