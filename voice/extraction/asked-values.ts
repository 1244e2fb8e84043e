/**
 * Owns the answers to what a call script asks: a question is found in what the agent said, its answer in what the caller said to it, by the kind of
 * answer that the script waits for. Pure.
 */
import type { Claim, HeardTurn } from '../../model/extraction.ts'
import type { Json } from '../../model/json.ts'
import { keysOf, unclear } from '../../model/transcript-marks.ts'
import { placesOf, wordsIn, type Span, type Word } from '../../model/words.ts'
import type { AskedSlot, Ask, Script } from '../script/steps.ts'
import { yesNo } from '../script/questions.ts'
import { datesIn, digitsIn, numbersIn, timesIn, yesNoIn } from './spoken-in.ts'

/** A question that the caller broke off is known by so many of its words. */
const tellingWords = 3
/** Turns of the caller that may be an answer. */
const maxTries = 3

type Question = { readonly ask: Ask; readonly key: string; readonly words: readonly string[] }
export type Heard = HeardTurn & { readonly words: readonly Word[] }

export const heardOf = (turns: readonly HeardTurn[]): Heard[] =>
  turns.map((turn) => ({ ...turn, words: wordsIn(turn.text) }))

export function questionsOf({ steps, asides }: Script): Ask[] {
  const all = [...steps, ...[...asides.values()].flat()]
  return all.filter((step): step is Ask => step.kind === 'ask' && step.key !== null)
}

/** By the keys of what was asked; the last answer counts. Null: there was none. */
export function askedValues(
  asks: readonly Ask[],
  heard: readonly Heard[],
  today: string,
): ReadonlyMap<string, Claim | null> {
  const questions = asks.map((ask): Question => ({ ask, key: ask.key ?? '', words: tellingPartOf(ask.text) }))
  const claims = new Map<string, Claim | null>()
  const asked = heard.map((turn) =>
    turn.role === 'agent' ? (questions.find((one) => isAskedIn(one, turn)) ?? null) : null,
  )
  for (const [at, question] of asked.entries()) {
    if (question === null) continue
    const until = asked.findIndex((other, index) => index > at && other !== null && other !== question)
    const claim = answerIn(question, heard.slice(at + 1, until < 0 ? heard.length : until), today)
    claims.set(question.key, claim ?? claims.get(question.key) ?? null)
  }
  return claims
}

/** The longest part without placeholders. */
const tellingPartOf = (text: string): string[] =>
  text
    .split(/\{\{[^}]*\}\}/)
    .map((part) => wordsIn(part).map(({ word }) => word))
    .reduce((longest, part) => (part.length > longest.length ? part : longest), [])

/** All of it, or its beginning at the end of what was heard of the agent. */
function isAskedIn({ words }: Question, { words: said }: Heard): boolean {
  if (words.length === 0) return false
  if (placesOf(said, words).length > 0) return true
  for (let length = Math.min(words.length - 1, said.length); length >= tellingWords; length--) {
    const tail = said.slice(said.length - length)
    if (tail.every(({ word }, index) => word === words[index])) return true
  }
  return false
}

function answerIn({ ask, key }: Question, behind: readonly Heard[], today: string): Claim | null {
  let tries = 0
  let claim: Claim | null = null
  for (const [at, { turn, role, text }] of behind.entries()) {
    if (role !== 'user' || text === unclear) continue
    const isDenied =
      claim !== null && /is that right/i.test(behind[at - 1]?.text ?? '') && yesNoIn(text)?.value === false
    if (isDenied) claim = null
    if (claim !== null || ++tries > maxTries) continue
    const value = valueIn(ask.slot, text, today)
    if (value !== null) claim = { key, value: value.value, turn, quote: text.slice(value.from, value.to) }
  }
  return claim
}

type Value = Span & { readonly value: Json }

function valueIn(slot: AskedSlot, text: string, today: string): Value | null {
  const keys = keysOf(text)
  if (keys !== null) return pressed(slot, keys.replaceAll(/\D/g, ''), { from: 0, to: text.length })
  switch (slot.kind) {
    case 'choices':
      return slot.choices === yesNo ? yesNoIn(text) : choiceIn(slot, text)
    case 'digits':
      return only(digitsIn(text).filter(({ value }) => value.length >= slot.min && value.length <= slot.max))
    case 'number':
      return only(numbersIn(text).filter(({ value }) => value >= slot.min && value <= slot.max))
    case 'date':
      return only(datesIn(text, today, true))
    case 'time':
      return only(timesIn(text))
    case 'free':
      return text.trim() === '' ? null : { value: text.trim(), from: 0, to: text.length }
  }
}

/** Of several the caller may have meant any. */
const only = (values: readonly Value[]): Value | null =>
  values.every(({ value }) => value === values[0]?.value) ? (values[0] ?? null) : null

function choiceIn({ choices }: Extract<AskedSlot, { kind: 'choices' }>, text: string): Value | null {
  const words = wordsIn(text)
  const said = choices.flatMap(({ value, phrases }) =>
    phrases.flatMap((phrase) => wantedPlaces(words, phrase).map((span) => ({ value, ...span }))),
  )
  // "Black tea" is not "tea".
  const longest = said.filter(
    (one) =>
      !said.some(
        (other) => other !== one && other.from <= one.from && other.to >= one.to && lengthOf(other) > lengthOf(one),
      ),
  )
  return only(longest)
}

const lengthOf = ({ from, to }: Span): number => to - from

/** Where the words stand, but not where they are refused: "not tea", "no coffee". */
export function wantedPlaces(words: readonly Word[], phrase: string): Span[] {
  const wanted = wordsIn(phrase).map(({ word }) => word)
  return placesOf(words, wanted).filter(({ from }) => {
    const at = words.findIndex((word) => word.from === from)
    return !['not', 'no', 'without', 'except', "don't", "isn't"].includes(words[at - 1]?.word ?? '')
  })
}

/** 1 is yes and the first choice. */
/** Null too where none of the keys is a digit, or nobody may read them. */
function pressed(slot: AskedSlot, keys: string, place: Span): Value | null {
  if (keys === '') return null
  if (slot.kind === 'choices') {
    const choice = keys.length === 1 ? slot.choices[Number(keys) - 1] : undefined
    return choice === undefined ? null : { ...place, value: choice.value }
  }
  if (slot.kind === 'digits') return { ...place, value: keys }
  return slot.kind === 'number' ? { ...place, value: Number(keys) } : null
}
