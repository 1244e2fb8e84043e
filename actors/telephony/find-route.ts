/**
 * Owns whose an arriving call is, and what it is refused for: by the number first, then by who may deliver it. A refusal says to its account
 * which rule failed and how it is mended; to the other side it says nothing: an unknown source gets one answer for every number.
 */
import type { Arrival, InboundRoute, RefusedArrival } from '../../model/telephony.ts'
import {
  listInboundCandidates,
  listUnreachableWorkers,
  type InboundCandidate,
  type NumberedWorker,
} from '../../store/inbound-routes.ts'
import type { Sql } from '../../store/sql.ts'
import { listKnownSources, type KnownSource } from '../../store/trunk-addresses.ts'
import { readNational } from '../../model/number-format.ts'
import { reachedAddressOf } from '../../net/addresses.ts'
import { accessOf, type TrunkAccessDeps } from './trunk-access.ts'

export type RouteDeps = TrunkAccessDeps & { readonly sql: Sql }

const maxCalled = 10

export async function findRoute(deps: RouteDeps, arrival: Arrival): Promise<InboundRoute | RefusedArrival> {
  const address = reachedAddressOf(arrival.address)
  const called = arrival.called.slice(0, maxCalled)
  if (address === null) return nobody({ address: arrival.address, called, sources: [] })
  const candidates = await listInboundCandidates(deps.sql, called, address)
  const [first] = candidates
  if (first && isOpen(first)) return routeOf(deps, first)
  const sources = await listKnownSources(deps.sql, address)
  const national = await findNational(deps.sql, { address, called, sources })
  return national ? routeOf(deps, national) : explain(deps.sql, { address, called, candidates, sources })
}

const isOpen = ({ rule, isActive }: InboundCandidate): boolean => rule !== 'none' && isActive

/** A number within the country of the trunk that delivers it is one of the world's only when that trunk is known. */
async function findNational(sql: Sql, { address, called, sources }: From & { readonly called: readonly string[] }) {
  const readings = sources.flatMap(({ trunkId, numberFormat }) =>
    called.flatMap((text) => {
      const number = numberFormat && readNational(text, numberFormat)
      return number ? [{ trunkId, number }] : []
    }),
  )
  if (readings.length === 0) return null
  const numbers = [...new Set(readings.map(({ number }) => number))].slice(0, maxCalled)
  const candidates = await listInboundCandidates(sql, numbers, address)
  const isMeant = ({ trunk, toNumber }: InboundCandidate): boolean =>
    readings.some((reading) => reading.trunkId === trunk.id && reading.number === toNumber)
  return candidates.find((candidate) => isOpen(candidate) && isMeant(candidate)) ?? null
}

/** A caller from an allowed address needs no password, unless the trunk asks for it. */
function routeOf(deps: RouteDeps, { trunk, workerId, toNumber, rule }: InboundCandidate): InboundRoute {
  const mustAuthenticate = rule === 'password' || trunk.config.authenticateInbound === true
  return { trunk: accessOf(deps, trunk), workerId, toNumber, mustAuthenticate }
}

type Refused = {
  readonly address: string
  readonly called: readonly string[]
  readonly candidates: readonly InboundCandidate[]
  readonly sources: readonly KnownSource[]
}

async function explain(sql: Sql, refused: Refused): Promise<RefusedArrival> {
  const { address, called, candidates, sources } = refused
  const asleep = candidates.find(({ rule }) => rule === 'address')
  if (asleep) return inactive(asleep)
  const [closed] = candidates
  if (closed) return notAllowed(closed, { address, sources })
  const unreachable = await listUnreachableWorkers(sql, called)
  const own = unreachable.find(({ accountId }) => sources.some((source) => source.accountId === accountId))
  const nearest = own ?? unreachable[0]
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

function nobody({ address, called, sources }: Omit<Refused, 'candidates'>): RefusedArrival {
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
