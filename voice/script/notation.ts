/**
 * Owns whether a call script is written in statements (docs/call-scripts.md) or in prose, and the words that explain to a model those statements that
 * it uses. Prose is for models: a line of it may well begin with a word of a statement.
 */
import { blocksOf, toolName } from './lines.ts'
import { noteValue } from '../../model/voice-engine.ts'

type Notation = { readonly shape: RegExp; readonly meaning: string }

/** Prose says things as well. */
const say: Notation = { shape: /^say\b/, meaning: 'say …: say this, closely to its words.' }

const statements: readonly Notation[] = [
  {
    shape: /^ask\s+\S+\s*[(:]/,
    meaning:
      'ask <key> (<what is an answer>): … – ask this and wait for the answer. Between | stand choices; behind / stand other ways to say one, the first ' +
      'way is its value. yes/no gives true or false; digits, number, date, time and phrase are what they say. “confirm”: read the answer back; ' +
      `“tries”: how often it is asked. Note the answer by ${noteValue} when <key> is one of its keys. {{<key>}} stands for it further on.`,
  },
  {
    shape: /^no\s+(?:match|input)\s*:/,
    meaning:
      'no match: …, no input: … – how the question above is asked again when the answer is none, or when nothing is said.',
  },
  {
    shape: /^if\s+[\w.-]+(?:\s+is\b[^:]*|\s*):/,
    meaning: 'if <key> is <value>: … – the rest of the line only when this is so, with “is not” only when it is not.',
  },
  {
    shape: new RegExp(String.raw`^tool\s+${toolName}\s*(?:\(|into\s|:|$)`),
    meaning:
      'tool <name> (<argument>: <value>) into <key>: … – say this and call the tool; {{<key>.…}} is its result, “<key> is error” that it failed.',
  },
  {
    shape: /^transfer\s[^:]{1,100}:/,
    meaning: 'transfer <to whom>: … – say this, then pass the person on, by the tool for that.',
  },
  {
    shape: /^knowledge\s+(?:on|off)$/,
    meaning:
      'knowledge on, knowledge off – from here on questions may, or may not, be answered by searching the documents.',
  },
  {
    shape: /^(?:intent|on)\s+\w+\s*:/,
    meaning:
      'intent <name>: … – ways to say a wish; on <name>: … – what to do when the person has it, at any time; then go on where you were.',
  },
  { shape: /^voicemail\s*:/, meaning: 'voicemail: … – the message for an answering machine, for nobody else.' },
  {
    shape: /^end\s*(?:\(|:|$)/,
    meaning: 'end (<next action>): … – say this, then end the call with that next_action.',
  },
]

export const hasStatements = (document: string): boolean => usedIn(document, statements).length > 0

/** Empty for prose. */
export function explainsScript(document: string): string {
  if (!hasStatements(document)) return ''
  const used = usedIn(document, [say, ...statements])
  const lines = used.map(({ meaning }) => `- ${meaning}`)
  return [
    'Lines like these are statements; follow them in their order. Indented lines go on with the one above.',
    ...lines,
  ].join('\n')
}

function usedIn(document: string, notations: readonly Notation[]): readonly Notation[] {
  const texts = blocksOf(document).map(({ text }) => text)
  // Behind a condition or a wish stands another statement.
  const inner = texts.map((text) => /^(?:if\s[^:]*|on\s+\w+\s*):\s*(.*)$/s.exec(text)?.[1] ?? '')
  return notations.filter(
    ({ shape }) => texts.some((text) => shape.test(text)) || inner.some((text) => shape.test(text)),
  )
}
