/**
 * Owns our answers to challenges: the password of a trunk is proved to the proxy that asks for it, and to the callee's server behind it.
 * RFC 3261 §22, RFC 7616, RFC 8760. The library's own way cannot be used: it takes a list in quotes apart at its commas, knows MD5 only,
 * and answers one challenge of two.
 */
import { randomBytes } from 'node:crypto'
import { digestResponseOf, readChallenge, writeCredentials, type DigestChallenge } from './server/message/digest.ts'
import { hostPortText } from './server/message/header-text.ts'
import { cseqOf } from './server/message/numbered-fields.ts'
import { readSipUri } from './server/message/uri.ts'
import { isLoopback } from '../net/addresses.ts'
import { inSamePrivateNetwork } from '../net/special-networks.ts'
import { isIP } from 'node:net'
import type { AuthChooser, MessageIn, Password, ResponseIn } from './stack-types.ts'

export type Challenged = {
  readonly method: string
  readonly uri: string
  readonly proxy?: string | undefined
  /** As it went out, and what came back. */
  readonly sent: MessageIn
  readonly response: ResponseIn
}

/** To be laid over what was sent before. */
export type ProvedRequest = { readonly headers: Record<string, string>; readonly proxy: string | null }

export type ChallengeAnswers = {
  /** What was proved was enough: the peer has gone on with the request. `answer` sees this of a 2xx itself. */
  accepted(): void
  /** The request once more. Null: it is no challenge, or one that cannot be met, or it was met before and the password is wrong. */
  answer(challenged: Challenged): ProvedRequest | null
}

const kinds: Readonly<Record<number, { readonly asks: string; readonly proves: string }>> = {
  401: { asks: 'www-authenticate', proves: 'Authorization' },
  407: { asks: 'proxy-authenticate', proves: 'Proxy-Authorization' },
}
/** Of one kind: the second only when the nonce was too old. */
const maxProofs = 2

/** Of one request and its repetitions. */
export function createChallengeAnswers(password: Password | undefined): ChallengeAnswers {
  const proofs: Record<string, string> = {}
  const counts = new Map<string, number>()
  const realms = new Set<string>()
  const accepted = () => {
    if (realms.size > 0) password?.pin?.proved([...realms])
  }
  return {
    accepted,
    answer(challenged) {
      const { status } = challenged.response
      if (status >= 200 && status < 300) accepted()
      const kind = kinds[status]
      if (!kind || !password) return null
      const challenge = challengeFor(challenged.response.get(kind.asks), password)
      const count = counts.get(kind.proves) ?? 0
      if (!challenge || count >= maxProofs || (count > 0 && !challenge.stale)) return null
      counts.set(kind.proves, count + 1)
      realms.add(challenge.realm)
      proofs[kind.proves] = proofOf(challenge, challenged, password)
      return { headers: { ...numbersOf(challenged), ...proofs }, proxy: nextHopOf(challenged) }
    },
  }
}

/** Of those that may be answered the first with SHA-256, else the first: what the server would take as well (RFC 8760 §2.4) is no better. */
function challengeFor(value: string | undefined, password: Password): DigestChallenge | null {
  const challenges = (value ?? '').split(/,\s*(?=digest\s)/i).flatMap((one) => readChallenge(one) ?? [])
  const refusals = challenges.map((one) => refusalOf(one, password))
  const good = challenges.filter((_, index) => refusals[index] === null)
  const why = refusals[0]
  if (good.length === 0 && why) password.pin?.refused(why)
  return good.find(({ algorithm }) => algorithm.startsWith('SHA-256')) ?? good[0] ?? null
}

/** Null: the password may be proved to it. */
function refusalOf(challenge: DigestChallenge, { realm, pin, qop }: Password): string | null {
  const known = realm === null ? (pin?.realms() ?? []) : [realm]
  const names = known.map((one) => `“${one}”`).join(', ')
  if (known.length > 0 && !known.includes(challenge.realm))
    return `the realm “${challenge.realm}” asks for the password, and it belongs to ${names}: if the carrier has moved, name the new one as realm of the trunk, or learn it by trunk test --accept-realm`
  if (qop === 'required' && !challenge.qopAuth)
    return `the challenge of realm “${challenge.realm}” has no qop: where the registrar knows none, set digestQop of the trunk to optional`
  return null
}

function proofOf(
  { realm, nonce, opaque, algorithm, qopAuth }: DigestChallenge,
  { method, uri }: Challenged,
  { username, password }: Password,
): string {
  const counted = qopAuth ? { nc: '00000001', cnonce: randomBytes(8).toString('hex') } : { nc: null, cnonce: null }
  const proof = { username, realm, nonce, uri, algorithm, ...counted }
  return writeCredentials({ ...proof, opaque, response: digestResponseOf(proof, method, password) })
}

/** Of a request once more: the same call and sender, the next number. RFC 3261 §22.2, RFC 4028 §7.3. */
export function numbersOf({ method, sent }: Pick<Challenged, 'method' | 'sent'>): Record<string, string> {
  const number = cseqOf({ headers: [{ name: 'CSeq', value: sent.get('cseq') ?? '' }] })?.number ?? 1
  return { From: sent.get('from') ?? '', 'call-id': sent.get('call-id') ?? '', CSeq: `${number + 1} ${method}` }
}

/**
 * A name may lead to several servers, and a nonce is good at the one that made it. Null: as before. Addresses behind our own router stay
 * names: it is by name that they are allowed (SIP_ALLOW_HOSTS), and there is one server there.
 */
function nextHopOf({ uri, proxy, sent, response }: Challenged): string | null {
  const asked = readSipUri(proxy ?? uri)
  const { source_address: address, source_port: port, protocol } = response
  if (!asked || isIP(asked.host) !== 0 || address === undefined || isIP(address) === 0) return null
  if (isLoopback(address) || inSamePrivateNetwork(address, address)) return null
  // Some gateways answer from another port than the one they listen on.
  const sentTo = sent as Partial<ResponseIn>
  const known = sentTo.source_address === address ? Number(sentTo.source_port) : Number(port)
  const client = asked.params.get('client')
  return `sip:${hostPortText(address, known || null)};transport=${protocol ?? 'udp'}${client ? `;client=${client}` : ''}`
}

/** For requests within a dialog, which the library sends and repeats by itself. */
export function chooserOf(password: Password): AuthChooser {
  return (_sent, challenged, use) => {
    const value = challenged.get('www-authenticate') ?? challenged.get('proxy-authenticate') ?? ''
    if (!challengeFor(value, password)) return use(new Error('a challenge that is not to be answered'))
    use(null, password.username, password.password)
  }
}
