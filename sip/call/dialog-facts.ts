/** Owns what is kept of a dialog beside its process, read from the messages that made it: by whichever SIP server. RFC 3261 §12.1. */
import { flawOf } from '../../model/json.ts'
import type { DialogFacts } from '../../model/sip-dialog.ts'
import { addressOf, tagIn } from '../server/message/address.ts'
import { valuesOf } from '../server/message/header-fields.ts'
import type { HeaderField } from '../server/message/message.ts'
import { readCSeq } from '../server/message/numbered-fields.ts'
import { isTranslatedCallee, isTranslatedCaller } from '../server/transport/seen-peer.ts'
import type { MessageIn, RequestOut, SeenFrom, SipDialog } from '../stack-types.ts'

/**
 * `first`: the peer's INVITE, or its 200 to ours. Null: it names no Contact, or not where it came from, and nobody could speak to it; or a header of
 * it holds what no row can (NUL), and would keep those of other calls from being written.
 */
export function dialogFactsOf({ id, type, sip }: SipDialog, first: MessageIn & SeenFrom): DialogFacts | null {
  const isOurs = type === 'uac'
  const remoteTarget = contactIn(first)
  const { protocol, source_address: address, source_port: port } = first
  if (remoteTarget === null || !isProtocol(protocol) || address === undefined) return null
  const seen = { protocol, address, port: Number(port) || 5060 }
  const from = first.get('from') ?? ''
  const to = first.get('to') ?? ''
  const routes = valuesOf(fieldsOf(first, 'Record-Route'), 'Record-Route')
  const facts = {
    name: id,
    callId: sip.callId,
    local: isOurs ? from : `${to};tag=${sip.localTag}`,
    remote: isOurs ? to : from,
    routeSet: isOurs ? routes.toReversed() : routes,
    remoteTarget,
    localSequence: isOurs ? (readCSeq(first.get('cseq') ?? '')?.number ?? 0) : 0,
    seen: { ...seen, isTranslated: isTranslated(first, isOurs, seen.address) },
  }
  return flawOf(facts) === null ? facts : null
}

/** Of an INVITE that has just been sent; null as above. */
export function earlyFactsOf(invite: RequestOut): DialogFacts | null {
  const { uri, protocol, source_address: address, source_port: port } = invite
  const [from, callId, via] = [invite.get('from') ?? '', invite.get('call-id') ?? '', invite.get('via')]
  if (!isProtocol(protocol) || via === undefined || uri === undefined || address === undefined) return null
  const facts = {
    name: `${callId};from-tag=${tagIn(from) ?? ''}`,
    callId,
    local: from,
    remote: invite.get('to') ?? '',
    routeSet: valuesOf(fieldsOf(invite, 'Route'), 'Route'),
    remoteTarget: uri,
    localSequence: readCSeq(invite.get('cseq') ?? '')?.number ?? 0,
    seen: { protocol, address, port: Number(port) || 5060, isTranslated: false },
    early: { via },
  }
  return flawOf(facts) === null ? facts : null
}

/** After a request that may move the peer. Null: it is where it was, or at no address that a row can hold. RFC 3261 §12.2.1.2. */
export function movedTo(facts: DialogFacts, request: MessageIn): DialogFacts | null {
  const remoteTarget = contactIn(request)
  const isNews = remoteTarget !== null && remoteTarget !== facts.remoteTarget
  return !isNews || flawOf(remoteTarget) !== null ? null : { ...facts, remoteTarget }
}

/** Another process had it, and the peer has answered our INVITE in it. */
export function answeredFrom(facts: DialogFacts, { id: name, res }: SipDialog): DialogFacts {
  const { protocol, source_address: address, source_port: port } = res
  const isSeen = isProtocol(protocol) && address !== undefined
  const seen = isSeen ? { ...facts.seen, protocol, address, port: Number(port) || 5060 } : facts.seen
  const moved = movedTo(facts, res) ?? facts
  return { ...moved, name, seen }
}

const contactIn = (message: MessageIn): string | null => addressOf(fieldsOf(message, 'Contact'), 'Contact')?.uri ?? null

function isTranslated(first: MessageIn, isOurs: boolean, address: string): boolean {
  const { headers } = fieldsOf(first, 'Contact', 'Via')
  const remote = { address, port: 0 }
  const flow = { protocol: 'udp', remote, local: remote, connection: 0 } as const
  const rest = { headers, body: new Uint8Array() }
  return isOurs
    ? isTranslatedCallee({ kind: 'response', status: 200, reason: '', ...rest }, flow)
    : isTranslatedCaller({ kind: 'request', method: 'INVITE', uri: '', ...rest }, flow)
}

const fieldsOf = (message: MessageIn, ...names: readonly string[]): { readonly headers: HeaderField[] } => ({
  headers: names.flatMap((name) => {
    const value = message.get(name)
    return value === undefined ? [] : [{ name, value }]
  }),
})

const isProtocol = (name: string | undefined): name is DialogFacts['seen']['protocol'] =>
  name === 'udp' || name === 'tcp' || name === 'tls'
