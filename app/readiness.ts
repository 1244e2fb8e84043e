/** Owns what is told of the readiness of this process: which of its roles may take new calls at this moment. */
import type { NodePeers } from '../actors/node/node-beats.ts'
import type { Beginning } from '../model/load-gate.ts'
import type { Readiness, Role, Roles, Unready } from '../model/roles.ts'
import type { CallSide } from './call-side.ts'
import { fullRole } from './joint-gate.ts'

type Deps = {
  readonly roles: Roles
  readonly peers: Pick<NodePeers, 'heard'>
  readonly calls: Pick<CallSide, 'newCalls'>
}

export type ReadinessOfProcess = {
  read(): Readiness
  started(): void
  ending(): void
}

/** Of the roles that begin calls: what must be there elsewhere. */
const begins: Readonly<Partial<Record<Role, Beginning>>> = { gateway: 'web_call', sip: 'phone_call' }

export function createReadiness({ roles, peers, calls }: Deps): ReadinessOfProcess {
  let phase: 'starting' | 'draining' | null = 'starting'
  const stateOf = (role: Role): Unready | null => {
    if (phase !== null) return phase
    if (role === 'api' || role === 'mcp') return null
    if (calls.newCalls() === 'refused') return 'no_room'
    const beginning = begins[role]
    return beginning && fullRole(roles, peers, beginning) !== null ? 'no_peer' : null
  }
  return {
    read: () => Object.fromEntries([...roles].map((role) => [role, stateOf(role)])),
    started() {
      if (phase === 'starting') phase = null
    },
    ending: () => void (phase = 'draining'),
  }
}
