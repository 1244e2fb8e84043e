/**
 * Owns that this edge examines a trunk for whoever asks on the bus: a few at a time, within the time that is waited for. Who asks is a tenant: it is not told
 * where a name leads.
 */
import { randomUUID } from 'node:crypto'
import type { Bus, BusMessage, Subscription } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import type { Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import type { Telephony } from '../../model/telephony.ts'
import {
  examinedWithin,
  examineSubject,
  TrunkAsked,
  type TrunkCheck,
  type TrunkChecks,
} from '../../model/trunk-check.ts'
import type { MediaPlane } from '../../media/plane/media-plane.ts'
import type { RealmPins } from '../realm-pins.ts'
import { readSipUri } from '../server/message/uri.ts'
import type { Resolver } from '../server/transport/dns-resolver.ts'
import { destinationOf, resolveTargets } from '../server/transport/resolve-targets.ts'
import type { SipStack } from '../stack.ts'
import { examineTrunk } from './examine-trunk.ts'
import type { z } from 'zod'

type Deps = {
  readonly bus: Bus
  readonly telephony: Pick<Telephony, 'trunkOf'>
  readonly stack: SipStack
  readonly pins: RealmPins
  readonly resolver: Resolver
  readonly plane: Pick<MediaPlane, 'openPhone'>
  readonly clock: Clock
  readonly log: Log
  readonly random: () => number
}

const mostAtOnce = 4
/** Ms of one more check, which is begun before this much of the time is left. */
const longestCheck = 10_000
const queue = 'sip-edges'

export function answerExaminations(deps: Deps): Subscription {
  const { bus, telephony, pins, clock, log } = deps
  const ending = new AbortController()
  let underWay = 0

  const resolve = (uri: string) => {
    const read = readSipUri(uri)
    if (!read) return Promise.reject(new Error('this is no host name'))
    return resolveTargets(destinationOf(read), { ...deps, signal: ending.signal })
  }
  const examine = async (asked: z.infer<typeof TrunkAsked>): Promise<TrunkCheck[] | null> => {
    const trunk = await telephony.trunkOf?.(asked.accountId, asked.trunkId)
    if (!trunk) return null
    pins.adopt(trunk)
    const until = clock.now() + examinedWithin - longestCheck
    const openLine = () => deps.plane.openPhone()
    const checks: TrunkCheck[] = []
    const looking = examineTrunk({ ...deps, resolve, openLine, newId: randomUUID, hidesAddresses: true }, trunk, null)
    for await (const check of looking) {
      checks.push(check)
      if (ending.signal.aborted || clock.now() > until) break
    }
    return checks
  }
  const answer = async (message: BusMessage): Promise<void> => {
    const asked = TrunkAsked.safeParse(fromBytes(message.payload)).data
    const reply = (checks: TrunkCheck[] | null): void =>
      message.respond(toBytes({ checks } satisfies z.infer<typeof TrunkChecks>))
    if (!asked || underWay >= mostAtOnce) return reply(null)
    underWay++
    try {
      reply(await examine(asked))
    } catch (error) {
      log.error('a trunk could not be examined', { trunkId: asked.trunkId, error })
      reply(null)
    } finally {
      underWay--
    }
  }
  const asking = bus.subscribe(examineSubject, (message) => void answer(message), { queue })
  return {
    close() {
      asking.close()
      ending.abort()
    },
  }
}
