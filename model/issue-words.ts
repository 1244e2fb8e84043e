/**
 * Owns the words for what is wrong with a value: each is said of the field in front of it ("phoneNumber is missing"), alike wherever values are
 * checked, whoever checks them.
 */

export const isMissing = 'is missing'
export const isUnknown = 'is not a known field'
export const isNotValid = 'is not valid'

const kinds: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  int: 'a whole number',
  boolean: 'a boolean',
  object: 'an object',
  record: 'an object',
  array: 'an array',
  null: 'null',
}

/** By the names of JSON Schema and of zod. */
export const mustBeOfType = (types: readonly string[]): string =>
  `must be ${types.map((type) => kinds[type] ?? type).join(' or ')}`

/** A long list helps nobody. */
const maxNamed = 40

export function mustBeOneOf(values: readonly unknown[]): string {
  const named = values.slice(0, maxNamed).map(nameOf).join(', ')
  if (values.length === 1) return `must be ${named}`
  return `must be one of ${named}${values.length > maxNamed ? ', …' : ''}`
}

const nameOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** What is counted of a string, a list and an object. */
const units: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: ['character', 'characters'],
  array: ['item', 'items'],
  object: ['field', 'fields'],
  record: ['field', 'fields'],
}

type Bound = { readonly isExclusive?: boolean }

export function mustHaveAtLeast(kind: string, bound: number, { isExclusive = false }: Bound = {}): string {
  const unit = units[kind]
  if (unit) return bound <= 1 ? 'must not be empty' : `must have ${bound} ${unit[1]} or more`
  return isExclusive ? `must be more than ${bound}` : `must be ${bound} or more`
}

export function mustHaveAtMost(kind: string, bound: number, { isExclusive = false }: Bound = {}): string {
  const unit = units[kind]
  if (unit) return `must have ${bound} ${unit[bound === 1 ? 0 : 1]} at most`
  return isExclusive ? `must be less than ${bound}` : `must be ${bound} or less`
}

const formats: Readonly<Record<string, string>> = {
  email: 'an e-mail address',
  url: 'a URL',
  uri: 'a URL',
  uuid: 'a UUID',
  datetime: 'a time in ISO 8601',
  'date-time': 'a time in ISO 8601',
  date: 'a day like 2026-12-01',
  time: 'a time of day like 09:30:00',
  ipv4: 'an IPv4 address',
  ipv6: 'an IPv6 address',
}

export const mustHaveFormat = (format: string): string => {
  const named = formats[format]
  return named === undefined ? 'is not of the form it must have' : `must be ${named}`
}
