/**
 * Owns times of day as English says them. Without `a m`, `in the evening` or the like, a time from 7:00 to 12:59 is as it is said and one from
 * 1:00 to 6:59 is after noon: the hours that people make appointments in.
 */
import { maybe, oneOf, sequence, type Pattern } from './grammar-pattern.ts'
import { numberOf, numbersPattern } from './spoken-numbers.ts'

const partsOfDay = {
  'a m': 'morning',
  'p m': 'afternoon',
  'in the morning': 'morning',
  'in the afternoon': 'afternoon',
  'in the evening': 'evening',
  'at night': 'night',
} as const
type PartOfDay = (typeof partsOfDay)[keyof typeof partsOfDay]

const named: Readonly<Record<string, number>> = { noon: 720, midday: 720, midnight: 0 }
const fractions: Readonly<Record<string, number>> = {
  half: 30,
  quarter: 15,
  'a quarter': 15,
  five: 5,
  ten: 10,
  twenty: 20,
  'twenty five': 25,
}
const later = ['past', 'after']
const earlier = ['to', 'of', 'before', 'till']
const noon = 720
const day = 1440

const hour = numbersPattern(1, 12)
const minutes = oneOf(numbersPattern(10, 59), sequence('oh', numbersPattern(1, 9)))
const unhalved = Object.keys(fractions).filter((name) => name !== 'half')

export const timesPattern: Pattern = oneOf(
  ...Object.keys(named),
  sequence('twelve', oneOf('noon', 'midnight')),
  sequence(
    oneOf(
      sequence(hour, oneOf('', "o'clock", minutes)),
      sequence(oneOf(...Object.keys(fractions)), oneOf(...later), hour),
      sequence(oneOf(...unhalved), oneOf(...earlier), hour),
    ),
    maybe(oneOf(...Object.keys(partsOfDay))),
  ),
  sequence(numbersPattern(13, 23), oneOf('hundred', "o'clock", minutes)),
)

/** As `15:30`; null where there is no such time. */
export function timeOf(words: readonly string[]): string | null {
  const [text, part] = withoutPart(words.join(' '))
  const name = named[text.replace(/^twelve (?=noon|midnight)/, '')]
  if (name !== undefined) return part === null ? clockOf(name) : null
  const said = fractionOf(text) ?? hourAndMinuteOf(text)
  const minute = said === null ? null : inPart(said, part)
  return minute === null ? null : clockOf(minute)
}

/** `3 PM`, `3:30 PM`, `noon`. */
export function spokenTime(time: string): string {
  const [hours = 0, minute = 0] = time.split(':').map(Number)
  if (minute === 0 && hours % 12 === 0) return hours === 0 ? 'midnight' : 'noon'
  const half = hours < 12 ? 'AM' : 'PM'
  const rest = minute === 0 ? '' : `:${String(minute).padStart(2, '0')}`
  return `${hours % 12 === 0 ? 12 : hours % 12}${rest} ${half}`
}

function withoutPart(text: string): readonly [string, PartOfDay | null] {
  for (const [name, part] of Object.entries(partsOfDay))
    if (text.endsWith(` ${name}`)) return [text.slice(0, -name.length - 1), part]
  return [text, null]
}

/** In minutes since midnight, as said: `quarter to one` is 12:45. */
function fractionOf(text: string): number | null {
  const [, name = '', side = '', hour = ''] = /^(.+) (past|after|to|of|before|till) (.+)$/.exec(text) ?? []
  const minute = fractions[name]
  const hours = numberOf(hour.split(' '))
  if (minute === undefined || hours === null || hours < 1 || hours > 12) return null
  if (later.includes(side)) return hours * 60 + minute
  if (name === 'half') return null
  return (hours === 1 ? 13 : hours) * 60 - minute
}

function hourAndMinuteOf(text: string): number | null {
  const words = text.replace(/ (o'clock|hundred)$/, '').split(' ')
  for (let cut = words.length; cut > 0; cut--) {
    const hours = numberOf(words.slice(0, cut))
    const rest = words.slice(cut)
    const minute = rest.length === 0 ? 0 : numberOf(rest[0] === 'oh' ? rest.slice(1) : rest)
    if (hours === null || minute === null || hours < 1 || hours > 23 || minute > 59) continue
    if (rest.length === 0 || (rest[0] === 'oh') === minute < 10) return hours * 60 + minute
  }
  return null
}

function inPart(said: number, part: PartOfDay | null): number | null {
  if (said >= noon + 60) return part === null || part === 'afternoon' || part === 'evening' ? said : null
  const ofHalf = said % noon
  switch (part) {
    case null:
      return said >= 7 * 60 ? said : said + noon
    case 'morning':
      return ofHalf
    case 'afternoon':
      return ofHalf + noon
    case 'evening':
      return ofHalf < 60 ? null : ofHalf + noon
    case 'night':
      return ofHalf >= 6 * 60 ? ofHalf + noon : ofHalf
  }
}

const clockOf = (minute: number): string =>
  [Math.floor((minute % day) / 60), minute % 60].map((part) => String(part).padStart(2, '0')).join(':')
