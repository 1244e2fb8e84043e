/**
 * Owns which numbers an account may call: the prefixes that it was allowed, and the costly ones, which must be named. Toll fraud calls costly
 * numbers with stolen keys, because the call itself earns money.
 */
import { z } from 'zod'
import { PhoneNumber } from './phone-number.ts'

export const DestinationPrefix = z
  .string()
  .regex(/^\+[1-9]\d{0,14}$/, 'must be the beginning of a number in E.164 format, like +49 or +1212')

/** Open only to who names them, to the letter or more closely: `+1` does not open `+1900`. */
export const costlyDestinations = [
  '+808', // international shared cost
  '+870', // Inmarsat
  '+878', // universal personal numbers
  '+881', // satellite networks
  '+882', // international networks
  '+883', // international networks
  '+888', // telecommunications for disaster relief, withdrawn
  '+979', // international premium rate
  '+1900', // premium rate of North America
  '+4470', // personal numbers of the United Kingdom
  '+449', // premium rate of the United Kingdom
  '+3389', // premium rate of France
  '+49900', // premium rate of Germany
] as const

/** `+44 (0)70 …`: carriers leave out the zero that people write behind the country code, and reach what stands behind it. */
const withoutTrunkZero = (number: string): string => number.replace(/^\+(44|49|33)0+/, '+$1')

/** The entry of `costlyDestinations` that the number begins with. */
export function costlyDestinationOf(toNumber: string): string | undefined {
  const dialed = withoutTrunkZero(toNumber)
  return costlyDestinations.find((prefix) => dialed.startsWith(prefix))
}

/** Null: the number may be called. `allowed` absent: every number that costs what calls cost. */
export function destinationRefusalOf(allowed: readonly string[] | undefined, toNumber: string): string | null {
  if (!PhoneNumber.safeParse(toNumber).success) return 'is no number in E.164 format, like +4930123456'
  const naming = (allowed ?? []).filter((prefix) => toNumber.startsWith(prefix))
  if (allowed && naming.length === 0) return 'is outside the destinations the account may call (allowedDestinations)'
  const costly = costlyDestinationOf(toNumber)
  if (costly === undefined || naming.some((prefix) => prefix.startsWith(costly))) return null
  return `begins with ${costly}, which is called only by accounts whose allowedDestinations name it`
}
