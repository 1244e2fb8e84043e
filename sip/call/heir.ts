/**
 * Owns telling the peer of a process that died that its call is over: a BYE in the dead one's name, with a CSeq beyond all of it (RFC 3261 §12.2.1,
 * §15.1.1); a CANCEL by the Via of its INVITE where nobody has answered yet (§9.1).
 * It is repeated as the transport wants it, for 32 s. Who may go on here is asked before (ask-over.ts).
 */
import { sequenceOfHeir, type DialogFacts } from '../../model/sip-dialog.ts'
import type { InheritedDialog } from '../../model/telephony.ts'
import type { CallDeps } from '../live-calls.ts'
import { seenAt } from '../server/seen-at.ts'
import type { OutgoingOptions } from '../stack-types.ts'
import { placeUri } from './caller-id.ts'
import { requestInPlaceOf } from './inherited-dialog.ts'

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
  const bye = byeOf(deps, inherited)
  const answered = await stack.request(bye.uri, bye.options)
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

function byeOf(deps: HeirDeps, inherited: InheritedDialog): { uri: string; options: OutgoingOptions } {
  const { dialog, heirs } = inherited
  const { uri, options } = requestInPlaceOf(deps, inherited, { method: 'BYE', sequence: sequenceOfHeir(dialog, heirs) })
  const headers = { ...options.headers, Reason: 'SIP ;cause=503 ;text="connection lost"' }
  return { uri, options: { ...options, method: 'BYE', headers } }
}
