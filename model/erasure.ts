/** Owns the erasure of a person as answers show it: what was done, and where the person is still named. docs/contract/rest.md "Erasure of a person". */
import { z } from 'zod'
import { toIso } from './clock.ts'
import type { AccountId, PersonId } from './ids.ts'

const count = z.number().int().nonnegative()

/** How many of each kind were removed or emptied. */
export const ErasedCounts = z.object({
  persons: count,
  calls: count,
  transcriptTurns: count,
  events: count,
  deliveries: count,
  recordings: count,
  idempotentAnswers: count,
  callRefusals: count,
  /** Rows of other calls in which the person was named. */
  mentions: count,
})
export type ErasedCounts = z.infer<typeof ErasedCounts>

export const nothingErased: ErasedCounts = {
  persons: 0,
  calls: 0,
  transcriptTurns: 0,
  events: 0,
  deliveries: 0,
  recordings: 0,
  idempotentAnswers: 0,
  callRefusals: 0,
  mentions: 0,
}

export function sumOf(one: ErasedCounts, other: Partial<ErasedCounts>): ErasedCounts {
  const kinds = Object.entries(one) as [keyof ErasedCounts, number][]
  return Object.fromEntries(kinds.map(([kind, number]) => [kind, number + (other[kind] ?? 0)])) as ErasedCounts
}

export const Erasure = z.object({
  id: z.string(),
  status: z.enum(['in_progress', 'completed']),
  startedAt: z.string(),
  completedAt: z.string().optional(),
  erased: ErasedCounts,
  /** What is the account's to decide on: documents, other persons, settings. */
  remaining: z.array(z.object({ table: z.string(), rows: count })),
})
export type Erasure = z.infer<typeof Erasure>

export type ErasureFacts = {
  readonly id: string
  readonly createdAt: number
  readonly completedAt: number | null
  readonly erased: ErasedCounts
  readonly remaining: Erasure['remaining']
}

export function toErasure({ id, createdAt, completedAt, erased, remaining }: ErasureFacts): Erasure {
  return {
    id,
    status: completedAt === null ? 'in_progress' : 'completed',
    startedAt: toIso(createdAt),
    ...(completedAt !== null && { completedAt: toIso(completedAt) }),
    erased,
    remaining,
  }
}

/**
 * Null: the account has no such person, and has erased none. Of one who was erased what was done then. Throws Problem CONFLICT while a call of
 * the person is not over.
 */
export type ErasePerson = (accountId: AccountId, personId: PersonId) => Promise<Erasure | null>
