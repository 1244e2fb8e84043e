/** Owns the placeholders of scripts: `{{customer.firstName}}`, `{{context.order.number}}`, `{{sip.headers.X-Order}}`, `{{drink}}`. What is not known is left out. */
import type { Json } from '../../model/json.ts'
import type { SipFacts } from '../../model/sip-facts.ts'
import type { EngineConfig } from '../../model/voice-engine.ts'

export type Values = Readonly<Record<string, Json>>

const maxValue = 300

export function fillIn(text: string, values: Values): string {
  if (!text.includes('{{')) return text
  return text
    .replace(/\{\{\s*([\w.-]{1,200})\s*\}\}/g, (_, path: string) => spoken(valueAt(values, path)))
    .replace(/\s+/g, ' ')
    .replace(/ ([.,;:!?])/g, '$1')
    .trim()
}

/** Context is free text; where it is a JSON object its members have names. */
export function contextOf(context: string | null): Json {
  if (context === null || !context.trimStart().startsWith('{')) return context
  try {
    return JSON.parse(context) as Json
  } catch {
    return context // Text that only looks like JSON is text.
  }
}

/** What a call knows before anybody has spoken. */
export const valuesOf = ({
  customer,
  caller = null,
  context,
  sip = null,
}: Pick<EngineConfig, 'customer' | 'caller' | 'context' | 'sip'>): Values => ({
  customer: customer === null ? null : (Object.fromEntries(Object.entries(customer)) as Values),
  context: contextOf(context),
  sip: sip || caller ? { ...(sip && sipValuesOf(sip)), ...(caller && { identity: caller }) } : null,
})

const sipValuesOf = (sip: SipFacts): Values =>
  Object.fromEntries(Object.entries({ ...sip, headers: inAnyCase(sip.headers) })) as Values

/** Carriers change the case of header names on the way: each is known in lower case too. */
const inAnyCase = (headers: Readonly<Record<string, string>>): Values => ({
  ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  ...headers,
})

/** Null for what is not known. */
export function valueAt(values: Values, path: string): Json {
  let at: Json = values
  for (const name of path.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return null
    at = (at as Values)[name] ?? null
  }
  return at
}

/** Empty for lists and objects: nobody can say those. */
export function spoken(value: Json): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'string' || typeof value === 'number') return String(value).slice(0, maxValue)
  return ''
}
