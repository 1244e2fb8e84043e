/**
 * Owns whether an INVITE comes in: whose it is, and the proof of a password where one is wanted. Who is not let in is answered here, and
 * told with the reason.
 */
import type { InboundRoute, Refusal, RefusedArrival, Telephony } from '../../model/telephony.ts'
import { authUserOf } from '../../model/trunk.ts'
import { addressGroupOf } from '../../net/addresses.ts'
import type { Guesser } from '../../net/guess-limit.ts'
import { answerWith } from '../answer-with.ts'
import { fromOf } from '../guarded-routes.ts'
import type { DigestVerifier } from '../digest-verifier.ts'
import { hasControls } from '../server/message/read-head.ts'
import { calledAsWritten, calledNumbersOf, callingAsWritten, dialedNumbersOf } from '../numbers.ts'
import { tooShortSession } from '../session-headers.ts'
import type { Reply, RequestIn } from '../stack-types.ts'
import type { Strangers } from '../strangers.ts'

export type Admission = {
  /** Null: it has been answered. */
  admit(invite: RequestIn, reply: Reply): Promise<InboundRoute | null>
  refuse(arrived: Arrived, refused: RefusedArrival, headers?: Record<string, string>): void
}

/** An INVITE, and where its answer goes. */
export type Arrived = { readonly invite: RequestIn; readonly reply: Reply }

export type AdmissionDeps = {
  readonly telephony: Telephony
  readonly verifier: DigestVerifier
  readonly strangers: Pick<Strangers, 'challenged' | 'wrongPassword' | 'proved'> & {
    /** Without it passwords may be guessed at any rate. */
    readonly guesses?: Strangers['guesses']
  }
}

/** What a challenge names when the trunk names nothing. */
const defaultRealm = 'parley'

export function createAdmission({ telephony, verifier, strangers }: AdmissionDeps): Admission {
  const refuse: Admission['refuse'] = ({ invite, reply }, refused, headers = {}) => {
    answerWith(reply, refused.sipStatus, { headers: { ...retryAfterOf(refused), ...headers } })
    telephony.refused(refusalOf(invite, refused))
  }

  return {
    refuse,
    async admit(invite, reply) {
      const arrived = { invite, reply }
      const called = calledNumbersOf(invite)
      const fault = faultOf(invite, called)
      if (fault) return (refuse(arrived, fault), null)
      const tooShort = tooShortSession(invite)
      if (tooShort) return (answerWith(reply, 422, { headers: tooShort }), null)
      const calling = callingAsWritten(invite)
      const dialed = dialedNumbersOf(invite)
      const route = await telephony.route({ address: invite.source_address, called, dialed, calling })
      if ('sipStatus' in route) return (refuse(arrived, route), null)
      if (!route.mustAuthenticate) return route
      return authenticate(arrived, route, { verifier, refuse, strangers }) ? route : null
    },
  }
}

const retryAfterOf = ({ retryAfterSeconds }: RefusedArrival): Record<string, string> =>
  retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }

/** RFC 3261 §8.2.2: what no call can be made of. */
function faultOf(invite: RequestIn, called: readonly string[]): RefusedArrival | null {
  const nobodys = { reason: 'malformed', accountId: null, trunkId: null } as const
  const unreadable = controlsIn(invite) ?? unreadableIn(invite)
  if (unreadable !== null)
    return { ...nobodys, sipStatus: 400, details: `the INVITE has no ${unreadable} that can be read` }
  if (called.length > 0) return null
  return { ...nobodys, sipStatus: 484, details: 'neither To nor the Request-URI names a number' }
}

/** RFC 3261 §25.1. A drachtio-server passes control characters on; what is read of an INVITE may be stored. */
function controlsIn({ uri, headers }: RequestIn): string | null {
  if (hasControls(uri)) return 'Request-URI'
  return Object.entries(headers).find(([, value]) => hasControls(value))?.[0] ?? null
}

/** Characters: the library takes the square of some of them in time, and a drachtio-server lets them pass. */
const maxReadLength = 2_000

/** What the library makes the dialog of: it would fail only when the 200 has been sent. */
function unreadableIn(invite: RequestIn): string | null {
  for (const name of ['Contact', 'From']) {
    try {
      if ((invite.get(name) ?? '').length > maxReadLength) return name
      invite.getParsedHeader(name)
    } catch {
      return name
    }
  }
  return null
}

type Authenticating = Pick<AdmissionDeps, 'verifier' | 'strangers'> & Pick<Admission, 'refuse'>

/** A first INVITE without credentials is no refusal: clients wait for the challenge. */
function authenticate(arrived: Arrived, { trunk }: InboundRoute, deps: Authenticating): boolean {
  const { verifier, refuse, strangers } = deps
  const { invite, reply } = arrived
  const { realm, domain } = trunk.settings
  const username = authUserOf(trunk.settings)
  const ids = { accountId: trunk.accountId, trunkId: trunk.id }
  const wrong = (details: string) => refuse(arrived, { reason: 'wrong_credentials', sipStatus: 403, details, ...ids })
  if (!username || trunk.password === null) {
    wrong(`trunk ${trunk.name} asks for a password and has none: set username and password`)
    return false
  }
  const qop = trunk.settings.digestQop ?? 'required'
  const expected = { realm: realm ?? domain ?? defaultRealm, username, password: trunk.password, qop }
  const client = addressGroupOf(invite.source_address)
  const { guesses } = strangers
  const look = guesses && ((isThere: boolean) => guesses.look(guesserOf(invite, trunk.id, isThere)))
  const verdict = verifier.verify('INVITE', invite.get('authorization'), expected, client, look)
  if (verdict.kind === 'proved') {
    strangers.proved(fromOf(invite), verdict.isThere)
    return true
  }
  if (verdict.kind === 'wrong') {
    strangers.wrongPassword(fromOf(invite), verdict.isThere)
    wrong(`the INVITE came with ${verdict.details} for trunk ${trunk.name}`)
    return false
  }
  if (verdict.kind === 'unlooked') {
    strangers.wrongPassword(fromOf(invite), verdict.isThere)
    const details = `too many wrong passwords came for trunk ${trunk.name} or from the address: this one was not looked at`
    const seconds = String(Math.ceil(verdict.wait / 1000))
    refuse(arrived, { reason: 'wrong_credentials', sipStatus: 503, details, ...ids }, { 'Retry-After': seconds })
    return false
  }
  strangers.challenged(fromOf(invite))
  // Each challenge is a field of its own (RFC 3261 §7.3.1), and the library takes one text per name.
  answerWith(reply, 401, { headers: { 'WWW-Authenticate': verdict.challenges.join('\r\nWWW-Authenticate: ') } })
  return false
}

const guesserOf = (invite: RequestIn, target: string, isThere: boolean): Guesser => ({
  target,
  address: invite.source_address,
  port: invite.source_port,
  protocol: invite.protocol,
  isProven: isThere || invite.protocol !== 'udp',
})

const refusalOf = (invite: RequestIn, { sipStatus, reason, details, accountId, trunkId }: RefusedArrival): Refusal => ({
  direction: 'inbound',
  reason,
  details,
  sipStatus,
  accountId,
  trunkId,
  callId: null,
  address: `${invite.source_address}:${invite.source_port}`,
  calling: callingAsWritten(invite),
  called: calledAsWritten(invite),
})
