/** Owns Via: by which way an answer goes back. RFC 3261 §20.42, RFC 3581. */
import { headersOf } from './header-fields.ts'
import { hostPortText, readHostPort, readParams, splitAt, writeParams, type Params } from './header-text.ts'
import type { HeaderField } from './message.ts'

export type Via = {
  /** Upper case: `UDP`, `TCP`, `TLS`, also unknown ones. */
  readonly transport: string
  /** sent-by. An IPv6 address has no brackets here. */
  readonly host: string
  readonly port: number | null
  /** branch, received, rport (null: asked for), maddr, ttl … */
  readonly params: Params
}

/** Begins every branch that is unique by itself. RFC 3261 §8.1.1.7. */
export const magicCookie = 'z9hG4bK'

/** One value of the list. Space is allowed around `/` and `:`. Of another version too: its sender is to be told (505). */
export function readVia(value: string): Via | null {
  const [, transport, sentBy = '', rest = ''] =
    /^SIP\s*\/\s*\d\.\d\s*\/\s*([A-Za-z0-9\-.!%*_+`'~]+)\s+([^;]+)(;[\s\S]*)?$/i.exec(value) ?? []
  const place = readHostPort(sentBy.trim())
  const params = readParams(rest)
  return transport && place && params ? { transport: transport.toUpperCase(), ...place, params } : null
}

export const writeVia = ({ transport, host, port, params }: Via): string =>
  `SIP/2.0/${transport} ${hostPortText(host, port)}${writeParams(params)}`

/** The Via on top: of who sent us this request, or, in a response, our own. */
export function topViaOf(message: { readonly headers: readonly HeaderField[] }): Via | null {
  const first = headersOf(message, 'Via')[0]
  const value = first === undefined ? undefined : splitAt(first, ',')?.[0]
  return value === undefined ? null : readVia(value)
}

/** The message with another Via on top; those below stay. */
export function withTopVia<Message extends { readonly headers: readonly HeaderField[] }>(
  message: Message,
  via: Via,
): Message {
  const at = message.headers.findIndex((field) => field.name === 'Via')
  if (at === -1) return message
  const [, ...others] = splitAt(message.headers[at]?.value ?? '', ',') ?? []
  const headers = message.headers.with(at, { name: 'Via', value: [writeVia(via), ...others].join(', ') })
  return { ...message, headers }
}

export const branchOf = (via: Via): string | null => via.params.get('branch') ?? null
