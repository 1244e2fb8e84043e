/** Owns `knowledge_base`: a worker looks things up in its documents. docs/contract/tools.md "The set". */
import { z } from 'zod'
import { hasKnowledge, searchKnowledge } from '../../store/knowledge.ts'
import type { Sql } from '../../store/sql.ts'
import { createTurns } from './turns.ts'
import { defineTool, failure, success, type WorkerTool } from './worker-tool.ts'

const defaultPassages = 5
const maxPassages = 20
/** One over many large documents takes a connection for a second. */
const searchesOfAccount = 2

export function knowledgeBaseTools({ sql }: { readonly sql: Sql }): WorkerTool[] {
  const takeTurn = createTurns(searchesOfAccount)
  return [
    defineTool({
      provider: 'knowledge_base',
      name: 'search',
      description: 'Finds the passages of the documents of this worker that answer a question, the best first.',
      input: z.strictObject({
        query: z.string().min(1).max(1000).describe('What to look for: a question or a few words.'),
        limit: z.number().int().min(1).max(maxPassages).default(defaultPassages).describe('How many passages at most.'),
      }),
      async refusal({ accountId, worker }) {
        if (await hasKnowledge(sql, accountId, worker.id)) return null
        return failure('NOT_AVAILABLE', 'This worker has no documents to look things up in.')
      },
      async run({ accountId, worker, language }, { query, limit }, signal) {
        const words = [...new Set(query.match(/[\p{L}\p{N}\p{M}]+/gu))]
        const wanted = { accountId, workerId: worker.id, language, words, limit }
        const passages = await takeTurn(accountId, signal, () => searchKnowledge(sql, wanted, signal))
        return success({ passages })
      },
    }),
  ]
}
