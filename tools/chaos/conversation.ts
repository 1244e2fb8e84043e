/** Owns what callers and the agent talk about while faults strike: questions that all have the same answers, and a tool now and then. Pure. */

/**
 * All of them answer every question, sound unlike each other, and are long enough to be told from a noise. The ear is sure of them over a telephone, too: what
 * it doubts it hears twice, and that wait would hide those that faults cost.
 */
export const answers = ['tea please', 'lemonade', 'the morning paper', 'something else', 'coffee please'] as const

const questions = [
  'What may we bring to your table when you have arrived',
  'What would you like to have in your room after the long walk',
  'What should the kitchen have ready for you in the morning',
] as const

const choices = answers.map((answer) => answer.replace(/^(tea|coffee) please$/, '$1 / $&')).join(' | ')

/** Ms. Shorter silences are not told apart: a caller may always wait so long. */
export const unseenSilence = 500

export const toolName = 'note'
/** A tool is called before each question of this many. */
const toolEvery = 2

/** Of so many questions. Which call of the tool is which, its argument says. */
export function scriptOf(turns: number): string {
  const asked = Array.from({ length: turns }, (_, turn) => [
    ...(turn % toolEvery === 1 ? [`tool ${toolName} (turn: ${turn}) into note_${turn}: One moment.`] : []),
    `ask answer_${turn} (${choices}): ${questions[turn % questions.length]}?`,
  ])
  return ['say Hello, and welcome.', ...asked.flat(), 'end: Thank you for your time, and goodbye.'].join('\n')
}

export const toolCallsOf = (turns: number): number => Math.floor(turns / toolEvery)

/** The definition that a call is given. */
export const toolAt = (deliveryUrl: string, signingSecret: string) => ({
  name: toolName,
  description: 'Notes which turn it is.',
  inputSchema: { type: 'object', properties: { turn: { type: 'integer' } }, required: ['turn'] },
  deliveryUrl,
  signingSecret,
})

/** Ms that a talk of so many turns may take, undisturbed and on a busy machine. */
export const longestTalk = (turns: number): number => 20_000 + turns * 9_000
