/**
 * Owns forgetting what nobody needs any more: finished deliveries with their log, refused calls, subscriptions of deleted workers, idempotency keys
 * past their time, codes, tokens, grants and clients of OAuth, sessions and invitations that are over, confirmations past their time, and what accounts
 * keep of their calls for a limited time. Every round is bounded; several nodes may do this at the same
 * time and skip what another is at.
 */
import type { Clock } from '../../model/clock.ts'
import { idempotencyLifetime } from '../../model/idempotency.ts'
import type { Log } from '../../model/log.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import { forgetAuditRows } from '../../store/audit-rows.ts'
import { forgetConfirmations } from '../../store/confirmations.ts'
import { forgetRefusals } from '../../store/call-refusals.ts'
import { forgetSubscriptionsOfDeleted } from '../../store/delete-worker.ts'
import { forgetInvitations } from '../../store/invitations.ts'
import { forgetClients } from '../../store/oauth-clients.ts'
import { forgetGrants } from '../../store/oauth-grants.ts'
import { forgetPayloads } from '../../store/oauth-payloads.ts'
import { forgetDeliveries } from '../../store/delivery-log.ts'
import { forgetIdempotencyKeys } from '../../store/idempotency.ts'
import type { Sql } from '../../store/sql.ts'
import {
  forgetCalls,
  forgetRecordings,
  forgetTranscripts,
  listRetentionPolicies,
  type Forgetting,
} from '../../store/retention.ts'
import { forgetSimulations } from '../../store/simulations.ts'
import { forgetSessions } from '../../store/user-sessions.ts'
import { blankedSnapshot } from '../privacy/blanked.ts'
import { createRecordingRemoval } from '../privacy/recording-removal.ts'
import { createRounds, type Rounds } from './rounds.ts'

export const retentionEvery = 600_000
/** Ms. docs/contract/rest.md "Call refusals". */
const refusalsKept = 30 * 24 * 3_600_000
/** Ms. Entries of the audit log that belong to no account: nobody but the operator reads them. */
const ownerlessKept = 400 * 24 * 3_600_000
/** Ms. Longer than an event is tried again for. */
const subscriptionsKept = 3 * 24 * 3_600_000
/** Ms after their time: so long a late client is told what became of its token. */
const confirmationsKept = 3_600_000
const batchSize = 1_000
/** Of one kind in one round: the next kind, and the next account, has its turn before more of it. What is left then is for a round right behind. */
const batchesPerRound = 100
/** A call has many rows: so many are removed in one transaction. */
const callsAtOnce = 50
const recordingsAtOnce = 100
const day = 24 * 3_600_000

/** `keep` is how long, ms since their creation. */
export function createRetention(deps: {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly keep: { readonly deliveries: number }
  /** Null or absent: another process removes recordings. */
  readonly recordings?: RecordingStore | null
}): Rounds {
  const { sql, clock, log, keep, recordings = null } = deps
  const removeRecordings = createRecordingRemoval({ ...deps, recordings })
  let closed = false
  /** A round has left something behind that is too old. */
  let isBehind = false

  async function forgetAll(forget: (limit: number) => Promise<number>, limit = batchSize): Promise<number> {
    let forgotten = 0
    for (let batch = 0; batch < batchesPerRound && !closed; batch += 1) {
      const count = await forget(limit)
      forgotten += count
      if (count < limit) return forgotten
    }
    isBehind = true
    return forgotten
  }
  /** What accounts keep for so many days. Whole calls first: nothing else needs to be done with them. */
  async function forgetOfAccounts(now: number): Promise<void> {
    for (const { accountId, callDays, transcriptDays, recordingDays, auditLogDays } of await listRetentionPolicies(
      sql,
    )) {
      const after = async (
        days: number | null,
        forget: (forgetting: Forgetting) => Promise<number>,
      ): Promise<number> =>
        days === null
          ? 0
          : forgetAll((limit) => forget({ accountId, before: now - days * day, now, limit }), callsAtOnce)
      const calls = await after(callDays, (forgetting) => forgetCalls(sql, forgetting))
      const transcripts = await after(transcriptDays, (of) => forgetTranscripts(sql, of, blankedSnapshot))
      // Their faults quote what was said: gone with whichever goes first, transcripts or whole calls.
      const quoted = [transcriptDays, callDays].filter((days) => days !== null)
      if (quoted.length > 0) await forgetSimulations(sql, { accountId, before: now - Math.min(...quoted) * day })
      const recorded = await after(recordingDays, (forgetting) => forgetRecordings(sql, forgetting))
      if (auditLogDays !== null)
        await forgetAll((limit) => forgetAuditRows(sql, { accountId, before: now - auditLogDays * day, limit }))
      if (calls + transcripts + recorded > 0)
        log.info('what an account keeps for a limited time was removed', { accountId, calls, transcripts, recorded })
    }
  }
  async function look(): Promise<boolean> {
    const now = clock.now()
    isBehind = false
    const deliveries = await forgetAll((limit) => forgetDeliveries(sql, now - keep.deliveries, limit))
    await forgetAll((limit) => forgetRefusals(sql, now - refusalsKept, limit))
    await forgetAll((limit) => forgetAuditRows(sql, { accountId: null, before: now - ownerlessKept, limit }))
    await forgetAll((limit) => forgetSubscriptionsOfDeleted(sql, now - subscriptionsKept, limit))
    await forgetAll((limit) => forgetIdempotencyKeys(sql, now - idempotencyLifetime, limit))
    for (const forget of [forgetPayloads, forgetGrants, forgetClients, forgetSessions, forgetInvitations])
      await forgetAll((limit) => forget(sql, now, limit))
    await forgetAll((limit) => forgetConfirmations(sql, { before: now - confirmationsKept, now, limit }))
    if (deliveries > 0) log.info('old deliveries forgotten', { deliveries })
    await forgetOfAccounts(now)
    await forgetAll(removeRecordings, recordingsAtOnce)
    return isBehind && !closed
  }
  const rounds = createRounds({ clock, log, every: retentionEvery, look })
  return {
    ...rounds,
    close() {
      closed = true
      return rounds.close()
    },
  }
}
