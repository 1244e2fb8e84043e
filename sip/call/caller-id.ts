/**
 * Owns how an outbound call is addressed: Request-URI, next hop, To, From and P-Asserted-Identity, as the trunk wants them. RFC 3261 §8.1,
 * §19.1; RFC 3325.
 */
import type { TrunkSettings } from '../../model/trunk.ts'
import { withoutBrackets } from '../../net/addresses.ts'
import { noParams, withParam } from '../server/message/header-text.ts'
import { writeUri } from '../server/message/uri.ts'
import { topViaOf } from '../server/message/via.ts'
import { defaultPortOf } from '../server/transport/via-of-way.ts'
import type { RequestIn } from '../stack-types.ts'

export type Gateway = NonNullable<TrunkSettings['gateways']>[number]

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
export const dialed = (number: string, prefix = ''): string =>
  prefix === '' ? number : `${prefix}${number.replace(/^\+/, '')}`

/**
 * With a domain of the trunk the Request-URI names it and the gateway is the next hop only: carriers look an account up by that name
 * (docs/design/sip.md "Caller ID").
 */
export function addressCall(
  { fromNumber, toNumber }: { readonly fromNumber: string; readonly toNumber: string },
  settings: TrunkSettings,
  gateway: Gateway,
): Addressed {
  const user = dialed(toNumber, settings.numberPrefix)
  const place = placeOf(settings, gateway)
  const { host } = place
  return {
    uri: placeUri(user, place),
    proxy: settings.domain ? gatewayUri(gateway) : null,
    headers: {
      ...settings.headers,
      To: `<${identityUri(user, host)}>`,
      ...callerHeaders(fromNumber, settings, host),
    },
  }
}

function callerHeaders(fromNumber: string, settings: TrunkSettings, host: string): Record<string, string> {
  const caller = `<${identityUri(fromNumber, host)}>`
  const identity = { 'P-Asserted-Identity': caller }
  switch (settings.callerId ?? 'from') {
    case 'from':
      return { From: caller }
    case 'identity':
      return { From: caller, ...identity }
    case 'username':
      return { From: `<${identityUri(settings.username ?? fromNumber, host)}>`, ...identity }
  }
}

/** `tel:` takes E.164 as it is (RFC 3966 §5.1.4); a SIP URI says the number as it is dialed, where whoever follows it reaches the trunk. */
export function referTarget(to: string, settings: TrunkSettings, place: Place): string {
  if (settings.transferTo === 'tel') return `tel:${to}`
  return placeUri(dialed(to, settings.numberPrefix), place)
}
