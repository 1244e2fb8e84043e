/**
 * Owns telling the peer of a process that died that its call is over: a BYE in the dead one's name, with a CSeq beyond all of it (RFC 3261 §12.2.1,
 * §15.1.1); a CANCEL by the Via of its INVITE where nobody has answered yet (§9.1).
 * It is repeated as the transport wants it, for 32 s, and a challenge is answered where the dead one would have.
 */
import { sequenceOfHeir, type DialogFacts } from '../../model/sip-dialog.ts'
import type { InheritedDialog, TrunkAccess } from '../../model/telephony.ts'
import type { CallDeps } from '../live-calls.ts'
import { seenAt } from '../server/seen-at.ts'
import type { OutgoingOptions } from '../stack-types.ts'
import { authOf } from './attempt.ts'
import { placeUri } from './caller-id.ts'

export type HeirDeps = Pick<CallDeps, 'stack' | 'pins' | 'log'> & {
  /** False: a drachtio-server, which sends within dialogs it knows, and knows those of its former apps. */
  readonly isEmbedded: boolean
}

/** Ms in which a CANCEL is out. The server repeats it where it must, and the library tells of no answer to it. */
const cancelWithin = 1_000

/** Resolves when the peer has answered, or nothing more can be done for it. */
export async function tellPeer(deps: HeirDeps, inherited: InheritedDialog): Promise<void> {
  const { stack, log, isEmbedded } = deps
  const { callId, dialog } = inherited
  if (!isEmbedded) return stack.orphaned(dialog.name)
  if (dialog.early) {
    await stack.request(dialog.remoteTarget, cancelOf(dialog, dialog.early), cancelWithin)
    return log.info('the INVITE of a dead edge was canceled', { callId })
  }
  const answered = await stack.request(uriOf(dialog), byeOf(deps, inherited))
  if (answered.kind === 'answered') {
    const { status } = answered.response
    return log.info('the peer of a dead edge was told', { callId, status })
  }
  log.warn('the peer of a dead edge cannot be told: it does not answer, or only it can connect', {
    callId,
    protocol: dialog.seen.protocol,
    details: answered.details,
  })
}

function cancelOf(dialog: DialogFacts, { via }: NonNullable<DialogFacts['early']>): OutgoingOptions {
  const { routeSet, localSequence, seen } = dialog
  return {
    method: 'CANCEL',
    headers: {
      From: dialog.local,
      To: dialog.remote,
      'call-id': dialog.callId,
      CSeq: `${localSequence} CANCEL`,
      ...(routeSet.length > 0 && { Route: routeSet.join(', ') }),
      Reason: 'SIP ;cause=503 ;text="connection lost"',
      ...seenAt({ ...seen, via }),
    },
    // Where the INVITE went, whatever its names lead to now.
    proxy: placeUri(null, { host: seen.address, port: seen.port, transport: seen.protocol }),
  }
}

function byeOf(deps: HeirDeps, { dialog, heirs, trunk }: InheritedDialog): OutgoingOptions {
  const auth = trunk && proofFor(deps, trunk, dialog)
  const { routeSet, remoteTarget } = dialog
  const [first] = routeSet
  const isStrict = first !== undefined && !isLoose(first)
  const routes = isStrict ? [...routeSet.slice(1), `<${remoteTarget}>`] : routeSet
  return {
    method: 'BYE',
    headers: {
      From: dialog.local,
      To: dialog.remote,
      'call-id': dialog.callId,
      CSeq: `${sequenceOfHeir(dialog, heirs)} BYE`,
      ...(routes.length > 0 && { Route: routes.join(', ') }),
      Reason: 'SIP ;cause=503 ;text="connection lost"',
      ...seenAt(dialog.seen),
    },
    ...(auth && { auth }),
    // The certificate is named by the next hop, which stands in the place of Route then.
    ...(trunk?.tls && { client: trunk.tls, proxy: nextHopOf(dialog) }),
  }
}

/** Routes of before RFC 3261 (no `lr`) stand in the Request-URI. §12.2.1.1. */
function uriOf({ routeSet: [first], remoteTarget }: DialogFacts): string {
  return first === undefined || isLoose(first) ? remoteTarget : uriIn(first)
}

const nextHopOf = ({ routeSet: [first], remoteTarget }: DialogFacts): string =>
  first === undefined ? remoteTarget : uriIn(first)

const uriIn = (route: string): string => /<([^>]*)>/.exec(route)?.[1] ?? route

const isLoose = (route: string): boolean => /;lr(?=[;=?>]|$)/i.test(route)

/** Who called us proved itself to us, and not we to it. */
function proofFor({ pins }: HeirDeps, trunk: TrunkAccess, { localSequence, seen }: DialogFacts) {
  if (localSequence === 0) return null
  const gateways = trunk.settings.gateways ?? []
  const gateway = gateways.find(({ host }) => host === seen.address) ?? gateways[0]
  pins?.adopt(trunk)
  return authOf(trunk, gateway?.host ?? seen.address, pins)
}
