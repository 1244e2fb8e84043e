/** Owns the route that searches what a worker knows, as its tool does in a call. docs/contract/rest.md "Documents". */
import { createRoute, z } from '@hono/zod-openapi'
import { defaultPassages, KnowledgePassage, KnowledgeRequest } from '../model/knowledge.ts'
import { findWorker } from '../store/workers.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, bodyOf, named, needs, security } from './openapi.ts'
import { readJson } from './read-json.ts'

const search = createRoute({
  security,
  tags: ['Documents'],
  middleware: [readJson],
  method: 'post',
  path: '/v1/accounts/{accountId}/workers/{workerId}/knowledge/search',
  operationId: 'searchKnowledge',
  ...needs('read'),
  summary: 'Search the documents of a worker',
  description:
    'The same search as the tool knowledge_base/search: by words and by vectors, in documents in use that are no call scripts.',
  request: {
    params: z.object({ accountId: z.string(), workerId: z.string() }),
    body: bodyOf(named('KnowledgeRequest', KnowledgeRequest), { query: 'When are you open?' }),
  },
  responses: answerOf(
    z.object({ passages: z.array(named('KnowledgePassage', KnowledgePassage)) }),
    'Passages, the best first; none where nothing answers.',
  ),
})

export function addKnowledgeRoutes(app: Api, { sql, knowledge }: ApiDeps): void {
  app.openapi(search, async (c) => {
    const accountId = c.get('accountId')
    const workerId = idOf<'worker'>(c.req.valid('param').workerId)
    const { query, limit = defaultPassages } = c.req.valid('json')
    const worker = existing(await findWorker(sql, accountId, workerId))
    const passages = await knowledge.search({ accountId, workerId: worker.id, query, limit }, c.req.raw.signal)
    return c.json({ passages }, 200)
  })
}
