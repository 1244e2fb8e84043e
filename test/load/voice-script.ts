/** Owns what the embedded engine and its callers talk about in the voice bench: a script with more questions than a row has time for. */

/** All of them answer every question, and are long enough to be told from a noise. */
export const scriptedAnswers = [
  'tea please',
  'fruit juice',
  'a glass of water',
  'something else',
  'coffee please',
] as const

/** Long enough to be spoken over, in one breath. */
const questions = [
  'What may we bring to your table when you have arrived',
  'What would you like to have in your room after the long walk',
  'What should the kitchen have ready for you in the morning',
] as const
const rounds = 20
const choices = scriptedAnswers.map((answer) => answer.replace(/^(tea|coffee) please$/, '$1 / $&')).join(' | ')

export const benchScript = [
  'say Hello.',
  ...Array.from({ length: rounds }, (_, round) =>
    questions.map((question, index) => `ask answer_${round}_${index} (${choices}): ${question}?`),
  ).flat(),
  'end: Goodbye.',
].join('\n')
