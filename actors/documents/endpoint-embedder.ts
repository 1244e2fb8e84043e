/** Owns vectors from a server that speaks the embeddings endpoint of OpenAI, a local one too (Ollama, vLLM, llama.cpp, text-embeddings-inference). */
import { fetch } from 'undici'
import { z } from 'zod'
import { toVector, type Embedder, type Vector } from '../../model/knowledge.ts'

export type EndpointSettings = {
  /** Without `/embeddings`. */
  readonly url: string
  readonly model: string
  readonly apiKey: string | null
  /** Null: the model's own. */
  readonly dimensions: number | null
}

const Answer = z.object({
  data: z.array(
    z.object({ index: z.number().int().min(0).optional(), embedding: z.array(z.number()).min(1).max(16_384) }),
  ),
})

/** Texts that one request carries. */
const atOnce = 64
/** Ms. A question is asked while a caller waits. */
const answerWithin = 30_000
const questionWithin = 2_000
/** Unrelated texts are nearer to each other than this in no model that is known for it. */
const floor = 0.2
/** Of a text; models have a bound of about as many tokens. */
const maxText = 4_000

export function createEndpointEmbedder(settings: EndpointSettings): Embedder {
  const { url, model, dimensions } = settings
  const ask = async (texts: readonly string[], signal: AbortSignal): Promise<Vector[]> => {
    const { apiKey } = settings
    const response = await fetch(`${url}/embeddings`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(apiKey !== null && { authorization: `Bearer ${apiKey}` }) },
      body: JSON.stringify({ model, input: texts.map(asInput), ...(dimensions !== null && { dimensions }) }),
      signal,
      redirect: 'error',
    })
    if (!response.ok) {
      await response.body?.cancel()
      throw new Error(`the embeddings endpoint answered ${response.status}`)
    }
    return vectorsOf(await response.json(), texts.length, dimensions)
  }
  return {
    name: `${model}/${dimensions ?? 'own'}`,
    floor,
    isLocal: false,
    async embed(texts, signal) {
      const vectors: Vector[] = []
      for (let at = 0; at < texts.length; at += atOnce) {
        const timeout = AbortSignal.timeout(texts.length === 1 ? questionWithin : answerWithin)
        vectors.push(
          ...(await ask(texts.slice(at, at + atOnce), signal ? AbortSignal.any([timeout, signal]) : timeout)),
        )
      }
      return vectors
    },
  }
}

/** An empty text is refused by some. */
const asInput = (text: string): string => text.slice(0, maxText).toWellFormed().trim() || '-'

function vectorsOf(given: unknown, count: number, dimensions: number | null): Vector[] {
  const { data } = Answer.parse(given)
  const ordered = data
    .map((entry, at) => ({ at: entry.index ?? at, embedding: entry.embedding }))
    .toSorted((one, other) => one.at - other.at)
  const parts = dimensions ?? ordered[0]?.embedding.length ?? 0
  const isWhole =
    ordered.length === count && ordered.every(({ at, embedding }, place) => at === place && embedding.length === parts)
  if (!isWhole) throw new Error('the embeddings endpoint answered other vectors than it was asked for')
  return ordered.map(({ embedding }) => toVector(embedding))
}
