/** Owns how the replay of a call's log is told: whether the same facts lead to the same steps again. docs/contract/rest.md "Replay". */
import { z } from 'zod'
import type { AccountId, CallId } from './ids.ts'

const count = z.number().int().nonnegative()

/** Of an answer. */
export const mostDifferences = 100

export const ReplayCheck = z.object({
  verdict: z
    .enum(['same', 'different', 'unfinished', 'no_log'])
    .describe(
      'unfinished: the log is longer than one check takes, and as far as it came all was the same; no_log: it has been removed, or none was kept.',
    ),
  facts: count.describe('Steps that were taken again.'),
  ignored: count.describe('Of them those the call had no use for.'),
  effects: count.describe('What the call did by them, in all.'),
  different: count.describe('Steps that came out in another way than the log has.'),
  differences: z
    .array(
      z.object({
        seq: count.describe('Number of the step in the log.'),
        fact: z.string().describe('What happened, as the log of the call names it.'),
      }),
    )
    .describe('The first 100 of them.'),
})
export type ReplayCheck = z.infer<typeof ReplayCheck>

/** Null: the account has no such call. Throws Problem RATE_LIMITED while there are others under way. */
export type CheckReplay = (accountId: AccountId, callId: CallId) => Promise<ReplayCheck | null>
