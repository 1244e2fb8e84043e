/**
 * Owns the mask over digits that nobody is to read: wherever three of them stand together in their order, or a shorter run alone, however they are
 * spaced and whether in figures or in English words, each becomes a dot. Pure.
 */
import type { Json } from '../../model/json.ts'
import { keyDot } from '../../model/transcript-marks.ts'

export type KeyMask = {
  /** The next key of a run; one that is no digit ends it. */
  key(key: string): void
  /** The run is over. */
  end(): void
  /** These were one answer. */
  add(keys: string): void
  isEmpty(): boolean
  /** `isPaused`: a digit that stands alone is masked too. `isWhole` false: more may follow the last digits. */
  text(text: string, state: { readonly isPaused: boolean; readonly isWhole: boolean }): string
  /** Of a `memory` single digits that are numbers stay: they count something. */
  json(value: Json, kind: 'value' | 'memory'): Json
}

/** So many digits in their order are no coincidence, as a rule. */
const telling = 3
/** Runs of one call. */
const maxRuns = 64

const words = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine']
const digitOf = (unit: string): string => {
  const word = unit.toLowerCase()
  return words.includes(word) ? String(words.indexOf(word)) : word.replace(/^oh?$/, '0')
}
const unitPattern = new RegExp(`\\d|\\b(?:${words.join('|')}|oh|o)\\b`, 'giu')
/** What may stand between digits of one number. */
const spacing = /^[\s.,:;/()\u2010-\u2015-]{0,3}$/

type Unit = { readonly digit: string; readonly from: number; readonly to: number }

export function createKeyMask(): KeyMask {
  const runs: string[] = []
  let isOpen = false

  const add = (keys: string): void => {
    for (const run of keys.split(/\D+/)) if (run !== '' && !runs.includes(run)) runs.push(run)
    runs.splice(0, runs.length - maxRuns)
    isOpen = false
  }
  const hiddenIn = (digits: string, isAlone: boolean, isCut: boolean): boolean[] => {
    const hidden = Array.from(digits, () => false)
    for (const run of runs) {
      const isWholeRun = digits === run && (run.length > 1 || isAlone)
      if (isWholeRun || (isCut && run.includes(digits))) return hidden.fill(true)
      for (let at = 0; at + telling <= digits.length; at++)
        if (run.includes(digits.slice(at, at + telling))) hidden.fill(true, at, at + telling)
    }
    return hidden
  }
  const text: KeyMask['text'] = (given, { isPaused, isWhole }) => {
    const hidden = groupsOf(given).flatMap((group) => {
      const isLast = group.at(-1)?.to === given.trimEnd().length
      const isAlone = isPaused || given.trim().length === 1
      const marks = hiddenIn(group.map(({ digit }) => digit).join(''), isAlone, isLast && !isWhole)
      return group.filter((_, index) => marks[index])
    })
    let masked = given
    for (const { from, to } of hidden.toReversed()) masked = masked.slice(0, from) + keyDot + masked.slice(to)
    return masked
  }
  const json: KeyMask['json'] = (value, kind) => {
    if (typeof value === 'string') return text(value, { isPaused: false, isWhole: true })
    if (typeof value === 'number') {
      const digits = String(value)
      if (kind === 'memory' && digits.length === 1) return value
      const masked = text(digits, { isPaused: false, isWhole: true })
      return masked === digits ? value : masked
    }
    if (Array.isArray(value)) return value.map((item: Json) => json(item, kind))
    if (value === null || typeof value !== 'object') return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, json(item, kind)]))
  }

  return {
    key(key) {
      if (!/^\d$/.test(key)) return void (isOpen = false)
      if (isOpen) runs.push(`${runs.pop() ?? ''}${key}`)
      else runs.push(key)
      isOpen = true
    },
    end: () => void (isOpen = false),
    add,
    isEmpty: () => runs.length === 0,
    text,
    json,
  }
}

/** Digits that belong together. */
function groupsOf(text: string): Unit[][] {
  const groups: Unit[][] = []
  for (const match of text.matchAll(unitPattern)) {
    const unit = { digit: digitOf(match[0]), from: match.index, to: match.index + match[0].length }
    const last = groups.at(-1)?.at(-1)
    if (last && spacing.test(text.slice(last.to, unit.from))) groups.at(-1)?.push(unit)
    else groups.push([unit])
  }
  return groups
}
