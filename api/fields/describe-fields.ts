/** Owns how fields of the OpenAPI document come by what is told of them. */
import { callFields } from './call-fields.ts'
import type { FieldTable, FieldWords } from './field-words.ts'
import { sharedFields } from './shared-fields.ts'
import { signalingFields } from './signaling-fields.ts'
import { simulationFields } from './simulation-fields.ts'
import { trunkFields } from './trunk-fields.ts'
import { webhookFields } from './webhook-fields.ts'
import { workerFields } from './worker-fields.ts'

/** Of two with the same way the later one counts. */
const table: FieldTable = {
  ...webhookFields,
  ...trunkFields,
  ...workerFields,
  ...callFields,
  ...signalingFields,
  ...simulationFields,
  ...sharedFields,
}

type Schema = Described & {
  $ref?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
}

/** Everything in a schema; `path` is the way to it, from the name of a component on. What a schema tells of itself stays. */
export function describeFields(schema: Schema, path: readonly string[]): void {
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const way = [...path, name]
    const words = wordsOf(withoutPage(way))
    if (words !== null) describe(field, words, meaningOf(way))
    describeFields(field, way)
  }
  const parts = [schema.items, ...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]
  for (const part of parts) if (part) describeFields(part, path)
}

type Described = { description?: string; default?: unknown }
type Meaning = 'unset' | 'change' | 'override'

/** A change, and what is another for one call, leave alone what they do not name: nothing there has a default. */
function meaningOf([component = '', ...way]: readonly string[]): Meaning {
  const isSetting = way.length === 1 || (way.length === 2 && way[0] === 'config')
  if (!isSetting) return 'unset'
  if (component === 'WorkerRequestAnswer') return 'override'
  return component.endsWith('Change') ? 'change' : 'unset'
}

function describe(field: Described, words: FieldWords, meaning: Meaning): void {
  if (typeof words === 'string') {
    field.description ??= words
    return
  }
  const unset = 'default' in words ? JSON.stringify(words.default) : words.absent
  if (meaning !== 'unset') {
    const kept = meaning === 'change' ? `Absent: stays; null: ${unset}.` : 'Absent or null: stays.'
    field.description ??= `${words.is} ${kept}`
    return
  }
  field.description ??= `${words.is} ${'default' in words ? 'Default' : 'Absent'}: ${unset}.`
  if ('default' in words) field.default ??= words.default
}

/** What is listed is told as where it stands alone: `PersonPage.data.tags` as `Person.tags`. */
function withoutPage(way: readonly string[]): readonly string[] {
  const [page = '', list, ...inside] = way
  return page.endsWith('Page') && list === 'data' && inside.length > 0
    ? [page.slice(0, -'Page'.length), ...inside]
    : way
}

/** The longest way that ends here. */
function wordsOf(path: readonly string[]): FieldWords | null {
  for (let from = 0; from < path.length; from += 1) {
    const words = table[path.slice(from).join('.')]
    if (words !== undefined) return words
  }
  return null
}
