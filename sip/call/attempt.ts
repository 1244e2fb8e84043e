/** Owns one try at one gateway: the INVITE as this trunk wants it, and when to give the gateway up. RFC 3261 §13.2, §8.1. */
import type { Cancel } from '../../model/clock.ts'
import type { DialRequest } from '../../model/dial.ts'
import type { TrunkAccess } from '../../model/telephony.ts'
import { authUserOf } from '../../model/trunk.ts'
import type { Invitation, InvitationResult } from '../invitation.ts'
import type { CallDeps } from '../live-calls.ts'
import type { RealmPins } from '../realm-pins.ts'
import type { Password, RequestOut } from '../stack-types.ts'
import { addressCall } from './caller-id.ts'
import { wishesOf, type PhoneMedia } from './phone-media.ts'
import type { WayOut } from './ways-out.ts'

export type AttemptDeps = Pick<CallDeps, 'stack' | 'clock' | 'pins'> & {
  readonly media: PhoneMedia
  readonly request: Pick<DialRequest, 'fromNumber' | 'toNumber' | 'headers'>
  /** The INVITE went out. */
  readonly sent?: (invite: RequestOut) => void
  /** 180 and the like; never 100. */
  readonly progress: (status: number, reason: string) => void
}

export type AttemptResult = InvitationResult & { readonly rang: boolean }

export type Attempt = {
  readonly result: Promise<AttemptResult>
  /** CANCEL; the result is 487, as a rule. */
  cancel(): void
  /** Nobody waits for the result any more. */
  abandon(): void
}

/**
 * Ms until a gateway is given up that says nothing at all (a 100 is a word), and one that says no more than that; null: for ever. A real
 * drachtio-server keeps the 100 to itself.
 */
export type Patience = { readonly word: number | null; readonly ring: number | null }

export function attempt(deps: AttemptDeps, { trunk, gateway }: WayOut, patience: Patience): Attempt {
  const { stack, clock, media } = deps
  const { promise: result, resolve } = Promise.withResolvers<AttemptResult>()
  let rang = false
  const end = (ended: InvitationResult) => {
    stopWaiting()
    resolve({ ...ended, rang })
  }
  const giveUp = () => {
    invitation.abandon()
    end({ kind: 'unreachable', details: `${gateway.host} did not answer` })
  }
  const waitFor = (ms: number | null): Cancel => (ms === null ? () => undefined : clock.after(ms, giveUp))
  let cancelWait = waitFor(patience.word)
  const stopWaiting = () => cancelWait()
  const invitation: Invitation = stack.invite(...inviteOf(deps, { trunk, gateway }), {
    provisional(status, reason) {
      stopWaiting()
      if (status === 100) return void (cancelWait = waitFor(rang ? null : patience.ring))
      rang = true
      deps.progress(status, reason)
    },
    ended: end,
    ...(deps.sent && { sent: deps.sent }),
  })
  return {
    result,
    cancel: () => invitation.cancel(),
    abandon() {
      stopWaiting()
      invitation.abandon()
    },
  }

  function inviteOf({ request }: AttemptDeps, way: WayOut) {
    const { settings } = way.trunk
    media.wish(wishesOf(settings, 'offer', way.gateway.transport ?? 'udp'))
    const { uri, proxy, headers } = addressCall(request, settings, way.gateway)
    const auth = authOf(way.trunk, way.gateway.host, deps.pins)
    const { publicName } = settings
    const options = {
      headers: { ...headers },
      localSdp: media.offer(),
      ...(auth && { auth }),
      ...(proxy && { proxy }),
      ...(publicName && { publicName }),
      ...(way.trunk.tls && { client: way.trunk.tls }),
    }
    return [uri, options] as const
  }
}

/** At one of the trunk's places. Without pins whoever asks there is answered. */
export function authOf(trunk: TrunkAccess, host: string, pins: RealmPins | undefined): Password | null {
  const { settings, password } = trunk
  const username = authUserOf(settings)
  if (!username || password === null) return null
  const pin = pins?.pinOf(trunk, host)
  const qop = settings.digestQop === 'optional' ? {} : { qop: 'required' as const }
  return { username, password, realm: settings.realm ?? null, ...(pin && { pin }), ...qop }
}

/** Of a peer at this address, within its own call. Null: there is no password, or nothing says that the peer is one of the trunk's that may have it proved. */
export function authAt(trunk: TrunkAccess, address: string, pins: RealmPins | undefined): Password | null {
  const { gateways = [], realm } = trunk.settings
  const own = gateways.find(({ host }) => host === address)
  pins?.adopt(trunk)
  const auth = authOf(trunk, (own ?? gateways[0])?.host ?? address, pins)
  const isKnown = own !== undefined || Boolean(realm) || (auth?.pin?.realms().length ?? 0) > 0
  return auth && isKnown ? auth : null
}
