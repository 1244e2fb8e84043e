/**
 * Owns the difference of two JSON values as a JSON Patch (RFC 6902), and applying one. Of its operations `add`, `remove` and `replace` are used. A patch
 * and not a merge patch (RFC 7396): that one tells null from absent nowhere, and of a list from which the oldest goes it tells all of it. Pure.
 */
import { isObject, keyOfToken, pointerToken, type Json } from './json.ts'

/** `path` is a JSON Pointer, RFC 6901. */
export type JsonPatchStep =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: Json }
  | { readonly op: 'remove'; readonly path: string }
export type JsonPatch = readonly JsonPatchStep[]

/** Entries that are looked through for one that is equal: a longer list is told entry by entry. */
const maxSought = 500

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
    if (before !== after) steps.push({ op: 'replace', path, value: after })
    return
  }
  for (const key of Object.keys(before))
    if (!Object.hasOwn(after, key)) steps.push({ op: 'remove', path: `${path}/${pointerToken(key)}` })
  for (const [key, value] of Object.entries(after)) {
    const at = `${path}/${pointerToken(key)}`
    if (Object.hasOwn(before, key)) difference(before[key] as Json, value, at, steps)
    else steps.push({ op: 'add', path: at, value })
  }
}

/** Between entries that both have, entries with the same place are told by their difference; what is left is removed or added. */
function listDifference(before: readonly Json[], after: readonly Json[], path: string, steps: JsonPatchStep[]): void {
  let [from, to] = [0, 0]
  for (const [left, right] of [...commonOf(before, after), [before.length, after.length]] as const) {
    for (; from < left && to < right; from++, to++)
      difference(before[from] as Json, after[to] as Json, `${path}/${to}`, steps)
    for (; from < left; from++) steps.push({ op: 'remove', path: `${path}/${to}` })
    for (; to < right; to++) steps.push({ op: 'add', path: `${path}/${to}`, value: after[to] as Json })
    ;[from, to] = [left + 1, right + 1]
  }
}

/** Places of entries that are equal, in the order of both. Not the most that there are: lists lose their oldest entries and get new ones. */
function commonOf(before: readonly Json[], after: readonly Json[]): [number, number][] {
  const pairs: [number, number][] = []
  let from = 0
  for (const [to, entry] of after.entries()) {
    const until = Math.min(before.length, from + maxSought)
    let at = from
    while (at < until && !isSame(before[at] as Json, entry)) at++
    if (at === until) continue
    pairs.push([at, to])
    from = at + 1
  }
  return pairs
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

/** The order of keys does not count. */
function isSame(one: Json, other: Json): boolean {
  if (one === other) return true
  if (isList(one))
    return isList(other) && one.length === other.length && one.every((item, at) => isSame(item, other[at] as Json))
  if (!isObject(one) || !isObject(other)) return false
  const keys = Object.keys(one)
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isSame(one[key] as Json, other[key] as Json))
  )
}

const keysOf = (pointer: string): string[] => (pointer === '' ? [] : pointer.slice(1).split('/').map(keyOfToken))
