/**
 * Owns how telephone numbers are read, wherever they come from: one way from what people and programs write to E.164. The plans are those of
 * libphonenumber. Pure. ITU-T E.164, E.123.
 */
import { parsePhoneNumberFromString, type CountryCode, type PhoneNumber as Read } from 'libphonenumber-js/max'
import { PhoneNumber } from '../model/phone-number.ts'
import { isCountry, type Country } from './numbering-plans.ts'

/** Longer text is no number, however many blanks it has. */
const maxLength = 64

/**
 * E.164 of a number with its country code (`+49 (0)30 123456`, `0049 30/123456`), or as it is dialed within `country` (`030 123456`). Null: it is
 * none, of no calling code that there is, or one with an extension, which E.164 cannot say. A national form must be a number that the country
 * has, because any few digits look like one; a number with its country code may be one that the plan does not know yet.
 */
export function readNumber(text: string, country: Country | null = null): string | null {
  const written = text.normalize('NFKC').trim()
  if (written.length > maxLength) return null
  const international = written.replace(/^\(?00\)?(?=[\s().\-/]*[1-9])/, '+')
  if (international.startsWith('+')) return readInternational(international)
  return country === null || !isCountry(country) ? null : readWithin(written, country as CountryCode)
}

function readInternational(written: string): string | null {
  const read = parsePhoneNumberFromString(written, { extract: false })
  if (!read || read.ext !== undefined) return null
  if (read.isPossible()) return read.number
  const bare = PhoneNumber.safeParse(withoutSeparators(written)).data
  return bare ?? null
}

function readWithin(written: string, country: CountryCode): string | null {
  const read = parsePhoneNumberFromString(written, { defaultCountry: country, extract: false })
  if (!read || read.ext !== undefined || !read.isValid()) return null
  return isBareInternational(written, read) ? null : read.number
}

/** `4930123456` in Germany: the calling code without its plus is as well the beginning of somebody's number. North America dials the code itself. */
const isBareInternational = (written: string, { number, countryCallingCode }: Read): boolean =>
  countryCallingCode !== '1' && withoutSeparators(written) === number.slice(1)

const withoutSeparators = (text: string): string => text.replace(/[\s().\-/]/g, '')

/** The same of a number that has the shape of E.164 already, as networks and stored rows have it: what the plans do not know stays as it is. */
export const canonicalNumber = (number: string): string => readInternational(number) ?? number

/** What the plans say of a number. `type`: `mobile`, `fixed_line`, `toll_free` and the like; null: they do not know. */
type NumberFacts = {
  readonly country: Country | null
  readonly type: string | null
  /** Its country has given out such numbers. */
  readonly isValid: boolean
}

/** `number` is E.164. */
export function numberFactsOf(number: string): NumberFacts {
  const read = parsePhoneNumberFromString(number)
  const type = read?.getType()?.toLowerCase() ?? null
  return { country: read?.country ?? null, type, isValid: read?.isValid() ?? false }
}

/** What is wrong with text that `readNumber` does not read, said of its field. */
export const numberFaultOf = (country: Country | null): string =>
  country === null
    ? 'must be a telephone number with its country code, like +4930123456'
    : `must be a telephone number: with its country code, like +4930123456, or as it is dialed within ${country}`
