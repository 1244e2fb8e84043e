/**
 * Owns what a request says that goes to the peer of a dialog in the place of the process that had it: by its routes, to its Contact, in its name and
 * behind its numbers (RFC 3261 §12.2.1). A challenge is answered where the dead one would have answered it.
 */
import type { DialogFacts } from '../../model/sip-dialog.ts'
import type { InheritedDialog, TrunkAccess } from '../../model/telephony.ts'
import type { CallDeps } from '../live-calls.ts'
import { seenAt } from '../server/seen-at.ts'
import type { InviteOptions } from '../stack-types.ts'
import { authAt, authOf } from './attempt.ts'

type InPlaceOf = { readonly uri: string; readonly options: Omit<InviteOptions, 'localSdp'> }

/** `method` with its CSeq. */
export function requestInPlaceOf(
  { pins }: Pick<CallDeps, 'pins'>,
  { dialog, trunk }: Pick<InheritedDialog, 'dialog' | 'trunk'>,
  { method, sequence }: { readonly method: string; readonly sequence: number },
): InPlaceOf {
  const { routeSet, remoteTarget } = dialog
  const auth = trunk && proofFor(pins, trunk, dialog)
  const routes = isStrict(dialog) ? [...routeSet.slice(1), `<${remoteTarget}>`] : routeSet
  const [first] = routeSet
  return {
    uri: first !== undefined && isStrict(dialog) ? uriIn(first) : remoteTarget,
    options: {
      headers: {
        From: dialog.local,
        To: dialog.remote,
        'call-id': dialog.callId,
        CSeq: `${sequence} ${method}`,
        ...(routes.length > 0 && { Route: routes.join(', ') }),
        ...seenAt(dialog.seen),
      },
      ...(auth && { auth }),
      // The certificate is named by the next hop, which stands in the place of Route then.
      ...(trunk?.tls && { client: trunk.tls, proxy: first === undefined ? remoteTarget : uriIn(first) }),
    },
  }
}

/** Routes of before RFC 3261 (no `lr`) stand in the Request-URI. §12.2.1.1. */
export const isStrict = ({ routeSet: [first] }: DialogFacts): boolean => first !== undefined && !isLoose(first)

const uriIn = (route: string): string => /<([^>]*)>/.exec(route)?.[1] ?? route

const isLoose = (route: string): boolean => /;lr(?=[;=?>]|$)/i.test(route)

/** As the dead one would have proved it. */
function proofFor(pins: CallDeps['pins'], trunk: TrunkAccess, { localSequence, seen }: DialogFacts) {
  if (localSequence === 0) return authAt(trunk, seen.address, pins)
  const gateways = trunk.settings.gateways ?? []
  const gateway = gateways.find(({ host }) => host === seen.address) ?? gateways[0]
  pins?.adopt(trunk)
  return authOf(trunk, gateway?.host ?? seen.address, pins)
}
