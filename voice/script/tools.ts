/** Owns how a call script calls the call's tools: which tool a name means, its arguments, and the questions for those that are missing. */
import type { Json, JsonObject } from '../../model/json.ts'
import type { EngineTool } from '../../model/voice-engine.ts'
import { toolName } from './lines.ts'
import { maxDigits, maxNumber, usualOf, yesNo } from './questions.ts'
import type { ArgumentValue, Ask, AskedSlot, Options, Placed, Step, ToolArgument, ToolStep } from './steps.ts'
import { plain } from './text.ts'
import type { Vocabulary } from './vocabulary.ts'

type Complain = (message: string) => void
type Reading = { readonly options: Options; readonly complain: Complain; readonly warn: Complain }

export const transferTool = 'call__transfer'
const knowledgeTool = 'knowledge_base__search'

const maxArguments = 40
const maxEnum = 40
const maxDescription = 300

/**
 * By its whole name, by the one its owner gave it, or by the last part of the first: `search` or `knowledge_base.search` for
 * `knowledge_base__search`.
 */
export function toolNamed(tools: readonly EngineTool[], written: string): EngineTool | null {
  const name = written.replaceAll('.', '__')
  return (
    tools.find((tool) => tool.name === name) ??
    tools.find(({ givenName }) => givenName !== undefined && oneSpaced(givenName) === written) ??
    tools.find((tool) => tool.name.endsWith(`__${name}`)) ??
    null
  )
}

/** As lines of a script are read. */
const oneSpaced = (text: string): string => text.trim().replace(/\s+/g, ' ')

export const knowledgeToolOf = (tools: readonly EngineTool[]): string | null =>
  tools.find((tool) => tool.name === knowledgeTool)?.name ?? null

const written = new RegExp(String.raw`^\s+(${toolName})\s*(.*)$`, 's')

export function toolOf(placed: Placed, rest: string, reading: Reading): ToolStep | null {
  const [, quoted = '', after = ''] = written.exec(rest) ?? []
  const name = quoted.replace(/^["“]|["”]$/g, '')
  const { inside, outside } = parenthesesOf(after)
  const tail = outside === null ? null : /^\s*(?:into\s+(\w+))?\s*(?::\s*(.*))?$/s.exec(outside)
  if (tail === null) {
    reading.complain('a tool is called: tool <name> (argument: {{key}}, other: "text") into <key>: One moment.')
    return null
  }
  const into = tail[1] ?? null
  if (into !== null && !/^[a-z][a-z0-9_]{0,63}$/.test(into))
    reading.complain(`the key "${into}" must be lower-case letters, digits and _, starting with a letter`)
  const given = givenOf(inside, reading.complain)
  const tool = toolNamed(reading.options.tools ?? [], name)
  if (tool === null) reading.warn(`there is no tool "${name}"`)
  const step = { tool: tool?.name ?? null, arguments: argumentsOf(tool, given, placed.line, reading) }
  return { ...placed, kind: 'tool', purpose: 'tool', text: plain(tail[2] ?? ''), into, handlesErrors: false, ...step }
}

export function transferOf(placed: Placed, rest: string, reading: Reading): ToolStep | null {
  const [, target = '', text = ''] = /^\s*([^:]*?)\s*:\s*(.*)$/s.exec(rest) ?? []
  if (target === '') {
    reading.complain('a transfer reads: transfer <contact or number>: I put you through.')
    return null
  }
  const { tools } = reading.options
  if (toolNamed(tools ?? [], transferTool) === null) reading.warn('there is no tool to transfer a call with')
  return transferTo(placed, target, plain(text), tools ?? [])
}

export const transferTo = (placed: Placed, to: string, text: string, tools: readonly EngineTool[]): ToolStep => ({
  ...placed,
  kind: 'tool',
  purpose: 'transfer',
  text,
  tool: toolNamed(tools, transferTool)?.name ?? null,
  arguments: [{ name: 'to', type: 'string', value: { text: to }, isRequired: false, ask: null }],
  into: null,
  handlesErrors: false,
})

/** Marks the calls whose failure a condition asks for. */
export function withHandledErrors(steps: readonly Step[], all: readonly Step[]): Step[] {
  const handled = new Set(all.flatMap(({ when }) => (when?.is === 'error' ? [when.key] : [])))
  return steps.map((step) =>
    step.kind === 'tool' && step.into !== null && handled.has(step.into) ? { ...step, handlesErrors: true } : step,
  )
}

/** Quotes may hold parentheses. `outside` is null when they are not closed. */
function parenthesesOf(text: string): { readonly inside: string; readonly outside: string | null } {
  if (!text.startsWith('(')) return { inside: '', outside: text }
  const end = split(text.slice(1), ')')[0]?.length ?? 0
  const isClosed = end + 1 < text.length
  return { inside: text.slice(1, end + 1), outside: isClosed ? text.slice(end + 2) : null }
}

/** At the separators that stand outside of quotes and placeholders. */
function split(text: string, separator: string): string[] {
  const parts: string[] = []
  let from = 0
  let closing = ''
  for (let at = 0; at < text.length; at++) {
    if (closing !== '') closing = text.startsWith(closing, at) ? '' : closing
    else if (text[at] === separator) {
      parts.push(text.slice(from, at))
      from = at + 1
    } else closing = text.startsWith('{{', at) ? '}}' : (quotes[text[at] ?? ''] ?? '')
  }
  return [...parts, text.slice(from)]
}

const quotes: Readonly<Record<string, string>> = { '"': '"', '“': '”' }

function givenOf(written: string, complain: Complain): ReadonlyMap<string, ArgumentValue> {
  const given = new Map<string, ArgumentValue>()
  if (written.trim() === '') return given
  for (const part of split(written, ',')) {
    const [, name, value] = /^\s*([A-Za-z_][\w-]{0,63})\s*:\s*(.+?)\s*$/s.exec(part) ?? []
    if (name === undefined || value === undefined)
      complain(`"${part.trim()}" is no argument: write name: {{key}} or name: "text"`)
    else if (given.has(name)) complain(`the argument "${name}" is given twice`)
    else given.set(name, argumentValueOf(value))
  }
  if (given.size > maxArguments) complain(`more than ${maxArguments} arguments`)
  return given
}

function argumentValueOf(written: string): ArgumentValue {
  const path = /^\{\{\s*([\w.-]{1,200})\s*\}\}$/.exec(written)?.[1]
  if (path !== undefined) return { path }
  const quoted = /^["“](.*)["”]$/s.exec(written)?.[1]
  if (quoted !== undefined) return { text: quoted }
  if (written === 'true' || written === 'false') return { literal: written === 'true' }
  return /^-?\d{1,15}(\.\d{1,15})?$/.test(written) ? { literal: Number(written) } : { text: written }
}

/** Those that are written, and the required ones that are not. */
function argumentsOf(
  tool: EngineTool | null,
  given: ReadonlyMap<string, ArgumentValue>,
  line: number,
  { options, warn }: Reading,
): ToolArgument[] {
  const { properties = {}, required = [] } = tool?.inputSchema ?? {}
  const names = new Set([...given.keys(), ...required])
  return [...names].map((name): ToolArgument => {
    const schema = objectOf(Object.hasOwn(properties, name) ? properties[name] : undefined)
    if (tool !== null && schema === null) warn(`the tool "${tool.name}" has no argument "${name}"`)
    const isRequired = required.includes(name)
    const type = typeOf(schema ?? {})
    const ask = isRequired ? askFor(name, schema ?? {}, line, options.vocabulary) : null
    if (isRequired && ask === null && !given.has(name))
      warn(`"${name}" of the tool "${tool?.name}" cannot be asked for: write ${name}: {{key}} or ${name}: "text"`)
    return { name, type, value: given.get(name) ?? null, isRequired, ask }
  })
}

/** Null for what cannot be asked in one question: lists, objects and things of any type. */
function askFor(name: string, schema: JsonObject, line: number, vocabulary: Vocabulary): Ask | null {
  const slot = slotOfSchema(schema, vocabulary)
  if (slot === null || !/^[A-Za-z_][\w-]{0,63}$/.test(name)) return null
  return { kind: 'ask', line, when: null, key: name, text: questionOf(name, schema), slot, ...usualOf(slot) }
}

function slotOfSchema(schema: JsonObject, vocabulary: Vocabulary): AskedSlot | null {
  const type = typeOf(schema)
  if (type === 'boolean') return { kind: 'choices', choices: yesNo }
  if (type === 'integer' || type === 'number') return numberOfSchema(schema)
  const choices = enumOf(schema['enum'], vocabulary)
  return choices ?? (type === 'string' ? stringSlotOf(schema) : null)
}

/** The one type, or the one that is not null. */
function typeOf({ type }: JsonObject): string | null {
  const types = Array.isArray(type) ? (type as readonly Json[]).filter((one) => one !== 'null') : [type]
  return types.length === 1 && typeof types[0] === 'string' ? types[0] : null
}

/** Null where none of the numbers that fit can be said. */
function numberOfSchema({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonObject): AskedSlot | null {
  const above = typeof exclusiveMinimum === 'number' ? Math.floor(exclusiveMinimum) + 1 : 0
  const below = typeof exclusiveMaximum === 'number' ? Math.ceil(exclusiveMaximum) - 1 : maxNumber
  const min = Math.max(0, above, typeof minimum === 'number' ? Math.ceil(minimum) : 0)
  const max = Math.min(maxNumber, below, typeof maximum === 'number' ? Math.floor(maximum) : maxNumber)
  return min <= max ? { kind: 'number', min, max } : null
}

function stringSlotOf({ format, pattern }: JsonObject): AskedSlot {
  if (format === 'date' || format === 'time') return { kind: format }
  const digits = /^\^(?:\\d|\[0-9\])(?:\{(\d{1,2})(?:,(\d{1,2}))?\}|\+)\$$/.exec(
    typeof pattern === 'string' ? pattern : '',
  )
  if (digits === null) return { kind: 'free' }
  const min = Number(digits[1] ?? 1)
  const max = Number(digits[2] ?? digits[1] ?? maxDigits)
  return min >= 1 && max <= maxDigits && min <= max ? { kind: 'digits', min, max } : { kind: 'free' }
}

/** The values, said as they are written; null when there is one that nobody can recognise. */
function enumOf(values: Json | undefined, vocabulary: Vocabulary): AskedSlot | null {
  if (!Array.isArray(values) || values.length === 0 || values.length > maxEnum) return null
  const choices = (values as readonly Json[]).map((value) => {
    const name = typeof value === 'string' ? value.replace(/[_-]+/g, ' ').trim() : ''
    return { value: typeof value === 'string' ? value : '', name, phrases: [name] }
  })
  const isSpeakable = choices.every(({ name }) => {
    const words = vocabulary.wordsOf(name)
    return words.length > 0 && words.every((word) => vocabulary.has(word))
  })
  return isSpeakable ? { kind: 'choices', choices } : null
}

function questionOf(name: string, { description }: JsonObject): string {
  const text = typeof description === 'string' ? plain(description).slice(0, maxDescription) : ''
  if (text.endsWith('?')) return text
  const spokenName = name.replace(/([a-z])([A-Z])/g, '$1 $2').replace(/[_-]+/g, ' ')
  const asked = `What is the ${spokenName.trim().toLowerCase()}?`
  return text === '' ? asked : `${asked} ${text.replace(/[.:]?$/, '.')}`
}

const objectOf = (value: Json | undefined): JsonObject | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null
