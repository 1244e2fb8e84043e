/**
 * Owns what the numbering plans of the world say of a telephone number: which country it is in, and whether it costs its caller more than a
 * call. The plans are those of libphonenumber. Pure. ITU-T E.164.
 */
import {
  getCountryCallingCode,
  isSupportedCountry,
  parsePhoneNumberFromString,
  type PhoneNumber,
} from 'libphonenumber-js/max'

/** ISO 3166, two letters. */
export type Country = string

export const isCountry = (text: string): boolean => isSupportedCountry(text)

/**
 * Null: it belongs to no country (satellites, international services). Where several countries share a calling code, a number that none of them
 * has is taken for one of the largest: new area codes are its own, as a rule.
 */
export function countryOf(number: string): Country | null {
  const read = parsePhoneNumberFromString(number)
  return read ? (read.country ?? read.getPossibleCountries()[0] ?? null) : null
}

/** What lies in the country, and what costs its callers nothing from within its calling code. */
export function isWithin(country: Country, number: string): boolean {
  if (countryOf(number) === country) return true
  const read = parsePhoneNumberFromString(number)
  const isFree = read?.getType() === 'TOLL_FREE'
  return isFree && isSupportedCountry(country) && read.countryCallingCode === getCountryCallingCode(country)
}

/** As it is dialed within its country, without what is dialed in front. Of a number that no plan knows all digits. */
export const nationalDigitsOf = (number: string): string =>
  parsePhoneNumberFromString(number)?.nationalNumber ?? number.replace(/\D/g, '')

/** Of a number that costs its caller dearly; for people. */
export type CostlyKind = 'premium rate' | 'shared cost' | 'personal' | 'pager'

const costlyKinds: Readonly<Record<string, CostlyKind>> = {
  PREMIUM_RATE: 'premium rate',
  SHARED_COST: 'shared cost',
  PERSONAL_NUMBER: 'personal',
  PAGER: 'pager',
}

/** `range` is the beginning of the number by which an operator opens it: its calling code and three digits. */
export type CostlyRange = { readonly kind: CostlyKind; readonly range: string }

const rangeDigits = 3

/** Null: it costs what calls cost. A number that is too long or too short is judged by what switches make of it. */
export function costlyRangeOf(number: string): CostlyRange | null {
  const read = parsePhoneNumberFromString(number)
  if (!read) return null
  const kind = kindOf(read) ?? (read.isValid() ? null : kindOfFaulty(number))
  if (!kind) return null
  const code = `+${read.countryCallingCode}`
  return { kind, range: `${code}${read.nationalNumber.slice(0, rangeDigits)}` }
}

const kindOf = (read: PhoneNumber | undefined): CostlyKind | null => costlyKinds[read?.getType() ?? ''] ?? null

/** Digits that a number may have too many, and too few. */
const [surplus, missing] = [6, 4]

/** Switches stop reading when a number is complete, and some take a shorter one. */
function kindOfFaulty(number: string): CostlyKind | null {
  const cut = Array.from({ length: surplus }, (_, index) => number.slice(0, -1 - index))
  const filled = Array.from({ length: missing }, (_, index) => `${number}${'0'.repeat(index + 1)}`)
  for (const candidate of [...cut, ...filled]) {
    const read = parsePhoneNumberFromString(candidate)
    if (read?.isValid()) return kindOf(read)
  }
  return null
}
