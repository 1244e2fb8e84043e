/** Owns the order in which gateways are tried for an outbound call. RFC 3263 §4.3. */
import type { TrunkAccess } from '../../model/telephony.ts'
import type { Gateway } from '../../model/trunk.ts'

export type WayOut = { readonly trunk: TrunkAccess; readonly gateway: Gateway }

/** However many a trunk names, a caller does not wait for more. */
const maxAttempts = 12

/** Trunks in their order, the gateways of each in theirs; those known not to answer come last. */
export function orderWays(
  trunks: readonly TrunkAccess[],
  isReachable: (gateway: Gateway, trunk: TrunkAccess) => boolean,
): WayOut[] {
  const ways = trunks.flatMap((trunk) => (trunk.settings.gateways ?? []).map((gateway) => ({ trunk, gateway })))
  const { up = [], down = [] } = Object.groupBy(ways, ({ trunk, gateway }) =>
    isReachable(gateway, trunk) ? 'up' : 'down',
  )
  return [...up, ...down].slice(0, maxAttempts)
}
