/**
 * Owns whom the server may speak to of those that a name or a URI led to. Gateways are named by tenants, and Contacts and Record-Routes by
 * their peers: neither may make the server write into the network behind it.
 */
import { isIP } from 'node:net'
import { isElsewhere, type SeenPeer } from './seen-peer.ts'
import { type Target, TransportError } from './transport.ts'

/** `host`: as it was asked for, a name or the address itself. */
export type MayReach = (address: string, host: string) => boolean

export const refusalOfHost = (host: string): string =>
  `${host} ${isIP(host) === 0 ? 'leads to' : 'is'} a private address; name it in SIP_ALLOW_HOSTS`

/** Outside dialogs: at least one. Throws TransportError when none may be reached. */
export function reachableTargets(targets: readonly Target[], host: string, mayReach: MayReach): readonly Target[] {
  const reachable = targets.filter(({ remote }) => mayReach(remote.address, host))
  if (reachable.length === 0) throw new TransportError(refusalOfHost(host))
  return reachable
}

/**
 * Within a dialog the peer may also be spoken to wherever it spoke from. A Contact of a phone or PBX behind a NAT names an address of the
 * network there, which is nobody here, or somebody else; one may name what no DNS knows. Then the request goes back by the way the peer's came,
 * as RFC 3581 has it of answers; and first of all by that way where such an address may be spoken to, but is another's here. A connection is tried last,
 * where its host does not listen where the Contact says.
 */
export function targetsInDialog(
  targets: readonly Target[],
  host: string,
  { mayReach, peer }: { readonly mayReach: MayReach; readonly peer: SeenPeer },
): readonly Target[] {
  const { protocol, remote } = peer.flow
  const back: Target = { protocol, remote, serverName: null }
  const reachable = targets.filter(
    (target) => target.remote.address === remote.address || mayReach(target.remote.address, host),
  )
  if (reachable.length === 0) return [back]
  if (reachable.some((target) => isElsewhere(target, peer))) return [back, ...reachable]
  return reachable.some((target) => isBesideConnection(target, back)) ? [...reachable, back] : reachable
}

/** Another port of the host that has a connection with us: who opens one need not listen where its Contact says. */
const isBesideConnection = ({ protocol, remote }: Target, { remote: seen, ...back }: Target): boolean =>
  protocol !== 'udp' && protocol === back.protocol && remote.address === seen.address && remote.port !== seen.port
