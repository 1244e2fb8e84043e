/** Owns `knowledge_base`: a worker looks things up in its documents. docs/contract/tools.md "The set". */
import { z } from 'zod'
import { defaultPassages, maxPassages, type Knowledge } from '../../model/knowledge.ts'
import { defineTool, failure, success, type WorkerTool } from './worker-tool.ts'

export function knowledgeBaseTools({ knowledge }: { readonly knowledge: Knowledge }): WorkerTool[] {
  return [
    defineTool({
      provider: 'knowledge_base',
      name: 'search',
      description:
        'Finds the passages of the documents of this worker that answer a question, word for word, with the title of their document; the best first.',
      input: z.strictObject({
        query: z.string().min(1).max(1000).describe('What to look for: a question or a few words.'),
        limit: z.number().int().min(1).max(maxPassages).default(defaultPassages).describe('How many passages at most.'),
      }),
      async refusal({ hasDocuments }) {
        if (hasDocuments) return null
        return failure('NOT_AVAILABLE', 'This worker has no documents to look things up in.')
      },
      async run({ accountId, worker }, { query, limit }, signal) {
        const passages = await knowledge.search({ accountId, workerId: worker.id, query, limit }, signal)
        return success({ passages })
      },
    }),
  ]
}
