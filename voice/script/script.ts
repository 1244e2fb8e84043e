/**
 * Owns the language of call scripts: a document becomes steps, or errors with line numbers. Plain prose works: each paragraph and each list
 * item is something to say, a paragraph that ends with a question waits for an answer. A line that begins with one of the words of
 * lines.ts is a statement; docs/call-scripts.md explains them.
 */
import { addAside, asidesOf, type Aside } from './asides.ts'
import { checkBlocks, type Complain } from './checks.ts'
import { blocksOf, type Block } from './lines.ts'
import { reprompted } from './questions.ts'
import { intentOf, proseOf, statementOf } from './statements.ts'
import type { Options, Script, ScriptError, Step } from './steps.ts'
import { knowledgeToolOf, withHandledErrors } from './tools.ts'

export type { Script } from './steps.ts'

export type Parsed = {
  readonly script: Script
  /** A script with errors is not fit for a call. */
  readonly errors: readonly ScriptError[]
  /** What is wrong with it for these tools; a call can go on without. */
  readonly warnings: readonly ScriptError[]
}

const maxSteps = 2000
const maxText = 2000
/** Who has made more mistakes sees the rest after mending these. */
const maxErrors = 200

/** Steps of everything that could be read, and every error found. Tools that are not among `options.tools` are not there for the call. */
export function parseScript(text: string, options: Options): Parsed {
  const errors: ScriptError[] = []
  const warnings: ScriptError[] = []
  const reading = createReading(options)
  for (const block of blocksOf(text)) {
    const complain: Complain = (message) => void errors.push({ line: block.line, message })
    if (errors.length >= maxErrors) break
    if (reading.size() >= maxSteps) {
      complain(`more than ${maxSteps} steps: a script this long is for several workers`)
      break
    }
    if (block.text.length > maxText) complain(`longer than ${maxText} characters: make several lines of it`)
    else reading.read(block, complain, (message) => void warnings.push({ line: block.line, message }))
  }
  const script = reading.script()
  const between = errors.length >= maxErrors ? [] : checkBlocks(script, reading.asides(), options)
  const found = [...errors, ...between].toSorted((a, b) => a.line - b.line)
  return { script, errors: found.slice(0, maxErrors), warnings }
}

/** Everything that is wrong with a script, by its lines: for who writes it. Without `tools` nothing is said about tools that are not there. */
export function checkScript(text: string, options: Options): ScriptError[] {
  const { errors, warnings } = parseScript(text, options)
  return [...errors, ...(options.tools === undefined ? [] : warnings)].toSorted((a, b) => a.line - b.line)
}

/** A script that says one thing and ends. */
export const closingScript = (text: string): Script => ({
  steps: [{ kind: 'end', line: 1, when: null, text, nextAction: null }],
  intents: [],
  asides: new Map(),
  knowledgeTool: null,
})

function createReading(options: Options) {
  const steps: Step[] = []
  const intents: Script['intents'][number][] = []
  const asides: Aside[] = []
  let last = null as Step | null

  const reprompt = (block: Block, complain: Complain): void => {
    const list = steps.at(-1) === last ? steps : asides.find(({ steps: own }) => own.at(-1) === last)?.steps
    const question = last?.kind === 'ask' && last.key !== null ? reprompted(last, block.text, complain) : null
    if (question === null || list === undefined) return complain('"no match" and "no input" stand below their question')
    list[list.length - 1] = question
    last = question
  }
  const readAside = (block: Block, complain: Complain, warn: Complain): void => {
    const [, name = '', rest = ''] = /^on\s+(\w+)\s*:\s*(.*)$/s.exec(block.text) ?? []
    last = rest === '' ? null : statementOf(block.line, rest, { options, complain, warn })
    if (rest === '') return complain('what happens reads: on <intent>: say …')
    if (last) addAside(asides, { name, line: block.line, steps: [last] })
  }
  return {
    size: () => steps.length + intents.length + asides.reduce((sum, aside) => sum + aside.steps.length, 0),
    asides: (): readonly Aside[] => asides,
    read(block: Block, complain: Complain, warn: Complain): void {
      if (block.kind === 'reprompt') return reprompt(block, complain)
      if (block.kind === 'on') return readAside(block, complain, warn)
      last = null
      if (block.kind === 'intent') return void intents.push(intentOf(block, { options, complain, warn }))
      // No part of the talk: voicemail-message.ts.
      if (block.kind === 'voicemail') return
      last = block.kind === 'prose' ? proseOf(block) : statementOf(block.line, block.text, { options, complain, warn })
      if (last) steps.push(last)
    },
    script(): Script {
      const all = [...steps, ...asides.flatMap((aside) => aside.steps)]
      const handled = asides.map((aside) => ({ ...aside, steps: withHandledErrors(aside.steps, all) }))
      return {
        steps: withHandledErrors(steps, all),
        intents,
        asides: asidesOf(steps, handled, options),
        knowledgeTool: knowledgeToolOf(options.tools ?? []),
      }
    },
  }
}
