/**
 * Owns what of a subscription rests sealed: its signing secret, the one before it for as long as receivers may still know that one, and the
 * headers that an integrator has sent along, which carry keys of theirs.
 */
import type { AccountId, SubscriptionId } from '../model/ids.ts'
import { secretPlace, type SecretBox } from './secret-box.ts'

/** Ms for which deliveries carry the signature of the former secret too. */
export const secretOverlap = 24 * 3_600_000

/** As it rests. */
export type SealedSubscription = {
  readonly id: SubscriptionId
  readonly accountId: AccountId
  readonly sealedSecret: string
  readonly formerSecret: string | null
  /** Ms since the epoch; null without one. */
  readonly formerUntil: number | null
  /** Null: `headers` are as they are, those of before; or there are none. */
  readonly sealedHeaders: string | null
  readonly headers: Readonly<Record<string, string>>
}

type Key = Pick<SealedSubscription, 'id' | 'accountId'>
export const signingSecretPlace = ({ accountId, id }: Key): string =>
  secretPlace('webhook_subscriptions.signing_secret', accountId, id)
export const formerSecretPlace = ({ accountId, id }: Key): string =>
  secretPlace('webhook_subscriptions.former_secret', accountId, id)
export const headersPlace = ({ accountId, id }: Key): string =>
  secretPlace('webhook_subscriptions.sealed_headers', accountId, id)

/** Of the former secret while it counts. */
export const formerSecretAt = ({ formerSecret, formerUntil }: SealedSubscription, now: number): string | null =>
  formerUntil !== null && now < formerUntil ? formerSecret : null

/** Throws what `open` throws. */
export function openHeaders(
  box: SecretBox,
  row: Key & Pick<SealedSubscription, 'headers' | 'sealedHeaders'>,
): Readonly<Record<string, string>> {
  if (row.sealedHeaders === null) return row.headers
  return JSON.parse(box.open(row.sealedHeaders, headersPlace(row))) as Record<string, string>
}

/** Null for none: there is nothing to hide. */
export const sealHeaders = (box: SecretBox, key: Key, headers: Readonly<Record<string, string>>): string | null =>
  Object.keys(headers).length === 0 ? null : box.seal(JSON.stringify(headers), headersPlace(key))
