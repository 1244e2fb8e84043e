/** Owns where a caller who is not answered here is sent: by 302; who follows it is the caller's trunk. RFC 3261 §8.3, RFC 5806. */
import type { InboundRoute } from '../../model/telephony.ts'
import { answerWith } from '../answer-with.ts'
import type { RequestIn } from '../stack-types.ts'
import type { Arrived } from './admit-arrival.ts'
import { identityUri, placeOf, placeOfSender, referTarget, shown, type Place } from './caller-id.ts'

type Routed = { readonly invite: RequestIn; readonly route: InboundRoute }

/** By the gateway that it came from where the trunk names it, else by its first. */
export function placeOfCaller({ route, invite }: Routed): Place {
  const { settings } = route.trunk
  const gateways = settings.gateways ?? []
  const gateway = gateways.find(({ host }) => host === invite.source_address) ?? gateways[0]
  return placeOf(settings, gateway ?? placeOfSender(invite))
}

/** Before the answer. */
export function sendElsewhere(call: Arrived & Routed, to: string): void {
  const place = placeOfCaller(call)
  const { trunk, toNumber } = call.route
  const target = referTarget(to, trunk.settings, place)
  const diversion = `<${identityUri(shown(toNumber, trunk.settings), place.host)}>;reason=unconditional`
  answerWith(call.reply, 302, { headers: { Contact: `<${target}>`, Diversion: diversion } })
}
