/**
 * Owns the whole service as an MCP client finds it: real database, REST, MCP and pages on loopback, behind the HTTP driver that the test names, with
 * an account, a worker and a user who may approve.
 */
import type { Test } from 'tap'
import { newId, type Core } from '../../app/core.ts'
import { startParley, type Parley } from '../../app/parley.ts'
import type { AccountId, UserId, WorkerId } from '../../model/ids.ts'
import type { VoiceEngine } from '../../model/voice-engine.ts'
import { createAccount } from '../../store/accounts.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { addMember } from '../../store/memberships.ts'
import { createPasswords } from '../../store/passwords.ts'
import type { Sql } from '../../store/sql.ts'
import { createUser } from '../../store/users.ts'
import { createWorker } from '../../store/workers.ts'
import { createQuietLog, type QuietLog } from '../fake/quiet-log.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { openTestDatabase } from './database.ts'
import type { Driver } from './listener.ts'
import { restOf, type Rest } from './rest-of.ts'
import { configOn } from './config-on.ts'

export const approver = { email: 'ada@example.com', password: 'correct horse battery staple' } as const

export type McpStage = {
  readonly service: Parley
  readonly url: URL
  readonly sql: Sql
  readonly accountId: AccountId
  readonly workerId: WorkerId
  readonly userId: UserId
  readonly rest: Rest
  readonly log: QuietLog
}

/** Cheap to compute: what passwords cost is proved elsewhere. */
const cheap = { logN: 10, r: 8, p: 1 }

export async function openMcpStage(
  t: Pick<Test, 'teardown'>,
  driver: Driver,
  { settings = {}, engine = createScriptedEngine() }: { settings?: Record<string, string>; engine?: VoiceEngine } = {},
): Promise<McpStage> {
  const database = await openTestDatabase(t)
  const log = createQuietLog()
  const seeded = Promise.withResolvers<Awaited<ReturnType<typeof seed>>>()
  const service = await startParley({
    config: configOn(database, { HTTP_DRIVER: driver, ...settings }),
    log,
    engines: new Map([['embedded', engine]]),
    async seed(core) {
      seeded.resolve(await seed(core))
      return null
    },
  })
  t.teardown(() => service.close())
  const { key, ...ids } = await seeded.promise
  const rest = restOf(service.url, ids.accountId, key)
  return { service, url: new URL('/mcp', service.url), sql: database.sql, ...ids, rest, log }
}

async function seed({ sql }: Core) {
  const now = Date.now()
  const account = await createAccount(sql, { name: 'Acme', slug: 'acme', newId, now })
  const accountId = account.id as AccountId
  const { key } = await createApiKey(sql, { accountId, name: 'test', newId, now })
  const worker = await createWorker(sql, { accountId, name: 'Ada', language: 'en', newId, now })
  const userId = await addApprover(sql, accountId)
  return { accountId, key, workerId: worker.id as WorkerId, userId }
}

/** The user `approver`, as owner of the account. */
async function addApprover(sql: Sql, accountId: AccountId): Promise<UserId> {
  const now = Date.now()
  const passwordHash = await createPasswords(cheap).hash(approver.password)
  const userId = await createUser(sql, { email: approver.email, name: 'Ada Lovelace', passwordHash, newId, now })
  await addMember(sql, { accountId, userId, role: 'owner', now })
  return userId
}
