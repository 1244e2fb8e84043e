/**
 * Owns whose an arriving call is, and what it is refused for: the dialed number decides the account, then its trunks say who may deliver it. A
 * refusal says to its account which rule failed and how it is mended; to the other side it says nothing: an unknown source gets one answer for
 * every number.
 */
import type { Arrival, InboundRoute, RefusedArrival } from '../../model/telephony.ts'
import {
  listInboundCandidates,
  listUnreachableWorkers,
  type InboundCandidate,
  type NumberedWorker,
} from '../../store/inbound-routes.ts'
import type { Sql } from '../../store/sql.ts'
import { listNumberOwners, type NumberOwner } from '../../store/account-numbers.ts'
import type { RouteFacts, RouteQuestion } from '../../store/route-facts.ts'
import type { Lookup } from '../../store/one-query.ts'
import type { KnownSource } from '../../store/trunk-addresses.ts'
import type { AccountId } from '../../model/ids.ts'
import { readNational } from '../../model/number-format.ts'
import { isLoopback, reachedAddressOf } from '../../net/addresses.ts'
import { canonicalNumber } from '../../net/read-number.ts'
import { accessOf, type TrunkAccessDeps } from './trunk-access.ts'

export type RouteDeps = TrunkAccessDeps & {
  readonly sql: Sql
  /** As it is when it is asked for; calls that arrive in the same moment ask together. */
  readonly findFacts: Lookup<RouteQuestion, RouteFacts>
}

const maxCalled = 10
const maxReadings = 100

export async function findRoute(deps: RouteDeps, arrival: Arrival): Promise<InboundRoute | RefusedArrival> {
  const address = reachedAddressOf(arrival.address)
  const called = arrival.called.slice(0, maxCalled)
  if (address === null) return nobody({ address: arrival.address, called, sources: [] })
  const dialed = (arrival.dialed ?? called).slice(0, maxCalled)
  const facts = await deps.findFacts({ address, isOwnMachine: isLoopback(address), called, dialed })
  if (!facts) throw new Error('a question about an arriving call has no answer')
  const { owners, sources, accountId, candidates } = facts
  const asked = { address, called, dialed, sources }
  if (accountId !== null) return routeAmong(deps, accountId, { ...asked, candidates })
  const national = await findNational(deps.sql, asked)
  if (national) return national === 'several' ? ofSeveral(asked) : routeOf(deps, national)
  const claimed = owners.find(({ accountId }) => sources.some((source) => source.accountId === accountId))
  const refused = claimed ? ofClaim(asked, claimed) : nobody(asked)
  return (await routeByExtension(deps, asked, candidates)) ?? (await routeDiverted(deps, asked)) ?? refused
}

type Asked = {
  readonly address: string
  /** All that the call names, the best first: which worker of an account it is for. */
  readonly called: readonly string[]
  /** What was really dialed: which account it is for. */
  readonly dialed: readonly string[]
  readonly sources: readonly KnownSource[]
}

const ownersOf = (sql: Sql, numbers: readonly string[], address: string) =>
  listNumberOwners(sql, numbers, { address, isOwnMachine: isLoopback(address) })

const isOpen = ({ rule, isActive }: InboundCandidate): boolean => rule !== 'none' && isActive

/** The number decided: whoever may not deliver to its account delivers to nobody. */
async function routeAmong(
  deps: RouteDeps,
  accountId: AccountId,
  asked: Refused,
): Promise<InboundRoute | RefusedArrival> {
  const [first] = asked.candidates
  if (first && isOpen(first)) return routeOf(deps, first)
  return explain(deps.sql, accountId, asked)
}

/** Numbers as within the countries of the trunks that know the address. */
const readingsOf = (texts: readonly string[], sources: readonly KnownSource[]) =>
  sources.flatMap(({ accountId, trunkId, numberFormat }) =>
    texts.flatMap((text) => {
      const number = numberFormat && readNational(text, numberFormat)
      return number ? [{ accountId, trunkId, number: canonicalNumber(number) }] : []
    }),
  )

type Found = InboundCandidate | 'several' | null

/** A number within the country of the trunk that delivers it is one of the world's only when that trunk is known. */
async function findNational(sql: Sql, { address, called, dialed, sources }: Asked): Promise<Found> {
  const readings = readingsOf(dialed, sources).slice(0, maxReadings)
  if (readings.length === 0) return null
  const owners = await ownersOf(sql, [...new Set(readings.map(({ number }) => number))], address)
  const owned = readings.filter(({ accountId, number }) =>
    owners.some((owner) => owner.counts && owner.accountId === accountId && owner.number === number),
  )
  const [accountId, other] = accountsOf(owned)
  if (other) return 'several'
  if (!accountId) return null
  const numbers = readingsOf(called, sources).map(({ number }) => number)
  const candidates = await listInboundCandidates(sql, { called: [...new Set(numbers)], address, accountId })
  const isMeant = ({ trunk, toNumber }: InboundCandidate): boolean =>
    owned.some((reading) => reading.trunkId === trunk.id && reading.number === toNumber)
  return candidates.find((candidate) => isOpen(candidate) && isMeant(candidate)) ?? null
}

/**
 * The name of a line is nobody's own: where two accounts have it at one address, none of them gets the call of the other, awake or not. Null: no
 * trunk has it for this address.
 */
async function routeByExtension(
  deps: RouteDeps,
  asked: Asked,
  candidates: readonly InboundCandidate[],
): Promise<InboundRoute | RefusedArrival | null> {
  const { address, called } = asked
  const [accountId, other] = accountsOf(candidates.flatMap(({ rule, trunk }) => (rule === 'address' ? [trunk] : [])))
  if (other) return ofSeveral(asked)
  // Within the account a line may be called by its name for a number that only a Diversion names.
  if (accountId)
    return routeAmong(deps, accountId, {
      ...asked,
      candidates: await listInboundCandidates(deps.sql, { called, address, accountId }),
    })
  const [first] = candidates
  return first && isOpen(first) ? routeOf(deps, first) : null
}

/** Whoever passed a call on says for which number; anybody may say so, and it chooses among the numbers of one account only. */
async function routeDiverted(deps: RouteDeps, { address, called, sources }: Asked): Promise<InboundRoute | null> {
  const [accountId, other] = accountsOf(sources)
  if (!accountId || other) return null
  const [first] = await listInboundCandidates(deps.sql, { called, address, accountId })
  return first && isOpen(first) ? routeOf(deps, first) : null
}

const accountsOf = (found: readonly { readonly accountId: AccountId }[]): AccountId[] => [
  ...new Set(found.map(({ accountId }) => accountId)),
]

/** A caller from an allowed address needs no password, unless the trunk asks for it. */
function routeOf(deps: RouteDeps, { trunk, workerId, toNumber, rule }: InboundCandidate): InboundRoute {
  const mustAuthenticate = rule === 'password' || trunk.config.authenticateInbound === true
  return { trunk: accessOf(deps, trunk), workerId, toNumber, mustAuthenticate }
}

type Refused = Asked & { readonly candidates: readonly InboundCandidate[] }

async function explain(sql: Sql, accountId: AccountId, refused: Refused): Promise<RefusedArrival> {
  const { address, called, candidates, sources } = refused
  const asleep = candidates.find(({ rule }) => rule === 'address')
  if (asleep) return inactive(asleep)
  const [closed] = candidates
  if (closed) return notAllowed(closed, { address, sources })
  const [nearest] = await listUnreachableWorkers(sql, accountId, called)
  if (nearest) return withoutTrunk(nearest, { address, sources })
  return nobody(refused)
}

type From = { readonly address: string; readonly sources: readonly KnownSource[] }

/** A carrier that may deliver calls is told that the number is unknown. */
const statusFor = (sources: readonly KnownSource[]): number => (sources.length > 0 ? 404 : 403)

const inactive = ({ trunk, workerName }: InboundCandidate): RefusedArrival => ({
  reason: 'worker_inactive',
  details: `The worker “${workerName}” is switched off; set isActive to take calls.`,
  sipStatus: 480,
  accountId: trunk.accountId,
  trunkId: trunk.id,
})

function notAllowed({ trunk, workerName, rule }: InboundCandidate, { address, sources }: From): RefusedArrival {
  const asleep = rule === 'password' ? ` The worker is switched off, so that no password was asked for either.` : ''
  return {
    reason: 'unknown_source',
    details: `No trunk of the worker “${workerName}” allows ${address}; if that is your carrier, add it to allowedAddresses of the trunk “${trunk.name}”.${asleep}`,
    sipStatus: statusFor(sources),
    accountId: trunk.accountId,
    trunkId: trunk.id,
  }
}

/** The worker has the number, and no active trunk of it takes calls in. */
function withoutTrunk({ accountId, workerName, toNumber }: NumberedWorker, from: From): RefusedArrival {
  const source = from.sources.find((known) => known.accountId === accountId)
  const mend = source
    ? `add the worker to workerIds of the trunk “${source.name}”, which allows ${from.address}`
    : `add the worker to a trunk that takes calls in, and ${from.address} to its allowedAddresses if that is your carrier`
  return {
    reason: source ? 'unknown_number' : 'unknown_source',
    details: `The worker “${workerName}” has the number ${toNumber}, but no active trunk that takes calls in has the worker; ${mend}.`,
    sipStatus: statusFor(from.sources),
    accountId,
    trunkId: source?.trunkId ?? null,
  }
}

/** Told to the operator alone: a stranger may have claimed the number before its owner came. */
const ofClaim = ({ address, sources }: Asked, { number, accountId }: NumberOwner): RefusedArrival => ({
  reason: 'unknown_number',
  details: `The account ${accountId} has claimed the number ${number}, and trunks of other accounts allow ${address} too, so that a claim is not enough there. If the number is its: npm run admin -- number assign ${accountId} ${number}`,
  sipStatus: statusFor(sources),
  accountId: null,
  trunkId: null,
})

/** Told to the operator alone: whose caller this was is not known. */
const ofSeveral = ({ address, dialed, sources }: Asked): RefusedArrival => ({
  reason: 'unknown_number',
  details: `Trunks of several accounts allow ${address} and have ${dialed.join(', ')} as an extension or a number within their country: the call is nobody’s. Let their carrier write numbers as E.164, and give the numbers to the accounts (npm run admin -- number assign).`,
  sipStatus: statusFor(sources),
  accountId: null,
  trunkId: null,
})

function nobody({ address, called, sources }: Pick<Asked, 'address' | 'called' | 'sources'>): RefusedArrival {
  const numbers = called.join(', ') || 'no number'
  if (sources.length === 0)
    return {
      reason: 'unknown_source',
      details: `No trunk allows ${address}, and no worker has the number (${numbers}).`,
      sipStatus: statusFor(sources),
      accountId: null,
      trunkId: null,
    }
  const [source] = sources
  const isSole = sources.every(({ accountId }) => accountId === source?.accountId)
  return {
    reason: 'unknown_number',
    details: `No worker has the number (${numbers}); set it as inboundPhoneNumber of a worker of the trunk, as the carrier sends it in E.164; a name of a PBX belongs into extensions of the trunk.`,
    sipStatus: statusFor(sources),
    // Accounts may share a carrier: then it is unknown whose call this was.
    accountId: isSole ? (source?.accountId ?? null) : null,
    trunkId: isSole ? (source?.trunkId ?? null) : null,
  }
}
