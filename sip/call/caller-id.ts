/**
 * Owns how an outbound call is addressed: Request-URI, next hop, To, From and P-Asserted-Identity, as the trunk wants them. RFC 3261 §8.1,
 * §19.1; RFC 3325.
 */
import type { DialRequest } from '../../model/dial.ts'
import { writeNumber } from '../../model/number-format.ts'
import type { TrunkAccess } from '../../model/telephony.ts'
import type { Gateway, TrunkSettings } from '../../model/trunk.ts'
import { withoutBrackets } from '../../net/addresses.ts'
import { noParams, quoted, withParam } from '../server/message/header-text.ts'
import { writeUri } from '../server/message/uri.ts'
import { topViaOf } from '../server/message/via.ts'
import { defaultPortOf } from '../server/transport/via-of-way.ts'
import type { RequestIn } from '../stack-types.ts'

export type Addressed = {
  readonly uri: string
  /** Where it goes when that is not the host of the URI; null: as the URI says. */
  readonly proxy: string | null
  readonly headers: Readonly<Record<string, string>>
}

/** Where a trunk's numbers live: a name or address, and the port and transport where they must be said. */
export type Place = {
  readonly host: string
  readonly port?: number | undefined
  readonly transport?: Gateway['transport']
}

/** `sip:user@host:5061;transport=tls`. UDP is what a URI without transport means (RFC 3263 §4.1). */
export function placeUri(user: string | null, { host, port, transport }: Place): string {
  const params = transport === undefined || transport === 'udp' ? noParams : withParam(noParams, 'transport', transport)
  const bare = withoutBrackets(host)
  return writeUri({ scheme: 'sip', user, password: null, host: bare, port: port ?? null, params, headers: null })
}

/** Who sent this, as somebody to be called: over a connection it listens at the port of its Via, not at the one it came from (RFC 3261 §18.1.1). */
export function placeOfSender(request: RequestIn): Gateway {
  const { source_address: host, source_port, protocol } = request
  const transport = transports.find((one) => one === protocol.toLowerCase()) ?? 'udp'
  const port = transport === 'udp' ? source_port : viaOf(request)?.port
  return { host, transport, ...(port && port !== defaultPortOf(transport) && { port }) }
}

const transports = ['udp', 'tcp', 'tls'] as const
const viaOf = (request: RequestIn) => topViaOf({ headers: [{ name: 'Via', value: request.get('via') ?? '' }] })

export const gatewayUri = (gateway: Gateway): string => placeUri(null, gateway)

/** Where a request of a trunk is sent, and what it says of the way. */
export type Way = { readonly proxy?: string; readonly headers: Readonly<Record<string, string>> }

/**
 * The outbound proxy of the trunk, which takes itself off Route; else the gateway, where the Request-URI does not name it. A drachtio-server
 * leaves our Route out, and sends to the proxy all the same.
 */
export function wayTo({ outboundProxy, domain }: TrunkSettings, gateway: Gateway): Way {
  if (outboundProxy)
    return { proxy: placeUri(null, outboundProxy), headers: { Route: `<${placeUri(null, outboundProxy)};lr>` } }
  return { ...(domain && { proxy: gatewayUri(gateway) }), headers: {} }
}

/** Asks whether a gateway is there, as the trunk's requests go. */
export function optionsTo({ settings, tls }: Pick<TrunkAccess, 'settings' | 'tls'>, gateway: Gateway) {
  const { proxy, headers } = wayTo({ outboundProxy: settings.outboundProxy }, gateway)
  const { publicName, fromDomain } = settings
  const options = {
    method: 'OPTIONS',
    headers: {
      Accept: 'application/sdp',
      ...headers,
      ...(fromDomain && { From: `<${placeUri(null, { host: fromDomain })}>` }),
    },
    ...(proxy && { proxy }),
    ...(publicName && { publicName }),
    ...(tls && { client: tls }),
  }
  return { uri: gatewayUri(gateway), options }
}

/** The name or address that numbers and users of this trunk live under. */
export const realmHost = (settings: TrunkSettings, gateway: Gateway): string => settings.domain ?? gateway.host

/** Where numbers of this trunk are called. A domain says its ports itself (RFC 3263); how the gateway wants to be spoken to holds for it too. */
export const placeOf = ({ domain }: Pick<TrunkSettings, 'domain'>, gateway: Gateway): Place =>
  domain ? { host: domain, transport: gateway.transport } : gateway

/** Of an account or number of the trunk, without port and transport: From, To, P-Asserted-Identity. */
export const identityUri = (user: string, host: string): string => placeUri(user, { host })

/**
 * The number as this trunk dials it. A prefix stands in place of the plus sign: `00`, `9`, a carrier's `1234#`; one that ends in `+` keeps
 * it.
 */
export function dialed(number: string, { numberFormat, numberPrefix = '' }: TrunkSettings): string {
  const written = writeNumber(number, numberFormat?.called, numberFormat ?? {})
  return numberPrefix === '' ? written : `${numberPrefix}${written.replace(/^\+/, '')}`
}

/** A number of ours as this trunk is shown it: From, identities, Diversion, Referred-By. */
export const shown = (number: string, { numberFormat }: TrunkSettings): string =>
  writeNumber(number, numberFormat?.calling, numberFormat ?? {})

/**
 * With a domain of the trunk the Request-URI names it and the gateway is the next hop only: carriers look an account up by that name
 * (docs/design/sip.md "Caller ID").
 */
export function addressCall(
  { fromNumber, toNumber, headers = {} }: Pick<DialRequest, 'fromNumber' | 'toNumber' | 'headers'>,
  settings: TrunkSettings,
  gateway: Gateway,
): Addressed {
  const user = dialed(toNumber, settings)
  const place = placeOf(settings, gateway)
  const { host } = place
  const way = wayTo(settings, gateway)
  const own = filledIn(settings.headers, { from: shown(fromNumber, settings), to: user })
  return {
    uri: placeUri(user, place),
    proxy: way.proxy ?? null,
    headers: {
      ...without(own, headers),
      ...headers,
      ...way.headers,
      To: `<${identityUri(user, host)}>`,
      ...callerHeaders(fromNumber, settings, host),
    },
  }
}

/** `{from}` and `{to}` in the trunk's own headers: the numbers of the call, as the trunk writes them. */
function filledIn(
  headers: Readonly<Record<string, string>> = {},
  numbers: Readonly<Record<'from' | 'to', string>>,
): Record<string, string> {
  const filled = (value: string): string => value.replace(/\{(from|to)\}/g, (_, name: 'from' | 'to') => numbers[name])
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, filled(value)]))
}

/** What a call says itself replaces what its trunk says, in whichever case. */
function without(headers: Readonly<Record<string, string>>, others: Readonly<Record<string, string>>) {
  const names = new Set(Object.keys(others).map((name) => name.toLowerCase()))
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.has(name.toLowerCase())))
}

function callerHeaders(fromNumber: string, settings: TrunkSettings, host: string): Record<string, string> {
  const { displayName, identityHeader = 'asserted', username, fromDomain } = settings
  const number = shown(fromNumber, settings)
  const called = (user: string): string =>
    `${displayName ? `${quoted(displayName)} ` : ''}<${identityUri(user, fromDomain ?? host)}>`
  const name = identityHeader === 'preferred' ? 'P-Preferred-Identity' : 'P-Asserted-Identity'
  const identity = { [name]: called(number) }
  switch (settings.callerId ?? (settings.identityHeader ? 'identity' : 'from')) {
    case 'from':
      return { From: called(number) }
    case 'identity':
      return { From: called(number), ...identity }
    case 'username':
      return { From: called(username ?? number), ...identity }
  }
}

/** `tel:` takes E.164 as it is (RFC 3966 §5.1.4); a SIP URI says the number as it is dialed, where whoever follows it reaches the trunk. */
export function referTarget(to: string, settings: TrunkSettings, place: Place): string {
  if (settings.transferTo === 'tel') return `tel:${to}`
  return placeUri(dialed(to, settings), place)
}
