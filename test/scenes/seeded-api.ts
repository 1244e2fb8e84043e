/** Owns the API of the tests: the real application on a real database with two accounts, asked without a socket. */
import { createSecretKey, randomBytes } from 'node:crypto'
import path from 'node:path'
import { v7 } from 'uuid'
import { createReplayCheck } from '../../actors/call/check-replay.ts'
import { createDueWatch } from '../../actors/rounds/due-watch.ts'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createApi } from '../../api/api.ts'
import type { ApiDeps } from '../../api/deps.ts'
import type { RequestLimit } from '../../api/rate-limit.ts'
import { openCallSide } from '../../app/call-side.ts'
import { readConfig } from '../../app/config.ts'
import type { Clock } from '../../model/clock.ts'
import type { AccountId, CallId, Id, NewId, WorkerId } from '../../model/ids.ts'
import type { Json } from '../../model/json.ts'
import type { Log, LogFields } from '../../model/log.ts'
import { noTelemetry } from '../../model/telemetry.ts'
import type { WebCallRequest } from '../../model/web-call.ts'
import { createAccount } from '../../store/accounts.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { createRecordingFolder } from '../../store/recording-folder.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { createTrunks } from '../../store/trunks.ts'
import { createWorker } from '../../store/workers.ts'
import { openTestDatabase, type Teardown, type TestDatabase } from './database.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'

export const newId: NewId = <Kind extends string>() => v7() as Id<Kind>
export const start = Date.UTC(2026, 0, 1, 12)

/** `after` runs only when a test turns the hands. */
export function createHands() {
  let now = start
  const waiting = new Set<{ at: number; action: () => void }>()
  const clock: Clock = {
    now: () => now,
    after(ms, action) {
      const timer = { at: now + ms, action }
      waiting.add(timer)
      return () => void waiting.delete(timer)
    },
  }
  const turn = (ms: number) => {
    now += ms
    for (const timer of [...waiting].filter(({ at }) => at <= now)) {
      waiting.delete(timer)
      timer.action()
    }
  }
  return { clock, turn, waiting: () => waiting.size }
}

export type Line = {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: LogFields
}

export function createRecordedLog(): { log: Log; lines: Line[] } {
  const lines: Line[] = []
  const at =
    (level: Line['level']) =>
    (message: string, fields: LogFields = {}) =>
      void lines.push({ level, message, fields })
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), with: () => log }
  return { log, lines }
}

export type Asked = { accountId: AccountId; request: WebCallRequest }

/** The call side is the real one; its loops stand still, so that nothing is sent or dialed behind a test's back. */
export async function openSeededApi(
  t: Teardown,
  changes: Partial<ApiDeps> = {},
  connectTo: (database: TestDatabase) => Sql = ({ sql }) => sql,
) {
  const database = await openTestDatabase(t)
  const { dataDir } = database
  const sql = connectTo(database)
  const hands = createHands()
  const { clock } = hands
  const { log, lines } = createRecordedLog()
  const closing = new AsyncDisposableStack()
  t.teardown(() => closing.disposeAsync())
  const bus = createLocalBus({ log, clock })
  closing.defer(() => bus.close())
  const box = createSecretBox(createSecretKey(randomBytes(32)))
  const recordings = createRecordingFolder({ folder: path.join(dataDir, 'recordings'), clock, log })
  const recordingUrlKey = createSecretKey(randomBytes(32))
  const dueWatch = createDueWatch({ sql, clock, log })
  closing.defer(() => dueWatch.close())
  const core = {
    sql,
    bus,
    box,
    recordingUrlKey,
    recordings: { ...recordings, beginWriting: () => () => undefined },
    requests: sql,
    dueWatch,
    nodeId: newId<'node'>(),
    newId,
    clock,
    log,
    telemetry: noTelemetry,
  }
  const engine = createScriptedEngine()
  const calls = openCallSide(core, readConfig({}), new Map([['embedded', engine]]), closing)
  const asked: Asked[] = []
  const deps: ApiDeps = {
    ...core,
    ...calls,
    createWebCall(accountId, request, once) {
      asked.push({ accountId, request })
      return calls.createWebCall(accountId, request, once)
    },
    checkReplay: createReplayCheck(core),
    trunks: createTrunks(core),
    iceServers: () => [],
    publicUrl: null,
    rateLimits: { perAccount: 0, perAddress: 0 },
    demo: null,
    ...changes,
  }
  const own = await seedAccount(sql, 'own')
  const other = await seedAccount(sql, 'other')
  const ask = createAsk(deps, own.key)
  return { sql, deps, engine, calls, box, ask, own, other, asked, hands, lines, recordings, database }
}

export type AskOptions = {
  readonly method?: string
  /** Null sends none. */
  readonly key?: string | null
  readonly json?: unknown
  readonly body?: string | Uint8Array<ArrayBuffer>
  readonly headers?: Record<string, string>
  readonly remoteAddress?: string
}

/** One question to an API, as text so that a test sees the whole answer. */
export function createAsk(deps: ApiDeps, ownKey: string, limit?: RequestLimit) {
  const fetch = createApi(deps, limit)
  return async (target: string, options: AskOptions = {}) => {
    const { method = 'GET', key = ownKey, json, body = json === undefined ? undefined : JSON.stringify(json) } = options
    const headers = new Headers({
      ...(key !== null && { 'x-api-key': key }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...options.headers,
    })
    const request = new Request(new URL(target, 'http://calls.example:8080'), { method, headers, body: body ?? null })
    const response = await fetch(request, { remoteAddress: options.remoteAddress ?? '192.0.2.7' })
    const bytes = Buffer.from(await response.arrayBuffer())
    const text = bytes.toString()
    return { status: response.status, headers: response.headers, bytes, text, json: jsonOf(text) }
  }
}

// eslint-disable-next-line typescript/no-explicit-any -- an answer is whatever the test says it is
function jsonOf(text: string): any {
  try {
    return JSON.parse(text)
  } catch {
    return null // Audio, or nothing at all.
  }
}

async function seedAccount(sql: Sql, slug: string) {
  const { id } = await createAccount(sql, { name: `${slug} account`, slug, newId, now: start })
  const { key, id: keyId } = await createApiKey(sql, { accountId: id, name: 'test', newId, now: start })
  const worker = await createWorker(sql, {
    accountId: id,
    name: `${slug} worker`,
    language: 'en-US',
    newId,
    now: start,
  })
  const callId = await insertCall(sql, id, worker.id)
  return { id, key, keyId, worker, callId }
}

type CallColumns = Record<string, string | number | boolean | null>

/** A row as an actor leaves it; `columns` replace what a finished web call has. */
export async function insertCall(
  sql: Sql,
  accountId: AccountId,
  workerId: WorkerId,
  columns: CallColumns = {},
  documents: { customer?: Json; nextAction?: Json; dimensions?: Json; quality?: Json; metadata?: Json } = {},
): Promise<CallId> {
  const id = newId<'call'>()
  const row = {
    id,
    accountId,
    workerId,
    sessionId: newId(),
    direction: 'inbound',
    transport: 'webrtc',
    progress: 'scheduled',
    createdAt: start,
    snapshot: sql.json({}),
    ...Object.fromEntries(Object.entries(documents).map(([name, value]) => [name, sql.json(value as never)])),
    ...columns,
  }
  await sql`insert into calls ${sql(row)}`
  return id
}

export async function insertTurns(
  sql: Sql,
  accountId: AccountId,
  callId: CallId,
  turns: readonly {
    role: string
    text: string
    from: number
    to: number
    confidence: number | null
    source: string | null
  }[],
): Promise<void> {
  for (const [turnIndex, { from, to, ...turn }] of turns.entries())
    await sql`insert into transcript_turns ${sql({ ...turn, fromMs: from, toMs: to, turnIndex, accountId, callId })}`
}
