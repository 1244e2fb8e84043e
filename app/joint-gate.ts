/** Owns that a process which leaves a part of each call to others takes only what they have room for: as they tell it in their beats. */
import type { NodePeers } from '../actors/node/node-beats.ts'
import { loadRefusalOf, type Beginning, type LoadGate, type LoadRefusal } from '../model/load-gate.ts'
import type { Role, Roles } from '../model/roles.ts'
import type { Telemetry } from '../model/telemetry.ts'

type Peers = Pick<NodePeers, 'heard'>

/** Calls that others with this role would begin at once. */
export const roomOf = (peers: Peers, role: Role): number =>
  peers
    .heard()
    .filter(({ roles, draining }) => roles.includes(role) && !draining)
    .reduce((sum, { room }) => sum + room, 0)

/** Outbound calls that may be placed: an edge must have room for them, too. */
export const phoneRoom = (gate: Pick<LoadGate, 'room'>, roles: Roles, peers: Peers): number =>
  Math.min(gate.room('phone_call'), roles.has('sip') ? Infinity : roomOf(peers, 'sip'))

/** What a beginning needs beside what this process does itself. */
const neededFor = (beginning: Beginning): readonly Role[] =>
  beginning === 'web_session' ? ['actors', 'gateway'] : ['actors']

/** The first role that others have and nobody has room in; null: there is room. */
export function fullRole(roles: Roles, peers: Peers, beginning: Beginning): Role | null {
  return neededFor(beginning).find((role) => !roles.has(role) && roomOf(peers, role) === 0) ?? null
}

/** They have none only because their database is away: a caller may be known from before, and is told otherwise by who looks for the number. */
const onlyHolds = (peers: Peers, role: Role): boolean =>
  peers.heard().some(({ roles, draining, holds }) => roles.includes(role) && !draining && holds)

type Deps = { readonly roles: Roles; readonly peers: Peers; readonly telemetry: Telemetry }

export function jointGate(own: LoadGate, { roles, peers, telemetry }: Deps): LoadGate {
  if (roles.has('actors') && roles.has('gateway')) return own
  const elsewhere = (beginning: Beginning): LoadRefusal | null => {
    const full = fullRole(roles, peers, beginning)
    if (full === null || (beginning === 'phone_call' && onlyHolds(peers, full))) return null
    telemetry.count('load.refused', { beginning, reason: 'nodes' })
    return loadRefusalOf('nodes')
  }
  return {
    ...own,
    refusal: (beginning) => elsewhere(beginning) ?? own.refusal(beginning),
    admit: (beginning) => elsewhere(beginning) ?? own.admit(beginning),
    admitPromised: (beginning) => elsewhere(beginning) ?? own.admitPromised(beginning),
  }
}
