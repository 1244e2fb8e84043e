/**
 * Owns who has proved a password: challenges to inbound requests and what comes back. RFC 3261 §22, RFC 7616, RFC 8760. A nonce says when
 * it was made and is signed, so unanswered challenges cost no memory; one that was used is remembered, because its counter must grow with
 * every use, and a wrong password uses it up.
 */
import { createHmac, createSecretKey, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Look } from '../net/guess-limit.ts'
import { provesPassword, readCredentials, writeChallenge, type DigestCredentials } from './server/message/digest.ts'

export type Expected = {
  readonly realm: string
  readonly username: string
  readonly password: string
  /** `required`: what is proved without is no answer to our challenge. */
  readonly qop?: 'required' | 'optional'
}

export type Verdict =
  /** `isThere`: the nonce was made for this client, so what is sent to it arrives. */
  | { readonly kind: 'proved'; readonly isThere: boolean }
  /** Answered 401 with these WWW-Authenticate values; nothing was claimed, or with a nonce that is used up. */
  | { readonly kind: 'challenge'; readonly challenges: readonly string[] }
  | { readonly kind: 'wrong'; readonly details: string; readonly isThere: boolean }
  /** Too many wrong ones came: this one was not looked at. `wait` is in ms. */
  | { readonly kind: 'unlooked'; readonly wait: number; readonly isThere: boolean }

export type DigestVerifier = {
  /**
   * `authorization`: the value of the header, also of several fields together; undefined without one. `client`: where it came from; a nonce
   * is good from elsewhere too, because networks change addresses. `look`: asked once when there is a password to be looked at.
   */
  verify(
    method: string,
    authorization: string | undefined,
    expected: Expected,
    client?: string,
    look?: (isThere: boolean) => Look,
  ): Verdict
  /** Nonces that are remembered. */
  size(): number
}

export type DigestVerifierOptions = {
  readonly now: () => number
  readonly maxRemembered?: number
}

/** Ms that a nonce may be used. */
const nonceLife = 300_000
const maxCredentials = 8
/** A count that no other is higher than. */
const usedUp = Number.MAX_SAFE_INTEGER
const alwaysLooked = (): Look => ({ wait: 0, right: () => undefined })

export function createDigestVerifier(options: DigestVerifierOptions): DigestVerifier {
  const { now, maxRemembered = 10_000 } = options
  const key = createSecretKey(randomBytes(32))
  /** The highest count seen for a nonce; the oldest first, as the nonces were first used. */
  const counts = new Map<string, number>()
  /** Nonces made until then are used up: forgetting one must not make it good again. */
  let forgottenUntil = 0

  const signed = (text: string) => `${text}.${createHmac('sha256', key).update(text).digest('base64url').slice(0, 22)}`
  const markOf = (client: string) => createHmac('sha256', key).update(`at ${client}`).digest('base64url').slice(0, 8)
  const freshNonce = (client: string) =>
    signed(`${now().toString(36)}.${randomBytes(9).toString('base64url')}.${markOf(client)}`)
  const isFor = (nonce: string, client: string) => nonce.split('.')[2] === markOf(client)
  /** When it was made; null when it is none of ours. */
  const madeAt = (nonce: string): number | null => {
    const text = nonce.slice(0, nonce.lastIndexOf('.'))
    return isEqual(signed(text), nonce) ? Number.parseInt(text, 36) : null
  }
  const challenge = (realm: string, client: string, stale: boolean): Verdict => {
    // MD5 alone: softphones and PBXs of today still give up when SHA-256 is named first, or at all. A proof by SHA-256 is taken.
    const challenges = [
      writeChallenge({ realm, nonce: freshNonce(client), opaque: null, stale, qopAuth: true, algorithm: 'MD5' }),
    ]
    return { kind: 'challenge', challenges }
  }
  const forget = (nonce: string) => {
    counts.delete(nonce)
    forgottenUntil = Math.max(forgottenUntil, madeAt(nonce) ?? 0)
  }
  const use = (nonce: string, count: number): void => {
    counts.set(nonce, count)
    const oldest = counts.keys().next().value
    if (counts.size > maxRemembered && oldest !== undefined) forget(oldest)
  }
  const isFresh = (nonce: string): boolean => {
    const made = madeAt(nonce)
    if (made === null) return false
    return made > now() - nonceLife && (made > forgottenUntil || counts.has(nonce))
  }

  return {
    verify(method, authorization, expected, client = '', look = alwaysLooked) {
      const credentials = credentialsFor(authorization, expected.realm)
      if (!credentials) return challenge(expected.realm, client, false)
      const { nonce, nc } = credentials
      if (nc === null && expected.qop === 'required') return challenge(expected.realm, client, false)
      // The count must be higher than any before. Without `qop` there is none, and the nonce is good once.
      const count = nc === null ? usedUp : Number.parseInt(nc, 16)
      if (!isFresh(nonce) || count <= (counts.get(nonce) ?? 0)) return challenge(expected.realm, client, true)
      const isThere = isFor(nonce, client)
      const { wait, right } = look(isThere)
      if (wait > 0) return { kind: 'unlooked', wait, isThere }
      const isNamed = credentials.username === expected.username
      const isProved = provesPassword(credentials, method, expected.password) && isNamed
      use(nonce, isProved ? count : usedUp)
      if (!isProved) return { kind: 'wrong', details: isNamed ? 'a wrong password' : 'another username', isThere }
      right()
      return { kind: 'proved', isThere }
    },
    size: () => counts.size,
  }
}

/** Credentials for other realms may stand beside ours. RFC 3261 §22.3. */
function credentialsFor(authorization: string | undefined, realm: string): DigestCredentials | null {
  const fields = (authorization ?? '').split(/,\s*(?=digest\s)/i).slice(0, maxCredentials)
  return fields.flatMap((field) => readCredentials(field) ?? []).find((read) => read.realm === realm) ?? null
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
