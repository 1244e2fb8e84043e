/** Owns how one statement of a call script is read: say, ask, if, end, tool, transfer, knowledge; intent and voicemail. */
import { alternativesOf, settingsOf, usualOf, yesNo } from './questions.ts'
import type { Ask, Condition, End, Knowledge, Options, Placed, Say, Script, Step } from './steps.ts'
import { plain } from './text.ts'
import { toolOf, transferOf } from './tools.ts'

type Complain = (message: string) => void
export type Reading = { readonly options: Options; readonly complain: Complain; readonly warn: Complain }

const keyPattern = /^[a-z][a-z0-9_]{0,63}$/
const maxAlternatives = 20

type Prose = { readonly line: number; readonly text: string }

export function proseOf(block: Prose): Step {
  const text = plain(block.text)
  const placed = { line: block.line, when: null }
  if (!text.endsWith('?')) return { ...placed, kind: 'say', text }
  const slot = { kind: 'choices', choices: yesNo } as const
  return { ...placed, kind: 'ask', key: null, text, slot, ...usualOf(slot) }
}

export function statementOf(line: number, text: string, reading: Reading, when: Condition | null = null): Step | null {
  const placed = { line, when }
  const [, keyword = '', rest = ''] = /^(\w+)(.*)$/s.exec(text) ?? []
  switch (keyword) {
    case 'say':
      return sayOf(placed, rest, reading)
    case 'ask':
      return askOf(placed, rest, reading)
    case 'end':
      return endOf(placed, rest, reading)
    case 'tool':
      return toolOf(placed, rest, reading)
    case 'transfer':
      return transferOf(placed, rest, reading)
    case 'knowledge':
      return knowledgeOf(placed, rest, reading)
    case 'if':
      return when === null ? conditionalOf(line, rest, reading) : fail(reading, notAfterCondition)
  }
  return fail(reading, when === null ? `"${keyword}" is no statement` : notAfterCondition)
}

const notAfterCondition = 'after the condition comes say, ask, tool, transfer, knowledge or end'

function conditionalOf(line: number, rest: string, reading: Reading): Step | null {
  const condition = /^\s+(\w[\w.-]*)\s+is\s+(not\s+)?([^:]+):\s*(.+)$/s.exec(rest)
  if (condition === null) return fail(reading, 'a condition reads: if <key> is <value>: say …')
  const [, key = '', not, value = '', then = ''] = condition
  return statementOf(line, then, reading, { key, is: value.trim().toLowerCase(), negated: not !== undefined })
}

function sayOf(placed: Placed, rest: string, reading: Reading): Say | null {
  const text = plain(rest.replace(/^\s*:/, ''))
  return text === '' ? fail(reading, 'say what?') : { ...placed, kind: 'say', text }
}

function askOf(placed: Placed, rest: string, reading: Reading): Ask | null {
  const parts = /^\s+([^\s(]+)\s*\(([^)]*)\)\s*:\s*(.+)$/s.exec(rest)
  if (parts === null) return fail(reading, 'a question reads: ask <key> (yes/no): …? or ask <key> (tea | coffee): …?')
  const [, key = '', options = '', text = ''] = parts
  if (!keyPattern.test(key))
    reading.complain(`the key "${key}" must be lower-case letters, digits and _, starting with a letter`)
  const settings = settingsOf(options, reading.complain)
  return { ...placed, kind: 'ask', key, text: plain(text), ...usualOf(settings.slot), ...settings }
}

function endOf(placed: Placed, rest: string, { options, complain }: Reading): End {
  const [, action, text = ''] = /^\s*(?:\(\s*([^)]*?)\s*\))?\s*:?\s*(.*)$/s.exec(rest) ?? []
  const nextAction = action ?? null
  if (nextAction !== null && options.nextActions?.includes(nextAction) === false)
    complain(`"${nextAction}" is no next action of this worker`)
  return { ...placed, kind: 'end', text: plain(text), nextAction }
}

function knowledgeOf(placed: Placed, rest: string, reading: Reading): Knowledge | null {
  const word = rest.trim()
  if (word !== 'on' && word !== 'off') return fail(reading, 'knowledge is on or off')
  return { ...placed, kind: 'knowledge', text: '', isOn: word === 'on' }
}

export function intentOf({ line, text }: Prose, { complain }: Reading): Script['intents'][number] {
  const [, name = '', ways = ''] = /^intent\s+(\w+)\s*:\s*(.*)$/s.exec(text) ?? []
  if (!keyPattern.test(name))
    complain(`the intent "${name}" must be lower-case letters, digits and _, starting with a letter`)
  const phrases = alternativesOf(ways, /[|/]/)
  if (phrases.includes('')) complain('a way to say it is empty')
  if (phrases.length > maxAlternatives) complain(`more than ${maxAlternatives} ways to say one intent`)
  return { line, value: name, name, phrases: phrases.filter((phrase) => phrase !== '') }
}

export const voicemailOf = (text: string): string => plain(text.replace(/^voicemail\s*:/, ''))

function fail({ complain }: Reading, message: string): null {
  complain(message)
  return null
}
