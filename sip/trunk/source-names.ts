/**
 * Owns the names that the calls of a trunk come from: looked up while the trunk is kept, again and again, because carriers move. What was found
 * stays when the DNS does not answer; the store forgets what was not seen for a day.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import type { Telephony, TrunkAccess } from '../../model/telephony.ts'
import { sourceNamesOf } from '../../model/trunk.ts'
import type { Resolver } from '../server/transport/dns-resolver.ts'
import { resolveTargets } from '../server/transport/resolve-targets.ts'
import type { Gate } from './gate.ts'

export type SourceNamesDeps = {
  readonly telephony: Pick<Telephony, 'found'>
  readonly resolver: Resolver
  readonly clock: Clock
  readonly log: Log
  /** 0 ≤ x < 1. */
  readonly random: () => number
  readonly gate: Gate
}

export type SourceNames = { /** Idempotent. */ close(): void }

/** Ms between two look-ups, with jitter: records of carriers live for minutes. */
const interval = { least: 45_000, spread: 30_000 }
const firstWithin = 1_000
/** Of one name. */
const maxAddresses = 64

/** Of a trunk without such names nothing is asked. */
export function createSourceNames(deps: SourceNamesDeps, trunk: TrunkAccess): SourceNames {
  const { clock, log, random, gate, telephony } = deps
  const names = sourceNamesOf(trunk.settings)
  const abort = new AbortController()
  let cancel: Cancel = () => undefined

  const lookUp = async (name: string): Promise<void> => {
    const addresses = await gate(() => addressesOf(deps, name, abort.signal))
    if (!abort.signal.aborted) await telephony.found(trunk.id, { name, addresses })
  }
  const round = async (): Promise<void> => {
    const looked = await Promise.allSettled(names.map(lookUp))
    if (abort.signal.aborted) return
    for (const [index, { status, ...rest }] of looked.entries())
      if (status === 'rejected')
        log.warn('a name that calls of a trunk come from has no address', {
          trunkId: trunk.id,
          host: names[index],
          ...rest,
        })
    lookIn(interval.least + interval.spread * random())
  }
  const lookIn = (ms: number): void => {
    cancel = clock.after(ms, () => void round())
  }
  if (names.length > 0) lookIn(firstWithin * random())
  return {
    close() {
      abort.abort()
      cancel()
    },
  }
}

/** As requests to the name would go (RFC 3263): those of its servers, or its own. Rejects when there are none. */
async function addressesOf({ resolver, clock, random }: SourceNamesDeps, host: string, signal: AbortSignal) {
  const destination = { host, port: null, transport: null, isSecure: false }
  const asking = { resolver, signal, clock, random, maxTargets: maxAddresses }
  const [served, own] = await Promise.allSettled([
    resolveTargets(destination, asking),
    resolveTargets({ ...destination, port: 5060 }, asking),
  ])
  const targets = [served, own].flatMap((found) => (found.status === 'fulfilled' ? found.value : []))
  if (targets.length === 0) throw served.status === 'rejected' ? served.reason : new Error('no address')
  return [...new Set(targets.map(({ remote }) => remote.address))].slice(0, maxAddresses)
}
