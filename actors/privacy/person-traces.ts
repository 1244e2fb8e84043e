/**
 * Owns how a person is recognised: which calls are the person's, and where a text names the person. A number is found as digits with or without
 * country code, with what people write between them, and said aloud digit by digit (English, German); an address also as it is spelled out; a name
 * as first and last name together, with or without its accents. docs/security.md says what is not found. Pure.
 */
import type { Json } from '../../model/json.ts'
import { nationalDigitsOf } from '../../net/numbering-plans.ts'
import type { CallOwnership, PersonTraces } from '../../store/erasures.ts'
import type { Finder } from '../../store/mentions.ts'

const mark = '[erased]'
/** A number without its country code that is shorter may be anything. */
const shortestNational = 6
/** An id of another system that is shorter, or a plain word, may be anything. */
const tellingId = /^(?=.*\d).{5,}$/

const wordsOfDigit = [
  'zero|oh|o|null',
  'one|eins',
  'two|zwei|zwo',
  'three|drei',
  'four|vier',
  'five|fünf|fuenf',
  'six|sechs',
  'seven|sieben',
  'eight|acht',
  'nine|neun',
]
const gap = '[\\s().,/–-]{0,3}'

/** Whose call it is: first whom it is linked to, then whose id of another system it has, then whose number or address. */
export function createOwnershipTest(traces: PersonTraces): (call: CallOwnership) => boolean {
  const ownNumber =
    traces.phoneNumber === null ? null : new RegExp(`^\\s*${numberPattern(traces.phoneNumber)}\\s*$`, 'iu')
  const isOwnNumber = (text: string | null | undefined): boolean => ownNumber?.test(text ?? '') ?? false
  return ({ personId, direction, fromNumber, toNumber, customer }) => {
    if (personId !== null) return personId === traces.personId
    const externalId = customer?.externalId ?? null
    if (externalId !== null && traces.externalId !== null) return externalId === traces.externalId
    const number = direction === 'inbound' ? fromNumber : toNumber
    const email = customer?.email?.trim().toLowerCase()
    const isOwnEmail = email !== undefined && email === traces.email?.toLowerCase()
    return isOwnEmail || isOwnNumber(number) || isOwnNumber(customer?.phoneNumber)
  }
}

/** A field that is nothing but the person's is null. */
export function createTraceFinder(traces: PersonTraces): Finder {
  const found = [
    exactly(traces.personId),
    ...traces.urls.map(exactly),
    ...(traces.externalId !== null && tellingId.test(traces.externalId) ? [exactly(traces.externalId)] : []),
    ...(traces.email === null ? [] : [spelledEmail(traces.email)]),
    ...(traces.isNameOwn ? wholeName(traces.firstName, traces.lastName) : []),
    ...(traces.phoneNumber === null ? [] : [numberTrace(traces.phoneNumber)]),
  ]
  const patterns = found.map(({ pattern }) => new RegExp(pattern, 'giu'))
  const redacted = (text: string): string => patterns.reduce((rest, pattern) => rest.replace(pattern, mark), text)
  const names = (text: string): boolean => redacted(text) !== text
  const redactedJson = (json: Json): Json => {
    if (typeof json === 'string') return redacted(json)
    if (json === null || typeof json !== 'object') return json
    if (Array.isArray(json)) return json.map(redactedJson)
    return Object.fromEntries(
      Object.entries(json).map(([field, value]) => [
        redacted(field),
        typeof value === 'string' && redacted(value) === mark ? null : redactedJson(value),
      ]),
    )
  }
  return { coarse: `(${found.map(({ coarse }) => coarse).join('|')})`, names, redacted, redactedJson }
}

type Trace = { readonly pattern: string; readonly coarse: string }

const edge = '[\\p{L}\\d]'
const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')

/** Letters and digits as they are where there is one way to write them; anything else is one of a few characters. */
const coarseOf = (text: string): string =>
  text
    .normalize('NFC')
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .replace(/[^A-Za-z0-9]/gu, (character) => {
      if (character === ' ') return '.*'
      const [small, large] = [character.toLowerCase(), character.toUpperCase()]
      const hasOneForm = character.normalize('NFD') === character && !(small in umlauts)
      return hasOneForm && small.length + large.length === 2 ? `[${small}${large}]` : '.*'
    })

function exactly(text: string): Trace {
  return { pattern: `(?<!${edge})${escaped(text)}(?!${edge})`, coarse: coarseOf(text) }
}

/** `ada.l@example.com`, and “ada dot l at example dot com”. */
function spelledEmail(email: string): Trace {
  const aloud = (written: string, words: string): string =>
    `\\s{0,3}(?:${written}|(?<!\\p{L})(?:${words})(?!\\p{L}))\\s{0,3}`
  const spoken: Readonly<Record<string, string>> = {
    '@': aloud('@|%40|\\(at\\)|\\[at\\]', 'at|ät'),
    '.': aloud('\\.', 'dot|punkt'),
    '-': aloud('-', 'dash|hyphen|minus|bindestrich'),
    _: aloud('_', 'underscore|unterstrich'),
    '+': aloud('\\+|%2B', 'plus'),
  }
  const pattern = Array.from(email, (character) => spoken[character] ?? escaped(character)).join('')
  return { pattern: `(?<!${edge})${pattern}(?!${edge})`, coarse: coarseOf(email) }
}

/** First and last name in either order; a middle name may stand between. */
function wholeName(firstName: string, lastName: string): Trace[] {
  const [first, last] = [nameParts(firstName), nameParts(lastName)]
  if (first === '' || last === '') return []
  const pattern = `(?<!${edge})(?:${first}[\\s._]+(?:[\\p{L}.'’-]+\\s+)?${last}|${last},?[\\s._]+${first})(?!${edge})`
  const [coarseFirst, coarseLast] = [coarseOf(firstName.trim()), coarseOf(lastName.trim())]
  return [{ pattern, coarse: `${coarseFirst}.*${coarseLast}|${coarseLast}.*${coarseFirst}` }]
}

const umlauts: Readonly<Record<string, string>> = { ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss', ø: 'oe', æ: 'ae', å: 'aa' }

function nameParts(name: string): string {
  const words = name
    .trim()
    .normalize('NFC')
    .split(/[\s-]+/)
  return words.map((word) => Array.from(word, letterPattern).join('')).join('[\\s-]+')
}

/** Itself, composed or not, and without its accent. */
function letterPattern(letter: string): string {
  const [plain = '', ...marks] = Array.from(letter.normalize('NFD'))
  if (!/\p{L}/u.test(letter)) return escaped(letter)
  const other = umlauts[letter.toLowerCase()]
  if (marks.length === 0 && other === undefined) return letter
  const forms = [letter, `${escaped(plain)}\\p{M}*`, ...(other === undefined ? [] : [other])]
  return `(?:${forms.join('|')})`
}

function numberTrace(number: string): Trace {
  return { pattern: `(?<!\\d)${numberPattern(number)}(?!\\d)`, coarse: coarseNumber(nationalDigitsOf(number)) }
}

/** Digits with other neighbours are never said as doubles: a few of them in a row tell the number, written or said. */
function coarseNumber(digits: string): string {
  const said = (digit: string): string => `(${digit}|${(wordsOfDigit[Number(digit)] ?? '').replace(/[^a-z|]/g, '.')})`
  const singles = /(?:(\d)(?!\1)(?<!\1\1)){3,5}/.exec(digits)?.[0] ?? ''
  if (singles !== '') return Array.from(singles, said).join('[^0-9A-Za-z]*')
  const any = `([0-9]|${wordsOfDigit.join('|').replace(/[^a-z|]/g, '.')})`
  return `${digits.split('').join('[^0-9A-Za-z]*')}|(${any}[^0-9A-Za-z]+){4}`
}

/** As E.164, with 00, with (0), as within the country; each digit may be said. */
function numberPattern(number: string): string {
  const digits = nationalDigitsOf(number)
  const country = number.slice(1, number.length - digits.length)
  const prefix = `(?:(?:(?:\\+|00|%2B|plus\\s)${gap})?${saidDigits(country)}${gap}(?:0${gap})?|${saidDigits('0')}${gap})`
  const isTelling = digits.length >= shortestNational
  return `${prefix}${isTelling ? '?' : ''}${saidDigits(digits)}`
}

/** `33` may be “double three”. */
function saidDigits(digits: string): string {
  const said = (digit: string): string => `(?:${digit}|${wordsOfDigit[Number(digit)] ?? digit})`
  const parts: string[] = []
  for (let at = 0; at < digits.length; at += 1) {
    const digit = digits[at] ?? ''
    const isDouble = digits[at + 1] === digit
    parts.push(isDouble ? `(?:${said(digit)}${gap}${said(digit)}|(?:double|doppel)\\s?${said(digit)})` : said(digit))
    if (isDouble) at += 1
  }
  return parts.join(gap)
}
