/**
 * Owns the extractor that needs nothing from outside: what the call script asked for, options and values by the type of their dimension, in the words
 * of the transcript. It knows words and not what they mean. docs/design/extraction.md "The embedded extractor".
 */
import type { ClaimedAction, Claims, Extractor, ExtractionQuestion } from '../../model/extraction.ts'
import { spansOf } from '../../model/words.ts'
import { parseScript, type Script } from '../script/script.ts'
import type { End } from '../script/steps.ts'
import { todayOf } from '../script/today.ts'
import type { Vocabulary } from '../script/vocabulary.ts'
import { askedValues, heardOf, questionsOf } from './asked-values.ts'
import { patternValue } from './pattern-values.ts'

/** A script is read for its questions here: which words could be recognised was a matter of the call. */
const anyWords: Vocabulary = { wordsOf: () => [], has: () => true, maxPhrases: Infinity }

/** Of the end of a talk: where the agent says what it ends with. */
const lastTurns = 3

export const createEmbeddedExtractor = (): Extractor => ({
  name: 'embedded',
  extract: (question) => Promise.resolve(claimsOf(question)),
  close: () => Promise.resolve(),
})

function claimsOf(question: ExtractionQuestion): Claims {
  const { dimensions, answeredAt } = question
  const turns = heardOf(question.turns)
  const today = todayOf(answeredAt, question)
  const script = question.script === null ? null : parseScript(question.script, { vocabulary: anyWords }).script
  const asked = askedValues(script === null ? [] : questionsOf(script), turns, today)
  const values = dimensions.flatMap((dimension) => {
    const answer = asked.get(dimension.key)
    const claim = answer === undefined ? patternValue(dimension, turns, today) : answer
    return claim === null ? [] : [claim]
  })
  return { values, nextAction: script && actionOf(script, question), summary: null }
}

/** The end of the script that the agent said. */
function actionOf({ steps, asides }: Script, { turns }: ExtractionQuestion): ClaimedAction | null {
  const ends = [...steps, ...[...asides.values()].flat()].filter(
    (step): step is End => step.kind === 'end' && step.nextAction !== null && step.text !== '',
  )
  for (const { turn, role, text } of turns.slice(-lastTurns).toReversed()) {
    if (role !== 'agent') continue
    for (const { nextAction, text: said } of ends) {
      const [span] = spansOf(text, said)
      if (span && nextAction !== null) return { key: nextAction, turn, quote: text.slice(span.from, span.to), data: [] }
    }
  }
  return null
}
