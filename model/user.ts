/**
 * Owns people who sign in: their roles in accounts, what an e-mail address and a password may be, and the port by which a page asks who is
 * signed in. docs/users.md.
 */
import { z } from 'zod'
import { keyScopes, type KeyScope } from './api-key.ts'
import { toIso } from './clock.ts'
import type { AccountId, InvitationId, UserId } from './ids.ts'
import { oneLine } from './one-line.ts'

/**
 * `owner`: everything, users and keys too. `operator`: calls and configuration; may grant every MCP scope. `viewer`: reads; may grant no
 * scope that can change something.
 */
export const roles = ['owner', 'operator', 'viewer'] as const
export const Role = z.enum(roles)
export type Role = z.infer<typeof Role>

const maxEmail = 254

/**
 * In lower case and ASCII only: two addresses that look alike are two users nowhere, and no letter of another alphabet becomes one of ours when
 * its case is changed. International domains are written as they travel (xn--…).
 */
export const UserEmail = z
  .string()
  .transform((text) => text.trim())
  .refine((text) => /^[!-~]*$/.test(text), 'must be ASCII (a domain in its xn-- form)')
  .transform((text) => text.toLowerCase())
  .pipe(z.email().max(maxEmail))

/** How a person is called. */
export const UserName = z
  .string()
  .transform((text) => text.trim().normalize('NFC'))
  .pipe(z.string().min(1).max(200).refine(oneLine, 'must be one line'))

const passwordLength = { least: 10, most: 256 } as const

/** As keyboards differ in how they compose a letter: NFKC (NIST SP 800-63B section 5.1.1.2). All of it counts, spaces too. */
export const Password = z
  .string()
  .refine((text) => text.isWellFormed() && !text.includes('\0'), 'must be text')
  .transform((text) => text.normalize('NFKC'))
  .refine((text) => lengthOf(text) >= passwordLength.least, `must have ${passwordLength.least} characters or more`)
  .refine((text) => lengthOf(text) <= passwordLength.most, `must have ${passwordLength.most} characters or fewer`)

/** Of characters as people count them, nearly: a letter outside of the first plane is one. */
const lengthOf = (text: string): number => Array.from(text).length

/** A password that the address gives away is none. Of two that were checked. */
export function isGivenAway(password: string, email: string): boolean {
  const lower = password.toLowerCase()
  return lower === email || lower === email.slice(0, email.indexOf('@'))
}

/** What a user is in one account. */
export type Member = {
  readonly userId: UserId
  readonly email: string
  readonly name: string | null
  readonly role: Role
  /** Ms since the epoch. */
  readonly createdAt: number
  readonly lastSignInAt: number | null
}

export const User = z.object({
  id: z.string(),
  email: z.string(),
  name: z.string().optional(),
  role: Role,
  createdAt: z.string(),
  lastSignInAt: z.string().optional(),
})
export type User = z.infer<typeof User>

export const toUser = ({ userId, email, name, role, createdAt, lastSignInAt }: Member): User => ({
  id: userId,
  email,
  ...(name !== null && { name }),
  role,
  createdAt: toIso(createdAt),
  ...(lastSignInAt !== null && { lastSignInAt: toIso(lastSignInAt) }),
})

export const UserChange = z.strictObject({ role: Role })
export type UserChange = z.infer<typeof UserChange>

/** The address as people write it; `UserEmail` says what becomes of it. */
export const InvitationRequest = z.strictObject({ email: z.email().max(maxEmail), role: Role })
export type InvitationRequest = z.infer<typeof InvitationRequest>

export const Invitation = z.object({
  id: z.string(),
  email: z.string(),
  role: Role,
  expiresAt: z.string(),
  /** Only in the answer to the creation. */
  url: z.string().optional(),
})
export type Invitation = z.infer<typeof Invitation>

export const toInvitation = ({ id, email, role, expiresAt }: InvitationFacts): Invitation => ({
  id,
  email,
  role,
  expiresAt: toIso(expiresAt),
})

/** An invitation that is open. */
export type InvitationFacts = {
  readonly id: InvitationId
  readonly email: string
  readonly role: Role
  readonly expiresAt: number
}

export type Membership = { readonly accountId: AccountId; readonly accountName: string; readonly role: Role }

/** Whose session a request shows, at this moment. */
export type SignedIn = {
  readonly userId: UserId
  readonly email: string
  readonly name: string | null
  /** By the name of the account. */
  readonly memberships: readonly Membership[]
  /** Proves that a form was made for this session. */
  readonly csrf: string
}

/** Reads the session cookie; null: nobody is signed in. */
export type FindSignedIn = (request: Request) => Promise<SignedIn | null>

/** The sessions of browsers, as somebody uses them who answers beside the pages. */
export type PageSessions = {
  readonly findSignedIn: FindSignedIn
  /** Throws Problem ORIGIN_NOT_ALLOWED for what pages of others send. */
  requireOwnOrigin(request: Request): void
}

/** What a role may do, in the words of keys. Keys and users are the owner's besides. */
export const scopesOfRole = (role: Role): readonly KeyScope[] => (role === 'viewer' ? ['read'] : keyScopes)
