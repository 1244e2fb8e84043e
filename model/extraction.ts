/**
 * Owns the `Extractor` port: what reads a talk that is over and claims what it established. Claims prove nothing: whoever asked holds each of them
 * against the transcript and the worker's configuration. docs/design/extraction.md "What is believed"
 */
import { z } from 'zod'
import type { Speaker } from './call.ts'
import type { CallId } from './ids.ts'
import type { Json } from './json.ts'
import type { UsedUnits } from './usage.ts'
import type { Dimension, NextAction } from './worker.ts'

/** One turn of the transcript, by its place in it: the `turnIndex` of call.transcript. */
export type HeardTurn = { readonly turn: number; readonly role: Speaker; readonly text: string }

/** Words of one turn. */
export type Quote = { readonly turn: number; readonly quote: string }

/** `key` of a dimension; of the data of a next action, that of a property of it. */
export type Claim = Quote & { readonly key: string; readonly value: Json }

export type ClaimedAction = Quote & { readonly key: string; readonly data: readonly Claim[] }

export type Claims = {
  readonly values: readonly Claim[]
  /** `none`: no action of the worker applies. Null: it cannot be told. */
  readonly nextAction: ClaimedAction | 'none' | null
  /** One paragraph; null from who does not write any. */
  readonly summary: string | null
  /** Turns that were left out, because the talk was too long to be read whole. */
  readonly unread?: number
}

export type ExtractionQuestion = {
  readonly callId: CallId
  /** BCP 47. */
  readonly language: string
  /** Ms since the epoch. */
  readonly answeredAt: number
  /** What came with the call; names the time zone, where it does. */
  readonly context: string | null
  /** In their order. */
  readonly turns: readonly HeardTurn[]
  readonly dimensions: readonly Dimension[]
  readonly nextActions: readonly NextAction[]
  /** The call script that the worker has for the direction; null when it has none. */
  readonly script: string | null
}

/** The `embedded` one is always there and needs nothing from outside; `model` asks a language model. */
export type ExtractorName = 'embedded' | 'model'

export type TellUsed = (model: string, units: UsedUnits) => void

export type Extractor = {
  readonly name: ExtractorName
  /** Throws ExtractionError when there is no usable answer. `used`: told what an answer cost as its provider counts it, usable or not. */
  extract(question: ExtractionQuestion, used?: TellUsed): Promise<Claims>
  /** Ends what is under way. Idempotent. */
  close(): Promise<void>
}

/** Where a value was said. `engine`: the voice engine noted it while it talked. */
export const Evidence = z.object({
  turn: z.number().int().nonnegative().describe('Index in the transcript, from 0; the turnIndex of call.transcript.'),
  quote: z.string().describe('Words of that turn, as they stand in it.'),
  source: z
    .enum(['engine', 'model', 'embedded'])
    .describe('Who found it: engine noted it in the talk, model and embedded read the transcript afterwards.'),
})
export type Evidence = z.infer<typeof Evidence>

/** By the key of a dimension; `nextAction`, and `nextAction.<property>` for what stands in its data. */
export const EvidenceByKey = z.record(z.string(), Evidence)
export type EvidenceByKey = z.infer<typeof EvidenceByKey>

/** Its message is told to the account: it carries no key, and no words of the talk or of the extractor. */
export class ExtractionError extends Error {
  override readonly name = 'ExtractionError'
}
