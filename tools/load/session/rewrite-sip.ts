/**
 * Owns how a recorded SIP message of a caller becomes one of a new call: Call-ID, tags, branches, addresses, ports and keys of then mean nothing now. What
 * else it said stays as it stood.
 */
import { addressOf, readAddress } from '../../../sip/server/message/address.ts'
import { hasTag, headerOf, valuesOf, withHeader } from '../../../sip/server/message/header-fields.ts'
import { hostPortText, hostText, writeParams } from '../../../sip/server/message/header-text.ts'
import type { SipRequest } from '../../../sip/server/message/message.ts'
import { readSipUri } from '../../../sip/server/message/uri.ts'
import { familyOf } from '../../../net/addresses.ts'
import type { SipTarget } from '../../callers/sip-socket.ts'
import { descriptionOf } from './described-sound.ts'

/** The call that is made now. */
export type NewCall = {
  readonly target: SipTarget
  readonly local: { readonly address: string; readonly port: number }
  readonly rtpPort: number
  readonly callId: string
  readonly fromTag: string
  /** Null before the answer. */
  readonly toTag: string | null
  /** Where requests of the dialog go: the contact that answered; null before. */
  readonly contact: string | null
  /** Record-Route of the answer, in the order of a caller (RFC 3261 §12.1.2). */
  readonly routes: readonly string[]
  /** In place of the recorded number; null: as it was. */
  readonly called: string | null
  readonly calling: string | null
}

/** What only held for the recorded call: ways, proofs of a password, timers that were agreed on. */
const dropped = [
  'Route',
  'Record-Route',
  'Authorization',
  'Proxy-Authorization',
  'Session-Expires',
  'Min-SE',
  'Identity',
]
/** Of these the number or name stays, and the host is this one. */
const ofCaller = ['P-Asserted-Identity', 'P-Preferred-Identity', 'Remote-Party-ID', 'Reply-To', 'Referred-By']

const via = { udp: 'UDP', tcp: 'TCP', tls: 'TLS' } as const

/** `branch`: of the transaction. */
export function rewriteRequest(recorded: SipRequest, call: NewCall, branch: string): SipRequest {
  const { target, local } = call
  const own = hostPortText(local.address, local.port)
  const transport = target.protocol === 'udp' ? '' : `;transport=${target.protocol}`
  const calling = call.calling ?? userOf(recorded, 'From') ?? 'caller'
  const calledUri = `sip:${call.called ?? userOf(recorded, 'To') ?? 'service'}@${hostText(target.host)}:${target.port}${transport}`
  const isInDialog = call.toTag !== null && call.contact !== null
  let message: SipRequest = { ...recorded, uri: isInDialog ? (call.contact ?? calledUri) : calledUri }
  for (const name of dropped) message = withHeader(message, name)
  for (const name of ofCaller) if (headerOf(message, name) !== null) message = withOwnHost(message, name, own)
  message = withHeader(message, 'Via', `SIP/2.0/${via[target.protocol]} ${own};rport;branch=${branch}`)
  message = withHeader(message, 'From', `${displayOf(recorded)}<sip:${calling}@${own}>;tag=${call.fromTag}`)
  message = withHeader(message, 'To', `<${calledUri}>${call.toTag === null ? '' : `;tag=${call.toTag}`}`)
  message = withHeader(message, 'Call-ID', call.callId)
  if (headerOf(message, 'Contact') !== null)
    message = withHeader(message, 'Contact', `<sip:${calling}@${own}${transport}>`)
  if (isInDialog && call.routes.length > 0) message = withHeader(message, 'Route', ...call.routes)
  for (const name of ['Require', 'Supported'] as const) message = withoutReliability(message, name)
  const recordedSdp = descriptionOf(recorded)
  if (recordedSdp === null) return message
  const sdp = rewriteSdp(recordedSdp, { ...local, port: call.rtpPort })
  return { ...withHeader(message, 'Content-Type', 'application/sdp'), body: Buffer.from(sdp) }
}

/** Nothing that is provisional is acknowledged here. RFC 3262. */
function withoutReliability(message: SipRequest, name: 'Require' | 'Supported'): SipRequest {
  if (!hasTag(message, name, '100rel')) return message
  const others = valuesOf(message, name).filter((tag) => tag.toLowerCase() !== '100rel')
  return others.length === 0 ? withHeader(message, name) : withHeader(message, name, others.join(', '))
}

const userOf = (message: SipRequest, name: 'From' | 'To'): string | null =>
  readSipUri(addressOf(message, name)?.uri ?? '')?.user ?? null

function displayOf(message: SipRequest): string {
  const name = addressOf(message, 'From')?.displayName
  return name ? `"${name.replace(/["\\\r\n]/g, '')}" ` : ''
}

function withOwnHost(message: SipRequest, name: string, own: string): SipRequest {
  const address = readAddress(headerOf(message, name) ?? '')
  const user = readSipUri(address?.uri ?? '')?.user
  if (!address || !user) return withHeader(message, name)
  return withHeader(message, name, `<sip:${user}@${own}>${writeParams(address.params)}`)
}

/** Ways and keys of the recorded end. Sound goes as plain RTP: what was encrypted cannot be recorded. */
const ofOldEnd =
  /^a=(?:candidate|ice-|fingerprint|setup|crypto|ssrc|rtcp:|remote-candidates|end-of-candidates|identity)/

/** The same offer from another end. Sections other than the first of sound are refused. */
export function rewriteSdp(text: string, own: { readonly address: string; readonly port: number }): string {
  const family = familyOf(own.address)
  let sections = 0
  const lines = text
    .trimEnd()
    .split(/\r?\n/)
    .flatMap((line) => {
      if (ofOldEnd.test(line)) return []
      if (line.startsWith('o=')) return [line.replace(/IN IP[46] \S+$/, `IN IP${family} ${own.address}`)]
      if (line.startsWith('c=')) return [`c=IN IP${family} ${own.address}`]
      if (!line.startsWith('m=')) return [line]
      const [, kind, protocol = '', rest = ''] = /^m=(\w+) \d+(?:\/\d+)? (\S+)(.*)$/.exec(line) ?? []
      const isSound = kind === 'audio' && sections++ === 0
      const plain = protocol.replace(/^(?:UDP\/TLS\/)?RTP\/SAVPF?$/, 'RTP/AVP')
      return [`m=${kind} ${isSound ? own.port : 0} ${plain}${rest}`]
    })
  return `${lines.join('\r\n')}\r\n`
}
