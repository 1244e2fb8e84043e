/** Owns what is wrong with a value, field by field, in the words of this service. Whose validator found it, nobody sees. */
import type { z } from 'zod'
import {
  isMissing,
  isNotValid,
  isUnknown,
  mustBeOfType,
  mustBeOneOf,
  mustHaveAtLeast,
  mustHaveAtMost,
  mustHaveFormat,
} from './issue-words.ts'
import type { Issue } from './problem.ts'

type Found = z.core.$ZodIssue
type Path = readonly PropertyKey[]

/**
 * `['data', 0, 'name']` reads `data.0.name`; the whole body reads as the empty path. Each unknown key is an issue with its own path. `given` is what was
 * checked: what is not there is told otherwise than what is wrong.
 */
export function issuesOf(error: z.ZodError, given: unknown): Issue[] {
  return error.issues.flatMap((issue) => issuesOfFound(issue, given))
}

function issuesOfFound(issue: Found, given: unknown): Issue[] {
  const path = issue.path.map(String)
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ path: [...path, key].join('.'), message: isUnknown }))
  return [{ path: path.join('.'), message: wordsOf(issue, given) }]
}

function wordsOf(issue: Found, given: unknown): string {
  if (issue.code !== 'custom' && isAbsent(given, issue.path)) return isMissing
  switch (issue.code) {
    case 'invalid_type':
      return mustBeOfType([issue.expected])
    case 'invalid_value':
      return mustBeOneOf(issue.values)
    case 'too_small':
      return mustHaveAtLeast(issue.origin, Number(issue.minimum), { isExclusive: issue.inclusive === false })
    case 'too_big':
      return mustHaveAtMost(issue.origin, Number(issue.maximum), { isExclusive: issue.inclusive === false })
    case 'invalid_format':
      return ownWordsOf(issue) ?? mustHaveFormat(issue.format)
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'invalid_key':
    case 'invalid_element':
      return issue.issues[0] ? wordsOf({ ...issue.issues[0], path: issue.path }, given) : isNotValid
    case 'invalid_union':
      return wordsOfUnion(issue, given)
    case 'unrecognized_keys':
      return isUnknown
    case 'custom':
      return ownWordsOf(issue) ?? isNotValid
  }
}

/** Of a schema that has some: ours begin in lower case, for they follow the name of a field. The validator's begin with a capital. */
const ownWordsOf = ({ message }: Found): string | null => (/^[A-Z]/.test(message) ? null : message)

type Union = Extract<Found, { code: 'invalid_union' }>

/** Of several forms the one that came nearest: where a setting may be empty too, that is the other one. */
function wordsOfUnion(issue: Union, given: unknown): string {
  if ('options' in issue && Array.isArray(issue.options) && issue.options.length > 0) return mustBeOneOf(issue.options)
  const forms = issue.errors.filter(([first]) => first !== undefined && !isEmptyText(first))
  const words = forms.map(([first]) => wordsOf({ ...(first as Found), path: issue.path }, given))
  return words.length === 0 ? isNotValid : [...new Set(words)].join(', or ')
}

const isEmptyText = (issue: Found): boolean =>
  issue.code === 'invalid_value' && issue.values.every((value) => value === '')

/** A field that is null is one that is not there: clients that fill in forms send it so. Of a list each place is there. */
function isAbsent(given: unknown, path: Path): boolean {
  const found = path.reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[step] : undefined,
    given,
  )
  return found === undefined || (found === null && typeof path.at(-1) === 'string')
}
