/**
 * Owns the whole service as carriers and phones find it: real database, REST, webhooks and SIP on loopback. Each line is a worker with a
 * number and a trunk of its own, so that many calls can be under way at once and each is told from the others.
 */
import type { Test } from 'tap'
import { newId, type Core } from '../../app/core.ts'
import { startParley, type Parley } from '../../app/parley.ts'
import type { EventType, StatusUpdateData } from '../../model/events.ts'
import type { AccountId, CallId, TrunkId, WorkerId } from '../../model/ids.ts'
import type { Telemetry } from '../../model/telemetry.ts'
import type { TrunkRequest } from '../../model/trunk.ts'
import type { VoiceEngine } from '../../model/voice-engine.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { createAccount } from '../../store/accounts.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { createDocument } from '../../store/documents.ts'
import type { Sql } from '../../store/sql.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { createTrunks } from '../../store/trunks.ts'
import { createWorker } from '../../store/workers.ts'
import { configOn } from './config-on.ts'
import { openTestDatabase } from './database.ts'
import { freePorts } from '../peers/peer-program.ts'
import { createQuietLog, type QuietLog } from '../fake/quiet-log.ts'
import { restOf, type Rest } from './rest-of.ts'
import { openFakeWebhookReceiver, type FakeWebhookReceiver } from '../fake/webhook-receiver.ts'
import { until } from './in-time.ts'

type Json = Record<string, unknown>

export type LineOptions = {
  readonly trunk?: Partial<TrunkRequest>
  readonly worker?: WorkerConfig
  /** False: no events; for many calls. */
  readonly events?: boolean
  /** Null: the worker has no number to call from. */
  readonly from?: null
}

/** What became of one call. */
export type Ended = {
  /** As REST tells it. */
  readonly row: Json
  /** Of call.ended. */
  readonly told: Json
  /** `status` or `status providerStatus` of every call.status_update, in their order. */
  readonly statuses: readonly string[]
}

export type ServedLine = {
  /** Calls to it come in; calls from it show it. */
  readonly number: string
  readonly workerId: WorkerId
  readonly trunkId: TrunkId
  /** By REST; the call's id. */
  dial(to?: string): Promise<CallId>
  /** The next call of the line that has ended; waits for it. */
  ended(): Promise<Ended>
  /** The next status of a call of the line. */
  status(wanted: string): Promise<Json>
  /** What the next event of this type says of a call of the line. */
  event(type: EventType): Promise<Json>
}

export type PhoneStageOptions = {
  readonly settings?: Readonly<Record<string, string>>
  /** There before the service looks after trunks. */
  readonly lines?: readonly LineOptions[]
  readonly telemetry?: Telemetry
}

export type PhoneStage = {
  readonly service: Parley
  /** Of UDP and TCP. */
  readonly port: number
  readonly tlsPort: number
  readonly accountId: AccountId
  /** Path of the folder of recordings and of the database. */
  readonly dataDir: string
  readonly log: QuietLog
  /** Those that were asked for at the start. */
  readonly lines: readonly ServedLine[]
  addLine(options?: LineOptions): Promise<ServedLine>
  readonly rest: Rest
  /** Of all lines. */
  readonly deliveries: FakeWebhookReceiver['deliveries']
}

export async function openPhoneStage(
  t: Pick<Test, 'teardown'>,
  engine: VoiceEngine,
  { settings = {}, lines = [], telemetry }: PhoneStageOptions = {},
): Promise<PhoneStage> {
  const database = await openTestDatabase(t)
  const log = createQuietLog()
  // One port for UDP and TCP; 0 would give each its own.
  const sipPort = await freePorts(2)
  const ports = { SIP_PORT: String(sipPort), SIP_TLS_PORT: String(sipPort + 1) }
  const receiver = await openFakeWebhookReceiver(t)
  const account = createAccountOf(receiver)
  const service = await startParley({
    config: configOn(database, { ...ports, ...settings }),
    log,
    ...(telemetry && { telemetry }),
    engines: new Map([['embedded', engine]]),
    async seed(core) {
      await account.open(core)
      for (const line of lines) await account.make(line)
      return null
    },
  })
  t.teardown(() => service.close())
  const { accountId, key } = account.opened()
  const rest = restOf(service.url, accountId, key)
  const serve = (made: MadeLine): ServedLine => serveLine(made, { rest, receiver })
  return {
    service,
    accountId,
    dataDir: database.dataDir,
    log,
    rest,
    deliveries: receiver.deliveries,
    port: sipPort,
    tlsPort: sipPort + 1,
    lines: account.made.map(serve),
    addLine: async (options = {}) => serve(await account.make(options)),
  }
}

type MadeLine = Pick<ServedLine, 'number' | 'workerId' | 'trunkId'>

function serveLine(
  line: MadeLine,
  { rest, receiver }: { readonly rest: Rest; readonly receiver: FakeWebhookReceiver },
): ServedLine {
  const next = async (type: EventType) => (await receiver.next(type, pathOf(line.number))).data as Json
  const statusesOf = (callId: unknown) =>
    receiver.deliveries
      .filter(({ type, data }) => type === 'call.status_update' && (data as Json)['callId'] === callId)
      .map(({ data }) => data as StatusUpdateData)
      .map(({ status, providerStatus }) => `${status} ${providerStatus ?? ''}`.trim())
  return {
    ...line,
    async dial(phoneNumber) {
      const call = await rest('POST', '/phone-calls', { workerId: line.workerId, ...(phoneNumber && { phoneNumber }) })
      return call['id'] as CallId
    },
    async ended() {
      const told = await next('call.ended')
      const row = await rest('GET', `/phone-calls/${String(told['callId'])}`)
      return { told, row, statuses: statusesOf(told['callId']) }
    },
    event: next,
    async status(wanted) {
      for (;;) {
        const told = await next('call.status_update')
        if (told['status'] === wanted) return told
      }
    },
  }
}

const pathOf = (number: string): string => `/${number}`

/** The account and its lines: those of the seed are there before the service looks after trunks. */
function createAccountOf(receiver: FakeWebhookReceiver) {
  const made: MadeLine[] = []
  let opened: { readonly core: Core; readonly accountId: AccountId; readonly key: string } | null = null
  const required = () => {
    if (!opened) throw new Error('the account is not open')
    return opened
  }
  let count = 0
  return {
    made,
    opened: required,
    async open(core: Core) {
      const config = { maxConcurrentCalls: 5_000 }
      const account = await createAccount(core.sql, { name: 'Acme', slug: 'acme', config, newId, now: Date.now() })
      const accountId = account.id as AccountId
      const { key } = await createApiKey(core.sql, { accountId, name: 'test', newId, now: Date.now() })
      opened = { core, accountId, key }
    },
    async make(options: LineOptions): Promise<MadeLine> {
      const { core, accountId } = required()
      count += 1
      const number = `+1202555${String(count).padStart(4, '0')}`
      const line = { number, ...(await makeLine(core, { accountId, number }, options)) }
      if (options.events !== false) await subscribe(core, { ...line, accountId, path: pathOf(number) }, receiver)
      made.push(line)
      return line
    },
  }
}

type Place = { readonly accountId: AccountId; readonly number: string }

async function makeLine(core: Core, { accountId, number }: Place, { trunk, worker, from }: LineOptions) {
  const { sql } = core
  const made = { accountId, newId, now: Date.now() }
  const numbers = { inboundPhoneNumber: number, outboundPhoneNumber: from === null ? null : number }
  const created = await createWorker(sql, { ...made, ...numbers, name: number, language: 'en', config: worker ?? {} })
  const workerId = created.id as WorkerId
  const script = { title: 'Script', fileName: 'script.txt', content: `Line ${number}`, status: 'completed' } as const
  const tagKeys = ['inbound_call_script', 'outbound_call_script']
  await createDocument(sql, { ...made, ...script, tagKeys, workerIds: [workerId] })
  const trunks = createTrunks({ ...core, newId })
  const usual = { name: number, allowedAddresses: ['127.0.0.1'], qualify: false, workerIds: [workerId] }
  const { id } = await trunks.create(accountId, { ...usual, ...trunk })
  return { workerId, trunkId: id as TrunkId }
}

async function subscribe(
  { sql, box }: Core,
  { accountId, workerId, path }: { accountId: AccountId; workerId: WorkerId; path: string },
  receiver: FakeWebhookReceiver,
): Promise<void> {
  const request = { eventType: '*', workerId, url: receiver.url(path) } as const
  const { signingSecret } = await createSubscription(sql, box, { accountId, request, newId, now: Date.now() })
  receiver.trust(path, signingSecret ?? '')
}

/** How many calls of a worker ended how, once all have. */
export async function outcomesOf(sql: Sql, workerId: WorkerId): Promise<Record<string, number>> {
  const outcomes = await until(async () => {
    const rows = await sql<{ outcome: string | null; count: number }[]>`
      select outcome, count(*)::int as count from calls where worker_id = ${workerId} group by outcome`
    return rows.every(({ outcome }) => outcome !== null) && rows
  })
  return Object.fromEntries(outcomes.map(({ outcome, count }) => [String(outcome), count]))
}
