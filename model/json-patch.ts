/**
 * Owns the difference of two JSON values as a JSON Patch (RFC 6902), and applying one. Of its operations `add`, `remove` and `replace` are used. A patch
 * and not a merge patch (RFC 7396): that one tells null from absent nowhere, and of a list from which the oldest goes it tells all of it. Pure.
 */
import type { Json, JsonObject } from './json.ts'

/** `path` is a JSON Pointer, RFC 6901. */
export type JsonPatchStep =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: Json }
  | { readonly op: 'remove'; readonly path: string }
export type JsonPatch = readonly JsonPatchStep[]

/** Pairs of entries of two lists that are compared; of longer ones the entries with the same place are. */
const maxPairs = 250_000

/** Applied to `before` in their order they give `after`. Empty: the two are equal. */
export function patchOf(before: Json, after: Json): JsonPatch {
  const steps: JsonPatchStep[] = []
  difference(before, after, '', steps)
  return steps
}

/** A step that does not fit is left out, as in a log that was blanked. Nothing that is given is changed. */
export const patched = (json: Json, patch: JsonPatch): Json =>
  patch.reduce<Json>((value, step) => changed(value, keysOf(step.path), step), json)

function difference(before: Json, after: Json, path: string, steps: JsonPatchStep[]): void {
  if (isList(before) && isList(after)) return listDifference(before, after, path, steps)
  if (!isObject(before) || !isObject(after)) {
    if (textOf(before) !== textOf(after)) steps.push({ op: 'replace', path, value: after })
    return
  }
  for (const key of Object.keys(before))
    if (!Object.hasOwn(after, key)) steps.push({ op: 'remove', path: `${path}/${tokenOf(key)}` })
  for (const [key, value] of Object.entries(after)) {
    const at = `${path}/${tokenOf(key)}`
    if (Object.hasOwn(before, key)) difference(before[key] as Json, value, at, steps)
    else steps.push({ op: 'add', path: at, value })
  }
}

/** Between entries that both have, entries with the same place are told by their difference; what is left is removed or added. */
function listDifference(before: readonly Json[], after: readonly Json[], path: string, steps: JsonPatchStep[]): void {
  let [from, to] = [0, 0]
  for (const [left, right] of [
    ...commonOf(before.map(textOf), after.map(textOf)),
    [before.length, after.length],
  ] as const) {
    for (; from < left && to < right; from++, to++)
      difference(before[from] as Json, after[to] as Json, `${path}/${to}`, steps)
    for (; from < left; from++) steps.push({ op: 'remove', path: `${path}/${to}` })
    for (; to < right; to++) steps.push({ op: 'add', path: `${path}/${to}`, value: after[to] as Json })
    ;[from, to] = [left + 1, right + 1]
  }
}

/** The places of a longest common subsequence, in both. */
function commonOf(before: readonly string[], after: readonly string[]): [number, number][] {
  let head = 0
  while (head < Math.min(before.length, after.length) && before[head] === after[head]) head++
  let tail = 0
  const most = Math.min(before.length, after.length) - head
  while (tail < most && before.at(-1 - tail) === after.at(-1 - tail)) tail++
  const [rows, columns] = [before.length - head - tail, after.length - head - tail]
  const pairs = Array.from({ length: head }, (_, at): [number, number] => [at, at])
  if (rows * columns <= maxPairs) {
    const lengths = lengthsOf(before.slice(head, head + rows), after.slice(head, head + columns))
    for (let [row, column] = [0, 0]; row < rows && column < columns;) {
      const isSame = before[head + row] === after[head + column]
      if (isSame) pairs.push([head + row++, head + column++])
      else if (lengths[row + 1]![column]! >= lengths[row]![column + 1]!) row++
      else column++
    }
  }
  for (let at = tail; at > 0; at--) pairs.push([before.length - at, after.length - at])
  return pairs
}

/** How long the longest common subsequence is of what begins at each pair of places. */
function lengthsOf(before: readonly string[], after: readonly string[]): readonly Uint32Array[] {
  const lengths = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1))
  for (let row = before.length - 1; row >= 0; row--)
    for (let column = after.length - 1; column >= 0; column--)
      lengths[row]![column] =
        before[row] === after[column]
          ? lengths[row + 1]![column + 1]! + 1
          : Math.max(lengths[row + 1]![column]!, lengths[row]![column + 1]!)
  return lengths
}

function changed(value: Json, [key, ...inner]: readonly string[], step: JsonPatchStep): Json {
  if (key === undefined) return step.op === 'remove' ? value : step.value
  if (isList(value)) return changedList(value, [key, ...inner], step)
  if (!isObject(value)) return value
  const isThere = Object.hasOwn(value, key)
  if (inner.length > 0) return isThere ? { ...value, [key]: changed(value[key] as Json, inner, step) } : value
  if (step.op === 'remove') return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key))
  return isThere || step.op === 'add' ? { ...value, [key]: step.value } : value
}

function changedList(list: readonly Json[], [token = '', ...inner]: readonly string[], step: JsonPatchStep): Json {
  const at = /^(?:0|[1-9]\d{0,8})$/.test(token) ? Number(token) : Number.NaN
  if (inner.length === 0 && step.op === 'add' && at <= list.length) return list.toSpliced(at, 0, step.value)
  if (!(at < list.length)) return list
  if (inner.length > 0) return list.with(at, changed(list[at] as Json, inner, step))
  if (step.op === 'remove') return list.toSpliced(at, 1)
  return step.op === 'replace' ? list.with(at, step.value) : list
}

const isList = (json: Json): json is readonly Json[] => Array.isArray(json)
const isObject = (json: Json): json is JsonObject => typeof json === 'object' && json !== null && !Array.isArray(json)

/** Of equal values the same text: the order of keys does not count. */
const textOf = (json: Json): string =>
  JSON.stringify(json, (_, value: Json) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  )

const tokenOf = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1')
const keysOf = (pointer: string): string[] =>
  pointer === ''
    ? []
    : pointer
        .slice(1)
        .split('/')
        .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
