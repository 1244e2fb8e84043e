/**
 * Owns the writing of the audit log. Entries go to the database in groups, one group at a time: what comes while one is written is the next. An entry
 * that could not be stored because the database was away stays and is tried again. A change that must not be without its entry has it begun
 * before: when its process dies, the entry is there and has no result.
 */
import type { Actor, Audit, AuditEntry, AuditRow, BeginEntry, Beginning } from '../model/audit.ts'
import type { Clock } from '../model/clock.ts'
import type { NewId } from '../model/ids.ts'
import { storableText } from '../model/json.ts'
import type { Log } from '../model/log.ts'
import { Problem } from '../model/problem.ts'
import { maskedArguments } from './audit-arguments.ts'
import { writeAuditRows } from './audit-rows.ts'
import { databaseUnreachable } from './database-unreachable.ts'
import type { Sql } from './sql.ts'

export type AuditLog = Audit & {
  readonly begin: BeginEntry
  /** What `noteSoon` was given until now is stored, unless the database is away. */
  flush(): Promise<void>
  /** Stores what is left, or tells how much was lost. Idempotent. */
  close(): Promise<void>
}

type AuditDeps = { readonly sql: Sql; readonly clock: Clock; readonly newId: NewId; readonly log: Log }

type Waiting = {
  readonly row: AuditRow
  /** Absent: nobody waits for it. */
  readonly stored?: PromiseWithResolvers<void>
  /** False: who waits does nothing without it, so it is not tried again. */
  readonly isKept: boolean
}

/** Rows of one statement. */
const mostAtOnce = 200
/** Changes that wait for a database that is away; more are refused. */
const mostChanges = 10_000
/** Reads that wait; more are dropped, and counted. */
const mostReads = 2_000
const soon = 1_000
const retryAfter = 1_000
const longestName = 200

export function createAudit({ sql, clock, newId, log }: AuditDeps): AuditLog {
  let changes: Waiting[] = []
  let reads: Waiting[] = []
  let dropped = 0
  let writing: Promise<void> | null = null
  /** The group of it that is on its way. */
  let current: Promise<void> | null = null
  let cancelTimer: (() => void) | null = null
  let isAway = false

  function rowOf(
    entry: Beginning & Partial<AuditEntry>,
    id = newId<'audit_entry'>(),
    at = Math.round(clock.now()),
  ): AuditRow {
    const { accountId, actor, action, result = null, errorCode, callIds = [], requestId } = entry
    return {
      id,
      accountId,
      at,
      ...actorColumnsOf(actor),
      action: storableText(action, longestName),
      // A null of JSON is none of a row.
      arguments: maskedArguments(entry.arguments, accountId) ?? {},
      result,
      errorCode: errorCode === undefined ? null : storableText(errorCode, longestName),
      callIds: callIds.slice(0, mostAtOnce),
      requestId: requestId === undefined ? null : storableText(requestId, longestName),
    }
  }

  /** All that waits, a group after the other. Ends when nothing is left, or the database is away. */
  function write(): Promise<void> {
    return (writing ??= writeGroups())
  }
  async function writeGroups(): Promise<void> {
    // What was asked for in one turn of the event loop is one group.
    await new Promise((resolve) => setImmediate(resolve))
    cancelTimer?.()
    cancelTimer = null
    isAway = false
    while (!isAway && changes.length + reads.length > 0) {
      const group = changes.splice(0, mostAtOnce)
      group.push(...reads.splice(0, mostAtOnce - group.length))
      await (current = writeGroup(group))
    }
    tellDropped()
    if (isAway) later(retryAfter)
    // In the same breath: what comes now begins another round.
    writing = null
  }
  async function writeGroup(group: readonly Waiting[]): Promise<void> {
    try {
      await writeAuditRows(
        sql,
        group.map(({ row }) => row),
      )
      for (const { stored } of group) stored?.resolve()
    } catch (error) {
      if (databaseUnreachable(error)) return putBack(group, error)
      const [only, ...others] = group
      // One entry that cannot be stored takes no other one with it.
      if (others.length > 0) for (const waiting of group) await writeGroup([waiting])
      else if (only?.stored) only.stored.reject(error)
      else log.error('an audit entry could not be stored', { error })
    }
  }
  function putBack(group: readonly Waiting[], error: unknown): void {
    if (!isAway) log.warn('the database is away: audit entries wait', { error, waiting: group.length + changes.length })
    isAway = true
    changes = [...group.filter(({ isKept, stored }) => isKept && stored), ...changes]
    reads = [...group.filter(({ stored }) => !stored), ...reads]
    dropped += Math.max(0, reads.length - mostReads)
    reads = reads.slice(0, mostReads)
    for (const { isKept, stored } of group) if (!isKept) stored?.reject(error)
  }
  function tellDropped(): void {
    if (dropped > 0) log.warn('audit entries of reads were dropped', { count: dropped })
    dropped = 0
  }
  function later(ms: number): void {
    cancelTimer ??= clock.after(ms, () => {
      cancelTimer = null
      void write()
    })
  }
  async function store(row: AuditRow, isKept: boolean): Promise<void> {
    if (changes.length >= mostChanges)
      throw new Problem('SERVICE_UNAVAILABLE', 'The service is not available. Try again soon.')
    const stored = Promise.withResolvers<void>()
    changes.push({ row, stored, isKept })
    // While the database is away, every entry would wait for it anew.
    if (!isAway || !isKept) void write()
    return stored.promise
  }

  return {
    note: (entry) => store(rowOf(entry), true),
    noteSoon(entry) {
      if (reads.length >= mostReads) dropped += 1
      else reads.push({ row: rowOf(entry), isKept: true })
      if (reads.length >= mostAtOnce && !isAway) void write()
      else later(soon)
    },
    async begin(beginning) {
      const begun = rowOf(beginning)
      await store(begun, false)
      return ({ arguments: given = beginning.arguments, ...ending }) =>
        store(rowOf({ ...beginning, ...ending, arguments: given }, begun.id, begun.at), true)
    },
    async flush() {
      await current
      for (let left = reads.length; left > 0 && !isAway; left -= mostAtOnce)
        await writeGroup(reads.splice(0, Math.min(left, mostAtOnce)))
    },
    async close() {
      await writing
      if (changes.length + reads.length > 0) await write()
      cancelTimer?.()
      cancelTimer = null
      const left = [...changes, ...reads]
      ;[changes, reads] = [[], []]
      if (left.length === 0) return
      log.error('audit entries were lost: the database was away until the end', { count: left.length })
      for (const { stored } of left) stored?.reject(new Error('the audit log was closed'))
    },
  }
}

function actorColumnsOf(actor: Actor): Pick<AuditRow, 'actorKind' | 'keyId' | 'clientId' | 'userId'> {
  const nobody = { actorKind: actor.kind, keyId: null, clientId: null, userId: null }
  switch (actor.kind) {
    case 'api_key':
      return { ...nobody, keyId: actor.keyId }
    case 'mcp_client':
      return { ...nobody, clientId: storableText(actor.clientId, 2 * longestName), userId: actor.userId }
    case 'user':
      return { ...nobody, userId: actor.userId }
    case 'operator':
      return nobody
  }
}
