/** Owns where the service may be made to speak SIP: tenants name the gateways of their trunks, and the network behind the service is the operator's. */
import { createAllowList } from '../net/allow-list.ts'
import { isPublic } from '../net/special-networks.ts'
import type { MayReach } from '../sip/server/transport/reachable-targets.ts'

/** Of names in the list; the oldest is forgotten first. */
const maxKnown = 1_000

/** Whatever a name of the list leads to is good: the operator wrote it. Throws for an entry that is no name, address or network. */
export function createSipReach(allowHosts: readonly string[]): MayReach {
  const allowed = createAllowList(allowHosts)
  /** The answer to a challenge goes to the address that challenged, and does not say the name any more. */
  const known = new Set<string>()

  function learn(address: string): true {
    const [oldest] = known
    if (known.size >= maxKnown && oldest !== undefined) known.delete(oldest)
    known.add(address)
    return true
  }

  return (address, host) => {
    if (isPublic(address) || allowed.address(address)) return true
    return allowed.name(host) ? learn(address) : known.has(address)
  }
}
