/**
 * Owns how an outbound call is addressed: Request-URI, next hop, To, From and P-Asserted-Identity, as the trunk wants them. RFC 3261 §8.1,
 * §19.1; RFC 3325.
 */
import type { TrunkSettings } from '../../model/trunk.ts'
import { withoutBrackets } from '../../net/addresses.ts'
import { noParams, withParam } from '../server/message/header-text.ts'
import { writeUri } from '../server/message/uri.ts'

export type Gateway = NonNullable<TrunkSettings['gateways']>[number]

export type Addressed = {
  readonly uri: string
  /** Where it goes when that is not the host of the URI; null: as the URI says. */
  readonly proxy: string | null
  readonly headers: Readonly<Record<string, string>>
}

/** Where a trunk's numbers live: a name or address, and the port and transport where they must be said. */
type Place = { readonly host: string; readonly port?: number | undefined; readonly transport?: Gateway['transport'] }

/** `sip:user@host:5061;transport=tls`. UDP is what a URI without transport means (RFC 3263 §4.1). */
export function placeUri(user: string | null, { host, port, transport }: Place): string {
  const params = transport === undefined || transport === 'udp' ? noParams : withParam(noParams, 'transport', transport)
  const bare = withoutBrackets(host)
  return writeUri({ scheme: 'sip', user, password: null, host: bare, port: port ?? null, params, headers: null })
}

export const gatewayUri = (gateway: Gateway): string => placeUri(null, gateway)

/** The name or address that numbers and users of this trunk live under. */
export const realmHost = (settings: TrunkSettings, gateway: Gateway): string => settings.domain ?? gateway.host

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
  const host = realmHost(settings, gateway)
  const place = settings.domain ? { host, transport: gateway.transport } : gateway
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

/** `tel:` takes E.164 as it is (RFC 3966 §5.1.4); a SIP URI says the number as it is dialed. */
export function referTarget(to: string, settings: TrunkSettings, host: string): string {
  if (settings.transferTo === 'tel') return `tel:${to}`
  return identityUri(dialed(to, settings.numberPrefix), host)
}
