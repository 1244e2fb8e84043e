/** Owns the settings of what workers know: where vectors of texts come from, and how many of them are kept in memory. */
import { z } from 'zod'
import { ApiKey, HttpUrl, nothingWithout, optional, text, WrongSettings } from './setting.ts'

const wholeNumber = 'must be a whole number'

export const knowledgeSettings = z.object({
  EMBEDDINGS_URL: optional(HttpUrl),
  EMBEDDINGS_MODEL: optional(text.min(1)),
  EMBEDDINGS_KEY: optional(ApiKey),
  EMBEDDINGS_DIMENSIONS: optional(z.coerce.number().int(wholeNumber).min(1).max(8192)),
  KNOWLEDGE_MEMORY_MB: z.coerce.number().int(wholeNumber).min(1).max(100_000).default(128),
})

type Settings = z.infer<typeof knowledgeSettings>

export const knowledgeOf = (settings: Settings) => ({
  /** Null: the embedded ones. */
  embeddings: embeddingsOf(settings),
  /** Bytes. */
  knowledgeMemory: settings.KNOWLEDGE_MEMORY_MB * 1024 * 1024,
})

function embeddingsOf({ EMBEDDINGS_URL, EMBEDDINGS_MODEL, EMBEDDINGS_KEY, EMBEDDINGS_DIMENSIONS }: Settings) {
  if (EMBEDDINGS_URL === null)
    return nothingWithout('EMBEDDINGS_URL', { EMBEDDINGS_MODEL, EMBEDDINGS_KEY, EMBEDDINGS_DIMENSIONS })
  if (EMBEDDINGS_MODEL === null) throw new WrongSettings('EMBEDDINGS_URL needs EMBEDDINGS_MODEL as well')
  return { url: EMBEDDINGS_URL, model: EMBEDDINGS_MODEL, apiKey: EMBEDDINGS_KEY, dimensions: EMBEDDINGS_DIMENSIONS }
}
