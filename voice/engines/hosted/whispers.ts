/** Owns how a prompt tells the model what people of the account say to it during the call. */
import { oneLineOf } from './prompt-text.ts'

const heading =
  '# From your company, during this call\nThe caller has not heard these lines. Follow them from your next words on, the last one first of all, and do not mention them.'

const lineOf = (text: string): string => `- ${oneLineOf(text)}`

export const withWhispers = (instructions: string, whispers: readonly string[]): string =>
  whispers.length === 0 ? instructions : `${instructions}\n\n${heading}\n${whispers.map(lineOf).join('\n')}`

/** To a model that has the prompt already. */
export const whispered = (text: string): string => `${heading}\n${lineOf(text)}`
