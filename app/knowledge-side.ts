/** Owns the wiring of what workers know: the search of their documents, and the ingestion that makes documents searchable. */
import { createEndpointEmbedder } from '../actors/documents/endpoint-embedder.ts'
import { createIngestion, type Ingestion } from '../actors/documents/ingestion.ts'
import { lexicalEmbedder } from '../actors/documents/lexical-embedder.ts'
import { createTurns } from '../actors/tools/turns.ts'
import type { Knowledge } from '../model/knowledge.ts'
import type { ScriptCheck } from '../model/script-check.ts'
import { storeVectors } from '../store/database-vectors.ts'
import { createKnowledge } from '../store/knowledge.ts'
import type { Config } from './config.ts'
import type { Core } from './core.ts'
import { openScriptCheck } from './script-check.ts'

/** One over many documents takes a connection for a while; calls and REST have them together. */
const searchesOfAccount = 2
const never = new AbortController().signal

export type KnowledgeSide = {
  readonly knowledge: Knowledge
  start(): Promise<void>
}

export function openKnowledgeSide(core: Core, config: Config, closing: AsyncDisposableStack): KnowledgeSide {
  const embedder = config.embeddings === null ? lexicalEmbedder : createEndpointEmbedder(config.embeddings)
  let check: Promise<ScriptCheck> | null = null
  const { sql, vectorSchema = null } = core
  const checkScript = () => (check ??= openScriptCheck())
  const openIngestion = (): Ingestion => {
    const ingestion = createIngestion({
      ...core,
      embedder,
      checkScript,
      ...(vectorSchema !== null && { storeVectors: (revision) => storeVectors(sql, vectorSchema, revision) }),
    })
    closing.defer(() => ingestion.close())
    return ingestion
  }
  // Documents are read where other work that waits is done.
  const ingestion = config.roles.has('actors') ? openIngestion() : null
  const knowledge = createKnowledge({ ...core, embedder, maxBytes: config.knowledgeMemory })
  const takeTurn = createTurns(searchesOfAccount)
  return {
    knowledge: {
      ...knowledge,
      search: (query, signal = never) => takeTurn(query.accountId, signal, () => knowledge.search(query, signal)),
    },
    start: async () => ingestion?.start(),
  }
}
