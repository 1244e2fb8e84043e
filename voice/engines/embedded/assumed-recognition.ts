/**
 * Owns recognition without a recogniser, for load tests: that somebody spoke is heard, what they said is assumed. A question gets its first choice, a
 * value the same plausible one each time; nobody can say anything else. The confidence of it all is 0.
 */
import type { Expected, Slot } from '../../script/expected.ts'
import type { Answer, Grammar, Understanding } from './grammar.ts'
import type { Recognition } from './recognition.ts'
import type { HeardWords } from './recognition-messages.ts'
import type { Meaning } from '../../script/phrases.ts'
import { dateOf, spokenDate } from '../../english/spoken-dates.ts'
import { spokenTime } from '../../english/spoken-times.ts'
import type { Understandings } from './understanding.ts'

const noGrammar: Grammar = { key: '', start: 0, end: 0, states: 1, words: [], transitions: [] }
const spoken: HeardWords = { words: [], score: 0, worst: 0 }
const time = '10:00'
const freeText = 'I would like to know more'

export function createAssumedRecognition(): Recognition {
  return {
    listen: () => ({ feed: () => undefined, end: () => Promise.resolve(spoken), drop: () => undefined }),
    dictate: () => Promise.resolve(null),
    join: () => () => undefined,
    close: () => Promise.resolve(),
  }
}

export const assumedUnderstandings: Understandings = {
  understandingFor: (expected, today) => assuming(answerOf(expected, today)),
}

/** Of first words that nothing is expected of. */
export const assumedGreeting: Understanding<Meaning> = assuming(null)

function assuming(answer: Answer<Meaning> | null): Understanding<Meaning> {
  return {
    grammar: noGrammar,
    understand: () => answer,
    pauseAfter: () => 'usual',
    spotted: () => null,
    dictated: null,
  }
}

function answerOf({ slot }: Expected, today: string): Answer<Meaning> | null {
  const said = saidTo(slot, today)
  return said && { ...said, confidence: 0 }
}

function saidTo(slot: Slot, today: string): Answer<Meaning> | null {
  switch (slot.kind) {
    case 'none':
      return null
    case 'choices': {
      const [first] = slot.choices
      return first === undefined
        ? null
        : { meaning: { kind: 'choice', index: 0 }, text: first.phrases[0] ?? first.name }
    }
    case 'digits':
      return valueOf('1234567890'.repeat(Math.ceil(slot.min / 10)).slice(0, slot.min), (digits) =>
        digits.split('').join(' '),
      )
    case 'number':
      return valueOf(slot.min, String)
    case 'date':
      return valueOf(dateOf(['tomorrow'], today) ?? today, (date) => spokenDate(date, today))
    case 'time':
      return valueOf(time, spokenTime)
    case 'free':
      return { meaning: { kind: 'free', text: freeText }, text: freeText }
  }
}

function valueOf<Value extends string | number>(value: Value, spokenOf: (value: Value) => string): Answer<Meaning> {
  const text = spokenOf(value)
  return { meaning: { kind: 'value', value, spoken: text }, text }
}
