/** Owns what tests of tools stand on: accounts with workers, calls as rows, a toolbox over real parts. */
import { createSecretKey, randomBytes } from 'node:crypto'
import { sealedTool } from '../../store/tool-calls.ts'
import { systemClock } from '../../app/clock.ts'
import { openScriptCheck } from '../../app/script-check.ts'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createIngestion } from '../../actors/documents/ingestion.ts'
import { lexicalEmbedder } from '../../actors/documents/lexical-embedder.ts'
import { createEmail, type Email } from '../../actors/tools/email.ts'
import { createToolbox, type ToolboxDeps } from '../../actors/tools/toolbox.ts'
import { createWebhookSender } from '../../actors/webhooks/sender.ts'
import type { ExternalTool } from '../../model/external-tool.ts'
import type { CallId, DocumentId } from '../../model/ids.ts'
import type { PersonFacts } from '../../model/person.ts'
import { Problem } from '../../model/problem.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { createDocument } from '../../store/documents.ts'
import { createKnowledge } from '../../store/knowledge.ts'
import { createPerson } from '../../store/persons.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createInlineReader } from '../fake/inline-reader.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createTenant, newId, type Tenant } from './tenant.ts'

type Teardown = { teardown(close: () => Promise<void>): unknown }

export const box = createSecretBox(createSecretKey(randomBytes(32)))

export function openToolbox(t: Teardown, sql: Sql, options: { smtpUrl?: string } & Partial<ToolboxDeps> = {}) {
  const clock = createHandClock()
  const log = createQuietLog()
  const sender = createWebhookSender({ allowHosts: ['127.0.0.1'], log, clock: { ...systemClock, now: clock.now } })
  t.teardown(() => sender.close())
  const { smtpUrl, ...over } = options
  const email: Email | null =
    smtpUrl === undefined ? null : createEmail({ smtpUrl, from: 'agent@parley.test', requireTls: false, log })
  if (email) t.teardown(() => email.close())
  const woken: number[] = []
  const router = { route: () => Promise.reject(new Error('no call of this test has an actor')) }
  const wakeDeliveries = () => void woken.push(clock.now())
  const bus = createLocalBus({ log, clock })
  t.teardown(() => bus.close())
  const refusalOf = async () => null
  const knowledge = createKnowledge({ sql, embedder: lexicalEmbedder, maxBytes: 1_000_000, log })
  const deps = {
    sql,
    bus,
    box,
    sender,
    clock,
    newId,
    log,
    router,
    email,
    knowledge,
    wakeDeliveries,
    refusalOf,
    ...over,
  }
  return { toolbox: createToolbox(deps), bus: deps.bus, clock, log, woken, sender, email }
}

export async function openAccount(sql: Sql, config: WorkerConfig = {}) {
  const tenant = await createTenant(sql, { slug: newId(), config, script: 'greet' })
  return { ...tenant, ...recipesOf(sql, tenant) }
}

function recipesOf(sql: Sql, { accountId, workerId }: Tenant) {
  const now = Date.now()
  return {
    /** Read, and ready to be searched. */
    async document(
      content: string,
      over: { title?: string; isActive?: boolean; tagKeys?: string[]; workerIds?: never[] } = {},
    ): Promise<DocumentId> {
      const id = await createDocument(sql, {
        accountId,
        title: 'Handbook',
        fileName: 'handbook.txt',
        content,
        status: 'queued',
        workerIds: [workerId],
        newId,
        now,
        ...over,
      })
      const deps = { sql, clock: systemClock, log: createQuietLog(), nodeId: newId<'node'>(), newId }
      const reading = { embedder: lexicalEmbedder, checkScript: openScriptCheck, reader: createInlineReader() }
      const ingestion = createIngestion({ ...deps, ...reading })
      await ingestion.idle()
      await ingestion.close()
      return id
    },
    person: (over: Partial<PersonFacts> = {}) =>
      createPerson(sql, {
        accountId,
        request: { type: 'customer', firstName: 'Ada', lastName: 'Lovelace', ...over } as never,
        newId,
        now,
      }),
    contact: (firstName: string, over: Partial<PersonFacts> = {}) =>
      createPerson(sql, {
        accountId,
        request: { type: 'phone_contact', firstName, lastName: 'Miller', workerId, ...over } as never,
        newId,
        now,
      }),
    /** An active trunk that has the worker, and a way out. */
    async trunk(isActive = true): Promise<void> {
      const trunkId = newId<'trunk'>()
      const config = sql.json({ gateways: [{ host: '127.0.0.1' }] })
      await sql`insert into trunks ${sql({ id: trunkId, accountId, name: 'Carrier', direction: 'both', isActive, config })}`
      await sql`insert into trunk_workers ${sql({ accountId, trunkId, workerId })}`
    },
    /** As a row; answered and going on unless `over` says otherwise. */
    async call(over: CallColumns = {}): Promise<CallId> {
      const { customer = null, metadata = null, tools = [], hookAnswer = {}, ...columns } = over
      const id = newId<'call'>()
      const sealed = tools.map((tool) => sealedTool(box, { accountId, callId: id }, tool))
      await sql`
        insert into calls ${sql({
          id,
          accountId,
          workerId,
          sessionId: newId(),
          direction: 'inbound',
          transport: 'webrtc',
          progress: 'in_progress',
          startedAt: now,
          snapshot: sql.json({}),
          externalTools: sql.json(sealed as never),
          customer: customer && sql.json(customer as never),
          metadata: metadata && sql.json(metadata as never),
          hookAnswer: sql.json(hookAnswer as never),
          ...columns,
        })}`
      return id
    },
  }
}

type CallColumns = {
  customer?: object
  metadata?: object
  tools?: readonly ExternalTool[]
  hookAnswer?: object
  direction?: 'inbound' | 'outbound'
  transport?: 'webrtc' | 'sip_trunk'
  fromNumber?: string
  toNumber?: string
  callerVerified?: boolean | null
  personId?: string
  startedAt?: number | null
  outcome?: string
  epoch?: number
}

/** The Problem that the promise is rejected with; anything else fails the test. */
export async function problemOf(work: Promise<unknown>): Promise<Problem> {
  const thrown = await work.then(
    () => new Error('nothing was refused'),
    (error: unknown) => error,
  )
  if (thrown instanceof Problem) return thrown
  throw thrown
}
