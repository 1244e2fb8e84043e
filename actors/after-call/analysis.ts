/**
 * Owns what is made of a talk that is over: values of the worker's dimensions, each with the words that show it, the next action, a summary, and what
 * the account is told of all that could not be had. Pure but for what the extractors do.
 */
import type { CallWarning } from '../../model/call.ts'
import { dimensionValueOf } from '../../model/dimension-value.ts'
import type { Claims, EvidenceByKey, Extractor, ExtractionQuestion, TellUsed } from '../../model/extraction.ts'
import { storableText, type JsonObject } from '../../model/json.ts'
import type { Dimension } from '../../model/worker.ts'
import type { NotedValue } from '../../store/noted-values.ts'
import type { NextActionTaken } from '../call/call-event.ts'
import { settleNextAction } from './next-action.ts'
import { provenSummary } from './proven-summary.ts'
import { noteWithWords, reconcile, type Settled } from './reconcile.ts'
import { verifyClaims, type Found, type Verified } from './verify-claims.ts'

export type Extractors = {
  readonly embedded: Extractor
  /** Null: none is set up. */
  readonly model: Extractor | null
}

export type Analysis = {
  readonly dimensions: JsonObject
  readonly nextAction: NextActionTaken | null
  readonly evidence: EvidenceByKey
  readonly summary: string | null
  readonly warnings: readonly CallWarning[]
}

export type TalkOver = ExtractionQuestion & {
  /** What the engine noted, and the next action that it named. */
  readonly notes: ReadonlyMap<string, NotedValue>
  readonly chosen: string | null
}

const maxSummary = 2_000

/** Throws what the model's extractor throws. `used`: as an Extractor tells it. */
export async function analyse(talk: TalkOver, { embedded, model }: Extractors, used?: TellUsed): Promise<Analysis> {
  const plain = verifyClaims(talk, await embedded.extract(talk))
  if (model === null || talk.turns.length === 0) return settle(talk, plain, null)
  const claims = await model.extract(talk, used)
  return settle(talk, plain, { claims, verified: verifyClaims(talk, claims) })
}

/** What can be had without the model that was set up and gave no answer. */
export async function analyseWithout(talk: TalkOver, { embedded }: Extractors, reason: string): Promise<Analysis> {
  const analysis = settle(talk, verifyClaims(talk, await embedded.extract(talk)), null)
  const message = `The extractor gave no usable answer (${reason}). What is here was noted in the talk or stands in its words plainly; POST …/post-processing tries again.`
  return { ...analysis, warnings: [{ type: 'EXTRACTION_FAILED', message }, ...analysis.warnings] }
}

type ModelSaid = { readonly claims: Claims; readonly verified: Verified }

function settle(talk: TalkOver, plain: Verified, said: ModelSaid | null): Analysis {
  const by = said === null ? 'embedded' : 'model'
  const { values, nextAction: found, dropped } = said?.verified ?? plain
  const unfit: string[] = []
  const settled = talk.dimensions.flatMap((dimension): [string, Settled][] => {
    const { key } = dimension
    const noted = notedValueOf(talk, dimension, [said?.verified.values.get(key), plain.values.get(key)])
    if (noted === 'unfit') unfit.push(key)
    const value = reconcile(noted === 'unfit' ? null : noted, values.get(key) ?? null, by)
    return value === null ? [] : [[key, value]]
  })
  const { nextActions, chosen, turns } = talk
  const action = settleNextAction({ nextActions, chosen, found, by, turns, dimensions: new Map(settled) })
  const droppedAll =
    said === null ? { unknown: [], unquoted: [], unfit } : { ...dropped, unfit: [...dropped.unfit, ...unfit] }
  const told = [...settled.map(([, { value }]) => value), action.action?.name ?? null, action.action?.data ?? null]
  const paragraph = said === null ? null : paragraphOf(said.claims.summary)
  const { summary, dropped: sentences } =
    paragraph === null ? { summary: null, dropped: 0 } : provenSummary(paragraph, talk, told)
  return {
    dimensions: Object.fromEntries(settled.map(([key, { value }]) => [key, value])),
    nextAction: action.action,
    evidence: {
      ...Object.fromEntries(settled.map(([key, { evidence }]) => [key, evidence])),
      ...action.evidence,
    },
    summary,
    warnings: [
      ...incompleteOf(droppedAll, { turns: said?.claims.unread ?? 0, sentences }),
      ...(action.lacksData ? [withoutData(action.action?.key ?? '')] : []),
    ],
  }
}

/** Null: nothing was noted, or nobody said anything. */
function notedValueOf(
  { notes, turns }: TalkOver,
  dimension: Dimension,
  extracted: readonly (Found | undefined)[],
): Found | 'unfit' | null {
  const noted = notes.get(dimension.key)
  if (noted === undefined || noted.value === null) return null
  const value = dimensionValueOf(dimension, noted.value)
  return value === null ? 'unfit' : noteWithWords({ ...noted, value }, turns, extracted)
}

function paragraphOf(summary: string | null): string | null {
  const text = storableText((summary ?? '').replaceAll('\0', ' ').replaceAll(/\s+/g, ' ').trim(), maxSummary)
  return text === '' ? null : text
}

function incompleteOf(
  { unknown, unquoted, unfit }: Verified['dropped'],
  leftOut: { readonly turns: number; readonly sentences: number },
): CallWarning[] {
  const parts = [
    ...(unknown.length > 0 ? [`keys that the worker has not got: ${unknown.join(', ')}`] : []),
    ...(unquoted.length > 0 ? [`not shown by words of the transcript: ${unquoted.join(', ')}`] : []),
    ...(unfit.length > 0 ? [`not of the type of their dimension: ${unfit.join(', ')}`] : []),
  ]
  const left = [
    ...(leftOut.sentences > 0
      ? [`Of the summary ${leftOut.sentences} sentences were left out: they have numbers or names that nobody said.`]
      : []),
    ...(leftOut.turns > 0
      ? [`The talk was too long for the extractor: ${leftOut.turns} turns of its middle were not read.`]
      : []),
  ]
  const dropped = parts.length > 0 ? [`Values were dropped (${parts.join('; ')}).`] : []
  if (left.length + dropped.length === 0) return []
  return [{ type: 'EXTRACTION_INCOMPLETE', message: [...dropped, ...left].join(' ') }]
}

const withoutData = (key: string): CallWarning => ({
  type: 'NEXT_ACTION_INCOMPLETE',
  message: `What was said does not give the data that the schema of the next action ${key} asks for.`,
})
