/**
 * Owns lookups that share a query: those that are asked for in one turn of the event loop go to the database together, and each gets its own
 * answer. Nothing is kept. A query is sent only after everybody in it has asked, so nobody is told what was true before his question; and
 * no query waits for another one, so a slow one holds up its own members only. An error of the query is the answer to all of them.
 */

/** Null: there is no such thing. */
export type Lookup<Asked, Found> = (asked: Asked) => Promise<Found | null>

export type OneQueryOptions<Asked, Found> = {
  /** Asked for under one key are one question. */
  keyOf(asked: Asked): string
  /** Finds what there is of the questions, by their keys. */
  query(asked: readonly Asked[]): Promise<ReadonlyMap<string, Found>>
  /** Questions of one query at most; the next one begins another query, in the same turn. */
  readonly maxQuestions?: number
}

type Gathering<Asked, Found> = {
  readonly questions: Map<string, Asked>
  readonly answers: Promise<ReadonlyMap<string, Found>>
  send(): void
}

const defaultMaxQuestions = 100

export function createOneQuery<Asked, Found>(options: OneQueryOptions<Asked, Found>): Lookup<Asked, Found> {
  const { keyOf, query, maxQuestions = defaultMaxQuestions } = options
  let open: Gathering<Asked, Found> | null = null

  function begin(): Gathering<Asked, Found> {
    const questions = new Map<string, Asked>()
    const sent = Promise.withResolvers<void>()
    const gathering = {
      questions,
      answers: sent.promise.then(() => query([...questions.values()])),
      send: () => {
        if (open === gathering) open = null
        sent.resolve()
      },
    }
    // After everything that had already arrived in this turn was read.
    setImmediate(gathering.send)
    return gathering
  }

  return async (asked) => {
    const gathering = (open ??= begin())
    const key = keyOf(asked)
    gathering.questions.set(key, asked)
    if (gathering.questions.size >= maxQuestions) gathering.send()
    return (await gathering.answers).get(key) ?? null
  }
}
