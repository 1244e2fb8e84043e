/** Owns SIP messages without what tells whose they are: headers that steer a call stay with other names in them, all others go. */
import { readAddress } from '../../../sip/server/message/address.ts'
import { headerOf, withHeader } from '../../../sip/server/message/header-fields.ts'
import type { HeaderField, SipMessage } from '../../../sip/server/message/message.ts'
import { parseMessage } from '../../../sip/server/message/parse-message.ts'
import { readSipUri } from '../../../sip/server/message/uri.ts'
import { readVia } from '../../../sip/server/message/via.ts'
import { writeMessage } from '../../../sip/server/message/write-message.ts'
import { bracketedHost } from '../allowed-hosts.ts'
import type { Aliases } from './aliases.ts'
import { anonymousSdp } from './anonymise-sdp.ts'
import { descriptionOf } from './described-sound.ts'

const harmless = [
  'CSeq',
  'Max-Forwards',
  'Content-Type',
  'Allow',
  'Supported',
  'Require',
  'Expires',
  'Session-Expires',
  'Min-SE',
  'RSeq',
  'RAck',
  'Event',
  'Info-Package',
  'Recv-Info',
  'Accept',
]
const ofAddress = [
  'From',
  'To',
  'Contact',
  'P-Asserted-Identity',
  'P-Preferred-Identity',
  'Remote-Party-ID',
  'Refer-To',
  'Referred-By',
  'Route',
  'Record-Route',
]

/** Null: it is no SIP, and goes. */
export function anonymousSip(text: string, aliases: Aliases): string | null {
  const parsed = parseMessage(Buffer.from(text))
  if (parsed.kind !== 'message') return null
  const { message } = parsed
  const kept = message.headers.flatMap((field) => anonymousField(field, aliases) ?? [])
  const sdp = descriptionOf(message)
  const body = sdp === null ? anonymousKeys(message) : anonymousSdp(`${sdp.trimEnd()}\r\n`, aliases)
  // Of a body of several parts the description is left.
  const headers = sdp === null ? kept : withHeader({ headers: kept }, 'Content-Type', 'application/sdp').headers
  const common = { headers, body: Buffer.from(body ?? '') }
  const made: SipMessage =
    message.kind === 'request'
      ? { ...message, ...common, uri: anonymousUri(message.uri, aliases) }
      : { ...message, ...common, reason: message.status < 300 ? 'OK' : 'Refused' }
  return writeMessage(made).toString()
}

function anonymousField({ name, value }: HeaderField, aliases: Aliases): HeaderField | null {
  if (harmless.includes(name)) return { name, value }
  if (name === 'Call-ID') return { name, value: aliases.token('call', value) }
  if (name === 'Via') return { name, value: anonymousVia(value, aliases) }
  if (!ofAddress.includes(name)) return null
  const address = readAddress(value)
  if (!address) return null
  const tag = address.params.get('tag')
  return { name, value: `<${anonymousUri(address.uri, aliases)}>${tag ? `;tag=${aliases.token('tag', tag)}` : ''}` }
}

function anonymousVia(value: string, { address, token }: Aliases): string {
  const via = readVia(value)
  if (!via) return 'SIP/2.0/UDP host.invalid;branch=z9hG4bK1'
  const branch = via.params.get('branch') ?? ''
  return `SIP/2.0/${via.transport} ${bracketedHost(address(via.host))}:${via.port ?? 5060};rport;branch=z9hG4bK${token('branch', branch)}`
}

function anonymousUri(text: string, { address, user }: Aliases): string {
  const uri = readSipUri(text)
  if (!uri) return 'sip:anonymous@host.invalid'
  const place = `${bracketedHost(address(uri.host))}${uri.port === null ? '' : `:${uri.port}`}`
  return uri.user === null ? `sip:${place}` : `sip:${user(uri.user)}@${place}`
}

/** Keys become others: they may be somebody's secret. Null: another kind of body, which goes. */
function anonymousKeys(message: SipMessage): string | null {
  const type = (headerOf(message, 'Content-Type') ?? '').toLowerCase()
  const text = new TextDecoder().decode(message.body)
  if (type.startsWith('application/dtmf-relay')) return text.replace(/(Signal\s*=\s*)\S+/i, '$11')
  return type.startsWith('application/dtmf') ? '1' : null
}
