/** Owns the two spellings of a name: fields of the API in camel case, arguments and answers of MCP in snake case. */
import { Problem } from '../model/problem.ts'

const snakeOf = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const camelOf = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Of its own fields; what is inside of them stays. */
export const snakeFields = (fields: object): Record<string, unknown> => renamed(fields, snakeOf)
export const camelFields = (fields: object): Record<string, unknown> => renamed(fields, camelOf)

const renamed = (fields: object, rename: (name: string) => string): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [rename(name), value]))

/** What stands inside of these is named by whoever sends it, or as the API has it. */
const asTheyAre: ReadonlySet<string> = new Set(['config', 'context', 'customer'])

/** `persons.0.externalId` reads `persons.0.external_id`. */
export function snakePath(path: string): string {
  const steps = path.split('.')
  const end = steps.findIndex((step) => asTheyAre.has(step))
  return steps.map((step, index) => (end >= 0 && index > end ? step : snakeOf(step))).join('.')
}

/** Names arguments where a Problem names fields of the API. */
export function namedInSnakeCase(error: unknown): unknown {
  if (!(error instanceof Problem)) return error
  const issues = error.issues?.map(({ path, message }) => ({ path: snakePath(path), message })) ?? null
  return new Problem(error.type, snakeWords(error.message), issues)
}

/** A sentence that names fields of the API. */
const snakeWords = (sentence: string): string =>
  sentence.replace(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g, (word) => snakeOf(word))
