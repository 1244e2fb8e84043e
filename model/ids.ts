/** Owns the identities: UUIDv7 text, branded per kind, so that a call's id never stands where an account's is meant. */
import { z } from 'zod'

export type Id<Kind extends string> = string & { readonly __kind: Kind }

export type AccountId = Id<'account'>
export type WorkerId = Id<'worker'>
export type CallId = Id<'call'>
export type PersonId = Id<'person'>
export type SubscriptionId = Id<'subscription'>
export type DeliveryId = Id<'delivery'>
export type DocumentId = Id<'document'>
export type TrunkId = Id<'trunk'>
export type ApiKeyId = Id<'api_key'>
export type UserId = Id<'user'>
export type NodeId = Id<'node'>
export type InvitationId = Id<'invitation'>
export type SimulationId = Id<'simulation'>

const idText = z.uuid()

/** The only way in: null when the text is no id, so that a lookup by it is "not found" and never an SQL error. */
export function toId<Kind extends string>(text: string): Id<Kind> | null {
  return idText.safeParse(text).success ? (text.toLowerCase() as Id<Kind>) : null
}

/** Makes a fresh id (UUIDv7). An argument everywhere, because the call machine and the tests decide what is random. */
export type NewId = <Kind extends string>() => Id<Kind>
