/** Owns which next action a call ends with, and its data. Pure. docs/design/extraction.md "Next action". */
import type { Evidence, ExtractorName, HeardTurn, Quote } from '../../model/extraction.ts'
import { flawOf, isObject, type Json, type JsonObject } from '../../model/json.ts'
import type { NextAction } from '../../model/worker.ts'
import { argumentIssues } from '../tools/argument-schema.ts'
import type { NextActionTaken } from '../call/call-event.ts'
import { wholeOf } from './quotes.ts'
import type { Settled } from './reconcile.ts'
import type { Found, Verified } from './verify-claims.ts'

export type SettledAction = {
  /** Null: none applies, or the worker has none. */
  readonly action: NextActionTaken | null
  /** By `nextAction` and `nextAction.<property>`. */
  readonly evidence: Readonly<Record<string, Evidence>>
  /** The action has a schema that nothing of what was said fits. */
  readonly lacksData?: true
}

type Given = {
  readonly nextActions: readonly NextAction[]
  /** As the agent named it when it ended the talk. */
  readonly chosen: string | null
  readonly found: Verified['nextAction']
  readonly by: ExtractorName
  readonly turns: readonly HeardTurn[]
  readonly dimensions: ReadonlyMap<string, Settled>
}

/** What the agent chose counts, for it was told the caller; then what was found; else it is undetermined. */
export function settleNextAction(given: Given): SettledAction {
  const { nextActions, found, by } = given
  if (nextActions.length === 0) return { action: null, evidence: {} }
  const chosen = nextActions.find(({ key }) => key === given.chosen)
  if (chosen !== undefined) {
    const same = typeof found === 'object' && found?.key === chosen.key ? found : null
    const said = given.turns.at(-1)
    const words = same ?? (said === undefined ? null : wholeOf(said))
    return withData(given, chosen, words && evidenceOf(words, 'engine'), same?.data ?? new Map())
  }
  if (found === 'none') return { action: null, evidence: {} }
  if (found === null || found === 'undetermined') return undetermined
  const action = nextActions.find(({ key }) => key === found.key)
  return action === undefined ? undetermined : withData(given, action, evidenceOf(found, by), found.data)
}

const undetermined: SettledAction = { action: { key: 'undetermined', name: 'Undetermined' }, evidence: {} }

const evidenceOf = ({ turn, quote }: Quote, source: Evidence['source']): Evidence => ({ turn, quote, source })

function withData(
  { by, dimensions }: Given,
  { key, name, dataSchema }: NextAction,
  words: Evidence | null,
  found: ReadonlyMap<string, Found>,
): SettledAction {
  const plain = { action: { key, name }, evidence: words === null ? {} : { nextAction: words } }
  if (dataSchema === undefined) return plain
  const data = new Map([...valuesOfDimensions(dataSchema, dimensions), ...foundData(dataSchema, found, by)])
  const object: JsonObject = Object.fromEntries([...data].map(([property, { value }]) => [property, value]))
  if (flawOf(object) !== null || argumentIssues(dataSchema, object).length > 0) return { ...plain, lacksData: true }
  if (data.size === 0) return plain
  const said = [...data].map(([property, { evidence }]) => [`nextAction.${property}`, evidence] as const)
  return { action: { key, name, data: object }, evidence: { ...plain.evidence, ...Object.fromEntries(said) } }
}

/** A property that is called as a dimension has its value. */
function valuesOfDimensions(schema: JsonObject, dimensions: ReadonlyMap<string, Settled>): [string, Settled][] {
  return propertiesOf(schema).flatMap(([property]): [string, Settled][] => {
    const settled = dimensions.get(property) ?? dimensions.get(snakeOf(property))
    return settled === undefined ? [] : [[property, settled]]
  })
}

const snakeOf = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

function foundData(
  schema: JsonObject,
  found: ReadonlyMap<string, Found>,
  source: Evidence['source'],
): [string, Settled][] {
  return propertiesOf(schema).flatMap(([property, rule]): [string, Settled][] => {
    const said = found.get(property)
    return said === undefined
      ? []
      : [[property, { value: typed(rule, said.value), evidence: evidenceOf(said, source) }]]
  })
}

/** A model tells lists and objects as JSON text, and may tell numbers so. */
function typed(rule: Json, value: Json): Json {
  const type = isObject(rule) ? rule['type'] : undefined
  if (typeof value !== 'string' || type === undefined || type === 'string') return value
  if (Array.isArray(type) && type.includes('string')) return value
  try {
    return JSON.parse(value) as Json
  } catch {
    return value // The schema will say that it does not fit.
  }
}

function propertiesOf(schema: JsonObject): [string, Json][] {
  const properties = schema['properties'] ?? null
  return isObject(properties) ? Object.entries(properties) : []
}
