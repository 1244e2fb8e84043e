/**
 * Owns which numbers an account may call: those of the prefixes that it was allowed, or of its home country, and costly ones only where they are
 * named. Pure. docs/security.md "Toll fraud".
 */
import type { AccountConfig } from '../../model/account.ts'
import { costlyDestinationOf, destinationRefusalOf } from '../../model/destination.ts'
import { costlyRangeOf, isWithin } from '../../net/numbering-plans.ts'

export type DestinationLimits = Pick<AccountConfig, 'allowedDestinations' | 'homeCountryOnly' | 'homeCountry'>

/** Null: it may. What follows “The number …”. */
export const whyNotCalled = (limits: DestinationLimits, toNumber: string): string | null =>
  destinationRefusalOf(limits.allowedDestinations, toNumber) ??
  costlyRefusalOf(limits.allowedDestinations ?? [], toNumber) ??
  homeRefusalOf(limits, toNumber)

/** By the kind that the country's numbering plan gives the number, where our own table says nothing. */
function costlyRefusalOf(allowed: readonly string[], toNumber: string): string | null {
  if (costlyDestinationOf(toNumber) !== undefined) return null
  const costly = costlyRangeOf(toNumber)
  if (!costly || allowed.some((prefix) => toNumber.startsWith(prefix) && prefix.length >= costly.range.length))
    return null
  return `is a ${costly.kind} number, which is called only by accounts whose allowedDestinations name ${costly.range} or more of it`
}

function homeRefusalOf({ allowedDestinations, homeCountryOnly, homeCountry }: DestinationLimits, toNumber: string) {
  if (!homeCountryOnly || allowedDestinations) return null
  if (homeCountry === undefined)
    return 'cannot be called: the account has no home country before it has a number; the operator may name one (account limits --country)'
  if (isWithin(homeCountry, toNumber)) return null
  return `is outside the home country of the account (${homeCountry}); the operator opens other destinations (account limits --prefix or --home-only off)`
}
