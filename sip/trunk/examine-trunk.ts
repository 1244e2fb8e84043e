/**
 * Owns the examination of a trunk from our side: are its gateways found, do they answer, is the password good, and on demand a call that is
 * hung up as soon as it rings. It changes nothing at the carrier.
 */
import type { Clock } from '../../model/clock.ts'
import type { TrunkAccess } from '../../model/telephony.ts'
import { attempt } from '../call/attempt.ts'
import { registrarsOf, type Gateway } from '../../model/trunk.ts'
import type { TrunkCheck } from '../../model/trunk-check.ts'
import { gatewayUri, optionsTo } from '../call/caller-id.ts'
import type { PhoneLine } from '../../media/plane/phone-line.ts'
import { createPhoneMedia, wishesOf } from '../call/phone-media.ts'
import type { RealmPin } from '../stack-types.ts'
import type { Target } from '../server/transport/transport.ts'
import type { RealmPins } from '../realm-pins.ts'
import type { Answered, SipStack } from '../stack.ts'
import { askBindings } from './registration.ts'

export type ExamineTrunkDeps = {
  readonly stack: SipStack
  /** What is proved is learned. */
  readonly pins: RealmPins
  /** Of a gateway's URI, by RFC 3263. Rejects with why there is none. */
  readonly resolve: (uri: string) => Promise<readonly Target[]>
  /** For the sound of a call, which nobody listens to. */
  readonly openLine: () => Promise<PhoneLine>
  readonly clock: Clock
  readonly newId: () => string
  /** Who is told is no operator: where a name leads to is not theirs to know. */
  readonly hidesAddresses?: true
}

export type TestCall = { readonly fromNumber: string; readonly toNumber: string }

const answerWithin = 8_000
const ringWithin = 30_000

/** In the order they make sense; behind a gateway that is not found nothing more is asked of it. */
export async function* examineTrunk(
  deps: ExamineTrunkDeps,
  trunk: TrunkAccess,
  call: TestCall | null,
): AsyncGenerator<TrunkCheck> {
  const gateways = trunk.settings.gateways ?? []
  const answering: Gateway[] = []
  for (const gateway of gateways) {
    const found = await findGateway(deps, gateway)
    yield found
    if (found.verdict === 'failed') continue
    const options = await askOptions(deps, trunk, gateway)
    yield options
    if (options.verdict !== 'failed') answering.push(gateway)
  }
  const [first] = answering
  if (trunk.settings.register)
    for (const registrar of registrarsOf(trunk.settings)) yield await askRegistrar(deps, trunk, registrar)
  if (call && first) yield await tryCall(deps, { trunk, gateway: first }, call)
}

async function findGateway({ resolve, hidesAddresses }: ExamineTrunkDeps, gateway: Gateway): Promise<TrunkCheck> {
  const check = { name: `${nameOf(gateway)} is found`, expected: 'at least one address' }
  try {
    const targets = await resolve(gatewayUri(gateway))
    const ways = targets.map(({ protocol, remote }) => `${protocol} ${remote.address} port ${remote.port}`)
    return { ...check, verdict: 'passed', got: hidesAddresses ? 'yes' : ways.join(', '), mend: null }
  } catch (error) {
    const mend = 'mend the name in the trunk’s gateways, or the name server of this machine'
    return { ...check, verdict: 'failed', got: error instanceof Error ? error.message : String(error), mend }
  }
}

async function askOptions({ stack }: ExamineTrunkDeps, trunk: TrunkAccess, gateway: Gateway): Promise<TrunkCheck> {
  const { uri, options } = optionsTo(trunk, gateway)
  const answered = await stack.request(uri, options, answerWithin)
  const check = { name: `${nameOf(gateway)} answers`, expected: 'any answer to OPTIONS', got: lineOf(answered) }
  if (isThere(answered)) return { ...check, verdict: 'passed', mend: null }
  const mend =
    'see that port and transport are right, that the carrier knows the address of this machine, and that no firewall stands between'
  return { ...check, verdict: 'failed', mend }
}

async function askRegistrar(deps: ExamineTrunkDeps, trunk: TrunkAccess, gateway: Gateway): Promise<TrunkCheck> {
  let refused: string | null = null
  let realms: readonly string[] = []
  const pin = deps.pins.pinOf(trunk, gateway.host)
  const watched: RealmPin = {
    ...pin,
    proved: (proved) => (pin.proved(proved), void (realms = proved)),
    refused: (why) => (pin.refused(why), void (refused = why)),
  }
  const answered = await askBindings({ ...deps, pins: { ...deps.pins, pinOf: () => watched } }, trunk, gateway)
  const isGood = answered.kind === 'answered' && answered.response.status < 300
  const got = `${lineOf(answered)}${realms.map((realm) => `, realm “${realm}” is answered from now on`).join('')}`
  const check = { name: 'the password is good', expected: '200 to REGISTER', got }
  const mend = refused ?? 'see username, password, realm and domain of the trunk'
  return { ...check, verdict: isGood ? 'passed' : 'failed', mend: isGood ? null : mend }
}

/** It costs what a call of a second costs, at most. */
async function tryCall(
  { stack, pins, clock, openLine }: ExamineTrunkDeps,
  way: { readonly trunk: TrunkAccess; readonly gateway: Gateway },
  request: TestCall,
): Promise<TrunkCheck> {
  const lines: string[] = []
  const wishes = wishesOf(way.trunk.settings, 'offer', way.gateway.transport ?? 'udp')
  const media = createPhoneMedia(await openLine(), wishes)
  const progress = (status: number, reason: string) => {
    lines.push(`${status} ${reason}`)
    tried.cancel()
  }
  const tried = attempt({ stack, pins, clock, media, request, progress }, way, { word: answerWithin, ring: null })
  const giveUp = clock.after(ringWithin, () => tried.cancel())
  const result = await tried.result
  giveUp()
  await media.line.close()
  if (result.kind === 'answered') {
    lines.push(result.line)
    result.dialog.destroy({}, () => undefined)
  }
  if (result.kind === 'refused') lines.push(`${result.status} ${result.reason}`)
  if (result.kind === 'unreachable') lines.push(result.details)
  const isGood = result.rang || result.kind === 'answered'
  const check = { name: `a call to ${request.toNumber} rings`, expected: '180, 183 or 200', got: lines.join(', then ') }
  const mend =
    'read the last answer: 401 and 407 mean the password, 403 the caller’s number or the address, 404 the form of the number'
  return { ...check, verdict: isGood ? 'passed' : 'failed', mend: isGood ? null : mend }
}

const nameOf = ({ host, port }: Gateway): string => (port === undefined ? host : `${host}:${port}`)

/** As gateway-health.ts has it: a carrier that refuses OPTIONS is there. */
const isThere = (answered: Answered): boolean =>
  answered.kind === 'answered' && answered.response.status !== 408 && answered.response.status !== 503

const lineOf = (answered: Answered): string =>
  answered.kind === 'silence' ? answered.details : `${answered.response.status} ${answered.response.reason}`
