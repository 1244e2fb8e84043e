/**
 * Owns the conversation of ten turns that every engine holds on every line: what the agent asks, what the caller says to it, where the caller speaks
 * into the agent, and when a tool is called. As a call script, and as what a model answers.
 */
import type { JsonObject } from '../../../model/json.ts'

export type Exchange = {
  readonly key: string
  /** What fits, as a call script has it. */
  readonly slot: string
  readonly asks: string
  readonly says: string
  /** The caller does not wait for the end of the question. */
  readonly interrupts?: true
}

/** Of the words that the embedded engine knows surely on a narrow line, in the voice of the caller. */
export const exchanges: readonly Exchange[] = [
  {
    key: 'wish',
    slot: 'make a booking | change a booking | pay a bill',
    asks: 'Hello, what can I do?',
    says: 'change a booking',
  },
  {
    key: 'place',
    slot: 'at the bar | near the window | on the terrace',
    asks: 'Where shall it be?',
    says: 'near the window',
  },
  { key: 'guests', slot: 'number 1-20, no confirm', asks: 'How many are you?', says: 'eleven' },
  { key: 'day', slot: 'date, no confirm', asks: 'On which day?', says: 'tomorrow' },
  {
    key: 'drink',
    slot: 'black tea | coffee | lemonade',
    asks:
      'Which drink may we have ready for you, there is black tea from the mountains, coffee from our own little machine, ' +
      'and cold lemonade from the garden behind the house where my mother grows apples and pears?',
    says: 'black tea',
    interrupts: true,
  },
  { key: 'time', slot: 'time, no confirm', asks: 'At what time?', says: 'at nine in the morning' },
  { key: 'payment', slot: 'credit card | bank transfer | cash', asks: 'How do you pay?', says: 'bank transfer' },
  { key: 'size', slot: 'a small table | a large table', asks: 'Which size?', says: 'a large table' },
  { key: 'company', slot: 'my friend | my family', asks: 'Table 7 is free, who comes along?', says: 'my family' },
  { key: 'book', slot: 'yes/no', asks: 'Shall I book it?', says: 'yes please' },
]

/** After so many answers the agent asks the tool, and tells its result in the question that follows. */
export const toolAfter = 8
export const toolName = 'find_table'
export const toolArguments = { guests: 11, place: 'near the window' }
export const toolResult = { table: 7 }
/** What the agent may say while it waits. */
export const oneMoment = 'One moment.'
export const goodbye = 'Thank you, goodbye.'

/** As it is bound to a call. */
export const tool = {
  name: toolName,
  description: 'Tells which table is free.',
  inputSchema: {
    type: 'object' as const,
    properties: { guests: { type: 'integer' }, place: { type: 'string' } },
    required: ['guests', 'place'],
  },
}

/** All engines have it: the embedded one follows it, the others find it in their prompt. */
export const tenTurnsScript = [
  ...exchanges.flatMap(({ key, slot, asks }, index) => [
    ...(index === toolAfter
      ? [`tool ${toolName} (guests: {{guests}}, place: {{place}}) into found: ${oneMoment}`]
      : []),
    `ask ${key} (${slot}): ${index === toolAfter ? asks.replace('7', '{{found.table}}') : asks}`,
  ]),
  `end ${goodbye}`,
].join('\n')

/** What a model does next. */
export type Reply = {
  readonly text?: string
  readonly call?: { readonly name: string; readonly arguments: JsonObject }
}

/** To the caller's nth answer, from 0; before the first one it greets. */
export function replyTo(answer: number | null): Reply {
  const next = answer === null ? 0 : answer + 1
  if (next === exchanges.length) return { text: goodbye, call: { name: 'end_call', arguments: {} } }
  if (next === toolAfter) return { call: { name: toolName, arguments: toolArguments } }
  return { text: exchanges[next]!.asks }
}

/** Tells what the tool has answered, and nothing else. */
export const replyToTool = (output: unknown): Reply => {
  const { table } = (output as { readonly result?: Partial<typeof toolResult> } | null)?.result ?? {}
  return { text: exchanges[toolAfter]!.asks.replace('7', String(table)) }
}

/** Which answer of the caller a text ends in; an endpoint may be told more than that. */
export function answerIn(text: string): number | null {
  const index = exchanges.findIndex(({ says }) => text.endsWith(says))
  return index === -1 ? null : index
}
