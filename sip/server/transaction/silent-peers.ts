/**
 * Owns who has let a request run out of time lately. RFC 3263 §4.3 asks the next server of a name after 64*T1, and a caller has gone by then:
 * for a while a server that was silent has less time, so that calls reach the one behind it. OPTIONS of trunks find it out between calls.
 */
import type { Flow } from '../transport/transport.ts'

export type SilentPeers = {
  ranOutOfTime(flow: Flow): void
  answered(flow: Flow): void
  isSilent(flow: Flow): boolean
}

/** Ms. */
const rememberedFor = 120_000
const maxPeers = 1_000

export function createSilentPeers(now: () => number): SilentPeers {
  const since = new Map<string, number>()
  const keyOf = ({ protocol, remote }: Flow): string => `${protocol} ${remote.address} ${remote.port}`
  return {
    ranOutOfTime(flow) {
      const [oldest] = since.keys()
      if (since.size >= maxPeers && oldest !== undefined) since.delete(oldest)
      since.delete(keyOf(flow))
      since.set(keyOf(flow), now())
    },
    answered: (flow) => void since.delete(keyOf(flow)),
    isSilent: (flow) => now() - (since.get(keyOf(flow)) ?? -Infinity) < rememberedFor,
  }
}
