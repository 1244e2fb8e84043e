/**
 * Owns dates as English says them, and which day they mean. `Tuesday` is the next one after today, `next Tuesday` that of the week that begins
 * with the next Monday. A day without its year is the next such day, today included; the 29th of February waits for a leap year.
 */
import { maybe, oneOf, sequence, type Pattern } from './grammar-pattern.ts'
import { numberOf, numbersPattern, ordinals, wordsOfOrdinal, wordsOfSmall } from './spoken-numbers.ts'

const weekdays = 'monday tuesday wednesday thursday friday saturday sunday'.split(' ')
const months = 'january february march april may june july august september october november december'.split(' ')
const shifts: ReadonlyMap<string, number> = new Map([
  ['the day before yesterday', -2],
  ['yesterday', -1],
  ['today', 0],
  ['tomorrow', 1],
  ['the day after tomorrow', 2],
  ['day after tomorrow', 2],
])
const units: ReadonlyMap<string, number> = new Map([
  ['day', 1],
  ['days', 1],
  ['week', 7],
  ['weeks', 7],
])
const [firstYear, lastYear] = [1900, 2099]
const maxShift = 99
const dayMs = 86_400_000

const monthDays = oneOf(...Array.from({ length: 31 }, (_, index) => wordsOfOrdinal(index + 1)))
const plainDays = oneOf(...Array.from({ length: 31 }, (_, index) => wordsOfSmall(index + 1)))
const month = oneOf(...months)
const twoThousand = sequence('two thousand', maybe(sequence(maybe('and'), numbersPattern(1, 99))))
const year = oneOf(
  sequence(oneOf('nineteen', 'twenty'), oneOf(numbersPattern(10, 99), sequence('oh', numbersPattern(1, 9)))),
  'nineteen hundred',
  twoThousand,
)
const dayAndMonth = oneOf(
  sequence(maybe('the'), monthDays, oneOf('of', ''), month),
  sequence(month, maybe('the'), monthDays),
  sequence(month, plainDays),
)

export const datesPattern: Pattern = oneOf(
  ...shifts.keys(),
  sequence('in', oneOf('a', numbersPattern(1, 30)), oneOf(...units.keys())),
  sequence(oneOf('', 'this', 'next', 'on'), oneOf(...weekdays)),
  sequence(maybe(oneOf(...weekdays)), dayAndMonth, maybe(oneOf(year, 'this year', 'next year'))),
  sequence(maybe(oneOf(...weekdays)), 'the', monthDays),
)

/** A day as `2027-05-03`; null where there is no such day. `today` is in the same form. */
export function dateOf(words: readonly string[], today: string): string | null {
  const now = dayOf(today)
  if (now === null) return null
  const text = words.join(' ').replace(/^on /, '')
  const day = shifted(text, now) ?? ofWeek(text, now) ?? ofMonth(text, now) ?? ofCalendar(text, now)
  return day === null ? null : isoOf(day)
}

/** `Monday, the third of May`, and the year when it is another than today's. */
export function spokenDate(date: string, today: string): string {
  const day = dayOf(date) ?? 0
  const { year, month, date: monthDay } = partsOf(day)
  const names = [weekdays[weekdayOf(day)] ?? '', months[month - 1] ?? ''].map(
    (name) => name[0]?.toUpperCase() + name.slice(1),
  )
  const yearSaid = date.slice(0, 4) === today.slice(0, 4) ? '' : ` ${year}`
  return `${names[0]}, the ${wordsOfOrdinal(monthDay)} of ${names[1]}${yearSaid}`
}

function shifted(text: string, now: number): number | null {
  const days = shifts.get(text)
  if (days !== undefined) return now + days
  const [, many = '', unit = ''] = /^in (.+) (\w+)$/.exec(text) ?? []
  const length = units.get(unit)
  const count = many === 'a' ? 1 : numberOf(many.split(' '))
  return length === undefined || count === null || count > maxShift ? null : now + count * length
}

function ofWeek(text: string, now: number): number | null {
  const [, which, name = ''] = /^(?:(this|next) )?(\w+)$/.exec(text) ?? []
  const weekday = weekdays.indexOf(name)
  if (weekday < 0) return null
  if (which === 'next') return now - weekdayOf(now) + 7 + weekday
  const ahead = (weekday - weekdayOf(now) + 7) % 7
  return now + (ahead === 0 && which === undefined ? 7 : ahead)
}

/** `the third`, `Tuesday the third`: of this month or the next one that has such a day. */
function ofMonth(text: string, now: number): number | null {
  const [, name = '', ordinal = ''] = /^(?:(\w+) )?the (.+)$/.exec(text) ?? []
  const weekday = weekdays.indexOf(name)
  const date = ordinals.get(ordinal)
  if (date === undefined || (name !== '' && weekday < 0)) return null
  const { year, month } = partsOf(now)
  const day = firstFrom(
    now,
    [0, 1, 2].map((ahead) => dayIn(year, month + ahead, date)),
  )
  return day !== null && contradicts(day, weekday) ? null : day
}

/** What contradicts itself has been misheard or misspoken. `weekday` is below 0 where none was said. */
const contradicts = (day: number, weekday: number): boolean => weekday >= 0 && weekdayOf(day) !== weekday

function ofCalendar(text: string, now: number): number | null {
  const words = text.split(' ').filter((word) => word !== 'the' && word !== 'of')
  const weekday = weekdays.indexOf(words[0] ?? '')
  const at = words.findIndex((word) => months.includes(word))
  const month = 1 + months.indexOf(words[at] ?? '')
  const before = words.slice(weekday < 0 ? 0 : 1, at)
  const after = words.slice(at + 1)
  for (let cut = after.length; month > 0 && cut >= 0; cut--) {
    const date = monthDayOf([...before, ...after.slice(0, cut)])
    const found = date === null ? null : inYear(month, date, after.slice(cut), now)
    if (found !== null) return contradicts(found, weekday) ? null : found
  }
  return null
}

function monthDayOf(words: readonly string[]): number | null {
  const date = ordinals.get(words.join(' ')) ?? numberOf(words)
  return date === null || date > 31 ? null : date
}

function inYear(month: number, date: number, yearSaid: readonly string[], now: number): number | null {
  const { year } = partsOf(now)
  const text = yearSaid.join(' ')
  if (text === 'this year') return dayIn(year, month, date)
  if (text === 'next year') return dayIn(year + 1, month, date)
  // Eight years lie between two leap years around 2100.
  if (text === '')
    return firstFrom(
      now,
      Array.from({ length: 9 }, (_, ahead) => dayIn(year + ahead, month, date)),
    )
  const named = numberOf(yearSaid)
  return named === null || named < firstYear || named > lastYear ? null : dayIn(named, month, date)
}

const firstFrom = (now: number, days: readonly (number | null)[]): number | null =>
  days.find((day) => day !== null && day >= now) ?? null

/** Days since 1970; null for a day that no calendar has. `month` from 1, past 12 into the next year. */
function dayIn(year: number, month: number, date: number): number | null {
  const day = Date.UTC(year, month - 1, date) / dayMs
  return date >= 1 && partsOf(day).date === date ? day : null
}

function dayOf(iso: string): number | null {
  const [, year = '', month = '', date = ''] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(iso) ?? []
  return year === '' ? null : dayIn(Number(year), Number(month), Number(date))
}

const isoOf = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10)
/** From 0, a Monday. */
const weekdayOf = (day: number): number => (((day + 3) % 7) + 7) % 7

function partsOf(day: number): { readonly year: number; readonly month: number; readonly date: number } {
  const at = new Date(day * dayMs)
  return { year: at.getUTCFullYear(), month: at.getUTCMonth() + 1, date: at.getUTCDate() }
}
