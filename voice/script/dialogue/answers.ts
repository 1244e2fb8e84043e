/** Owns what becomes of an answer: it is noted, read back, or asked for again. */
import { againOf, gaveUp, hintOf, readBackOf, stillThereOf } from './own-lines.ts'
import { stepOf, type Answer, type DialogueState } from './dialogue-state.ts'
import { failed, goOn, enter, textOf } from './enter-step.ts'
import { after, end, goodbye, joined, speak, stay, type Advanced, type Setting } from './dialogue-turn.ts'
import type { Meaning } from '../phrases.ts'
import type { Ask, AskedSlot } from '../steps.ts'

/** A date or a number that was understood less surely is read back, and one that sounds like another. */
const sure = 0.7
const maxText = 500

type Value = { readonly value: Answer; readonly spoken: string }

/** Null when the meaning is no answer to the question. */
export function answerTo(
  setting: Setting,
  state: DialogueState,
  ask: Ask,
  meaning: Meaning | null,
  confidence: number,
): Advanced | null {
  const verdict = state.confirming === null ? null : verdictOf(meaning)
  if (state.confirming !== null && verdict === true) return answered(setting, state, ask, state.confirming)
  if (verdict === false) return misunderstood(setting, { ...state, confirming: null }, ask, 'Sorry.')
  const value = valueOf(ask.slot, meaning, state.confirming !== null)
  if (value === null) return null
  const { confirm } = ask
  const isUnsure = confidence < sure || (meaning?.kind === 'value' && meaning.isAlike === true)
  const isReadBack = confirm === 'always' || confirm === 'spoken' || (confirm === 'unsure' && isUnsure)
  return isReadBack && ask.key !== null ? readBack(state, value) : answered(setting, state, ask, value)
}

/** Yes or no to what was read back. */
function verdictOf(meaning: Meaning | null): boolean | null {
  if (meaning?.kind === 'choice') return meaning.index === 0
  if (meaning?.kind !== 'request') return null
  if (meaning.request === 'yes') return true
  return meaning.request === 'no' ? false : null
}

/** Whatever the recognition says, what does not fit the question is no answer. */
function valueOf(slot: AskedSlot, meaning: Meaning | null, isConfirming: boolean): Value | null {
  if (meaning?.kind === 'choice' && slot.kind === 'choices' && !isConfirming) return choiceOf(slot, meaning.index)
  if (meaning?.kind === 'free') {
    const text = meaning.text.trim().slice(0, maxText)
    return slot.kind === 'free' && text !== '' ? { value: text, spoken: text } : null
  }
  if (meaning?.kind !== 'value' || !fits(slot, meaning.value)) return null
  const spoken = meaning.spoken.slice(0, maxText).replace(/[.!?\s]+$/, '')
  return { value: meaning.value, spoken: spoken === '' ? String(meaning.value) : spoken }
}

function choiceOf(slot: Extract<AskedSlot, { kind: 'choices' }>, index: number): Value | null {
  const choice = slot.choices[index]
  return choice ? { value: choice.value, spoken: choice.name } : null
}

function fits(slot: AskedSlot, value: string | number): boolean {
  switch (slot.kind) {
    case 'choices':
      return false
    case 'digits':
      return typeof value === 'string' && /^\d+$/.test(value) && value.length >= slot.min && value.length <= slot.max
    case 'number':
      return typeof value === 'number' && Number.isInteger(value) && value >= slot.min && value <= slot.max
    case 'date':
      return typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value)
    case 'time':
      return typeof value === 'string' && /^\d\d:\d\d$/.test(value)
    case 'free':
      return typeof value === 'string' && value.length > 0 && value.length <= maxText
  }
}

const readBack = (state: DialogueState, value: Value): Advanced =>
  speak({ ...state, confirming: { ...value }, keys: '' }, readBackOf(value.spoken))

/** The line of the question; of an answer that is read back, that. */
export const lineOf = (setting: Setting, state: DialogueState, ask: Ask): string =>
  state.confirming === null ? textOf(setting, state, ask.text) : readBackOf(state.confirming.spoken)

function answered(setting: Setting, state: DialogueState, { key }: Ask, { value, spoken }: Value): Advanced {
  if (key === null) return goOn(setting, state)
  const { [key]: _, ...otherSpoken } = state.spoken
  const differs = typeof value !== 'boolean' && String(value) !== spoken
  const known: DialogueState = {
    ...state,
    answers: { ...state.answers, [key]: value },
    spoken: differs ? { ...otherSpoken, [key]: spoken } : otherSpoken,
  }
  const isArgument = state.argument !== null
  // A tool may need more: its step is entered again.
  const going = isArgument ? enter(setting, { ...known, argument: null, confirming: null }, '') : goOn(setting, known)
  return after([{ type: 'note', key, value }], going)
}

/** `words` in place of the usual ones before the question. */
export function misunderstood(setting: Setting, state: DialogueState, ask: Ask, words: string | null = null): Advanced {
  if (ask.key === null) return goOn(setting, state)
  const times = state.misunderstood + 1
  if (times >= ask.tries) return givenUp(setting, state)
  const again = words ?? (state.confirming === null ? againOf(ask, times) : 'Sorry. Please say yes or no.')
  return speak(
    { ...state, misunderstood: times, keys: '' },
    joined(textOf(setting, state, again), lineOf(setting, state, ask)),
  )
}

/** Without an argument the tool cannot be called. */
function givenUp(setting: Setting, state: DialogueState): Advanced {
  const step = stepOf(setting.script, state)
  return goOn(setting, step?.kind === 'tool' ? failed(state, step) : state, gaveUp)
}

export function unanswered(setting: Setting, state: DialogueState, ask: Ask): Advanced {
  if (state.keys !== '') return keyed(setting, state, ask, state.keys)
  if (ask.key === null) return goOn(setting, state)
  const times = state.unanswered + 1
  if (times >= ask.tries) return end(state, `I still cannot hear you, so I will end the call. ${goodbye}`, null)
  const again = textOf(setting, state, stillThereOf(ask, times))
  return speak({ ...state, unanswered: times }, joined(again, lineOf(setting, state, ask)))
}

/** 1 is the first answer; of a yes or no question 1 is yes and 2 is no. Digits and numbers are pressed one by one; `#` ends them and `*` begins anew. */
export function pressed(setting: Setting, state: DialogueState, ask: Ask, digit: string): Advanced {
  const { slot } = ask
  if (state.confirming !== null && /^[12]$/.test(digit)) {
    const going = answerTo(setting, state, ask, { kind: 'choice', index: Number(digit) - 1 }, 1)
    return going ? after([{ type: 'took_keys', keys: digit }], going) : stay(state)
  }
  if (state.confirming !== null) return misunderstood(setting, state, ask)
  if (slot.kind === 'digits' || slot.kind === 'number') return pressedMore(setting, state, ask, digit)
  const index = /^[1-9]$/.test(digit) ? Number(digit) - 1 : -1
  const going = answerTo(setting, state, ask, { kind: 'choice', index }, 1)
  return going ? after([{ type: 'took_keys', keys: digit }], going) : misunderstood(setting, state, ask)
}

function pressedMore(setting: Setting, state: DialogueState, ask: Ask, digit: string): Advanced {
  if (digit === '#') return keyed(setting, state, ask, state.keys)
  if (digit === '*') return stay({ ...state, phase: 'listening', keys: '' })
  if (!/^\d$/.test(digit)) return misunderstood(setting, state, ask)
  const keys = state.keys + digit
  const isWhole = keys.length >= longest(ask.slot)
  return isWhole ? keyed(setting, state, ask, keys) : stay({ ...state, phase: 'listening', keys })
}

function longest(slot: AskedSlot): number {
  if (slot.kind === 'digits') return slot.max
  return slot.kind === 'number' ? String(slot.max).length : 1
}

/** What was pressed needs no reading back, unless the script wants it. */
function keyed(setting: Setting, state: DialogueState, ask: Ask, keys: string): Advanced {
  const value = ask.slot.kind === 'number' ? Number(keys) : keys
  if (keys === '' || !fits(ask.slot, value))
    return misunderstood(setting, { ...state, keys: '' }, ask, `Sorry. ${hintOf(ask.slot)}`)
  const spoken = ask.slot.kind === 'digits' ? keys.split('').join(' ') : String(value)
  const going =
    ask.confirm === 'always' ? readBack(state, { value, spoken }) : answered(setting, state, ask, { value, spoken })
  return after([{ type: 'took_keys', keys }], going)
}
