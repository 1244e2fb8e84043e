/**
 * Owns that a trunk is registered at one place for as long as it is kept: REGISTER, its refresh in time, and taking it back.
 * RFC 3261 §10.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import { toIso } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import type { Log } from '../../model/log.ts'
import type { TrunkAccess } from '../../model/telephony.ts'
import type { TrunkState } from '../../model/trunk.ts'
import { authOf } from '../call/attempt.ts'
import type { Gateway } from '../../model/trunk.ts'
import { gatewayUri, identityUri, placeUri, realmHost, wayTo } from '../call/caller-id.ts'
import { leadingNumber } from '../server/message/header-text.ts'
import type { RealmPins } from '../realm-pins.ts'
import type { Answered, SipStack } from '../stack.ts'
import type { Gate } from './gate.ts'
import { grantedSeconds, longerSeconds, refreshAfter, retryAfter, wantedSeconds } from './registration-plan.ts'

export type RegistrationState = Pick<TrunkState, 'registrationDetails' | 'registeredUntil'> & {
  readonly registration: Exclude<TrunkState['registration'], 'none'>
}

export type RegistrationDeps = {
  readonly stack: Pick<SipStack, 'request'>
  readonly pins?: RealmPins
  readonly clock: Clock
  readonly log: Log
  readonly random: () => number
  readonly newId: () => string
  readonly gate: Gate
  readonly changed: () => void
  /** Nothing is sent before it: what was registered before with other settings is taken back first. */
  readonly after: Promise<void>
}

export type Registration = {
  state(): RegistrationState
  /** Takes the registration back. Idempotent; bounded. */
  close(): Promise<void>
}

/** Ms that the service waits at its end for a registrar. */
const farewellWithin = 2_000

export function createRegistration(deps: RegistrationDeps, trunk: TrunkAccess, gateway: Gateway): Registration {
  const { clock, log, random } = deps
  const send = createRegisterRequest(deps, trunk, gateway)
  const wanted = trunk.settings.registerExpires ?? wantedSeconds
  let state: RegistrationState = { registration: 'registering', registrationDetails: null, registeredUntil: null }
  let until = 0
  let failures = 0
  let isClosed = false
  let closing: Promise<void> | null = null
  let cancel: Cancel = () => undefined
  let running: Promise<void> = Promise.resolve()

  const become = (next: RegistrationState) => {
    const wasSame = JSON.stringify(state) === JSON.stringify(next)
    state = next
    if (!wasSame && !isClosed) deps.changed()
  }
  const registered = (seconds: number, details: string): number => {
    failures = 0
    until = clock.now() + seconds * 1000
    become({ registration: 'registered', registrationDetails: details, registeredUntil: toIso(until) })
    return refreshAfter(seconds, random)
  }
  const failed = (kind: 'refused' | 'silence', details: string, asked: number | null): number => {
    failures += 1
    log.warn('a trunk could not be registered', { trunkId: trunk.id, details, failures })
    // What was granted still holds while the registrar only keeps silent.
    const holds = kind === 'silence' && until > clock.now()
    if (!holds) until = 0
    const registeredUntil = holds ? toIso(until) : null
    become({ registration: holds ? 'registered' : 'failed', registrationDetails: details, registeredUntil })
    return retryAfter(kind, { failures, asked, random })
  }
  const round = async () => {
    const answered = await deps.gate(() => (isClosed ? Promise.resolve(nothing) : registerOnce(send, wanted)))
    if (isClosed && answered === nothing) return
    const pause = take(answered, { registered, failed })
    if (!isClosed) cancel = clock.after(pause, start)
  }
  const start = () => {
    running = round().catch((error: unknown) => log.error('a registration failed', { trunkId: trunk.id, error }))
  }
  const takeBack = async () => {
    isClosed = true
    cancel()
    await deadline(clock, farewellWithin, running, goOn)
    if (until > clock.now()) await deps.gate(() => send(0, farewellWithin))
  }

  void deps.after.then(() => {
    if (!isClosed) cancel = clock.after(random() * 1_000, start)
  })
  return { state: () => state, close: () => (closing ??= takeBack()) }
}

const nothing: Answered = { kind: 'silence', details: 'closed' }

/** Null seconds: see askBindings. */
type Send = (seconds: number | null, timeout?: number) => Promise<Answered>

/** Once more when the registrar wants a longer time. */
async function registerOnce(send: Send, wanted: number): Promise<Answered> {
  const first = await send(wanted)
  if (first.kind === 'silence' || first.response.status !== 423) return first
  const longer = longerSeconds(first.response, wanted)
  return longer === null ? first : send(longer)
}

type Taken = {
  readonly registered: (seconds: number, details: string) => number
  readonly failed: (kind: 'refused' | 'silence', details: string, asked: number | null) => number
}

function take(answered: Answered, { registered, failed }: Taken): number {
  if (answered.kind === 'silence') return failed('silence', answered.details, null)
  const { response, sent } = answered
  const line = `${response.status} ${response.reason}`
  if (response.status < 300) return registered(grantedSeconds(response, sent), line)
  const asked = leadingNumber(response.get('Retry-After'))
  // The server answers 408 and 503 itself where nobody did.
  const isSilence = response.status === 408 || response.status >= 500
  return failed(isSilence ? 'silence' : 'refused', line, asked)
}

/** REGISTER without Contact: who is registered is asked for, and nothing changes. RFC 3261 §10.2.3. */
export function askBindings(
  deps: Pick<RegistrationDeps, 'stack' | 'newId' | 'pins'>,
  trunk: TrunkAccess,
  gateway: Gateway,
): Promise<Answered> {
  return createRegisterRequest(deps, trunk, gateway)(null)
}

function createRegisterRequest(
  { stack, newId, pins }: Pick<RegistrationDeps, 'stack' | 'newId' | 'pins'>,
  trunk: TrunkAccess,
  gateway: Gateway,
): Send {
  const { settings } = trunk
  const username = settings.username ?? ''
  const host = realmHost(settings, gateway)
  const account = `<${identityUri(username, host)}>`
  // The server puts its own address and the transport in the place of `localhost`.
  const contact = `<${identityUri(username, 'localhost')}>`
  const uri = settings.domain ? placeUri(null, { host, transport: gateway.transport }) : gatewayUri(gateway)
  const way = wayTo(settings, gateway)
  const callId = newId()
  let sequence = 0

  return (seconds, timeout) => {
    // RFC 3261 §10.2.4: one Call-ID, and a CSeq that grows; answers to challenges take the numbers after it.
    sequence += 5
    const headers = {
      ...way.headers,
      To: account,
      From: account,
      ...(seconds !== null && { Contact: contact, Expires: String(seconds) }),
      'call-id': callId,
      CSeq: `${sequence} REGISTER`,
    }
    const auth = authOf(trunk, gateway.host, pins)
    const { publicName } = settings
    const by = {
      ...(way.proxy !== undefined && { proxy: way.proxy }),
      ...(publicName && { publicName }),
      ...(trunk.tls && { client: trunk.tls }),
    }
    return stack.request(uri, { method: 'REGISTER', headers, ...(auth && { auth }), ...by }, timeout)
  }
}
