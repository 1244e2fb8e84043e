/**
 * Owns the whole service with real voice engines, as `npm start` opens them: real database, REST, webhooks, SIP on loopback. Each line is a worker with
 * a number, a trunk and a webhook receiver's paths of its own. Who speaks on it, and what the providers are, the test says.
 */
import type { Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { newId, type Core } from '../../app/core.ts'
import { startParley, type Parley } from '../../app/parley.ts'
import { openEngines } from '../../app/voice-side.ts'
import type { EventType } from '../../model/events.ts'
import type { ExternalTool } from '../../model/external-tool.ts'
import type { AccountId, WorkerId } from '../../model/ids.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { createAccount } from '../../store/accounts.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { createDocument } from '../../store/documents.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { createTrunks } from '../../store/trunks.ts'
import { createWorker } from '../../store/workers.ts'
import type { EmbeddedEngine } from '../../voice/engines/embedded/engine.ts'
import { configOn } from './config-on.ts'
import { openTestDatabase } from './database.ts'
import { freePorts } from '../peers/peer-program.ts'
import { createQuietLog, type QuietLog } from '../fake/quiet-log.ts'
import { restOf, type Rest } from './rest-of.ts'
import { openFakeWebhookReceiver, type FakeWebhookReceiver, type ScriptedAnswer } from '../fake/webhook-receiver.ts'

type Json = Record<string, unknown>

export type EngineLine = {
  readonly name: string
  readonly number: string
  readonly workerId: WorkerId
  /** Of the receiver. */
  pathOf(what: EventType | 'tool'): string
  /** The next event of the line that no `next` has told yet; waits for it. */
  next(type: EventType): Promise<Json>
  /** All events of the type so far. */
  events(type: EventType): Json[]
  /** What the tool of the line was asked, verified. */
  toolCalls(): Json[]
}

type CallTool = Omit<ExternalTool, 'deliveryUrl' | 'signingSecret'>

export type EngineLineOptions = {
  readonly name: string
  readonly script: string
  readonly config?: WorkerConfig
  /** Of its calls, told in the answer to call.worker_request. */
  readonly tool?: CallTool
  readonly toolAnswers?: readonly ScriptedAnswer[]
  /** Where calls of its trunk go out. */
  readonly gateway?: { readonly host: string; readonly port: number }
}

export type EngineStage = {
  readonly service: Parley
  readonly sipPort: number
  readonly accountId: AccountId
  readonly log: QuietLog
  readonly receiver: FakeWebhookReceiver
  readonly embedded: EmbeddedEngine
  addLine(options: EngineLineOptions): Promise<EngineLine>
  readonly rest: Rest
  /** The service, then the engines; idempotent. The test's teardown calls it. */
  close(): Promise<void>
}

const events = ['call.status_update', 'call.transcript', 'call.ended', 'call.worker_request'] as const
/** Of every tool; only its path tells whose it is. */
export const toolSecret = 'the-secret-of-the-tool'

export async function openEngineStage(
  t: Pick<Test, 'teardown'>,
  settings: Readonly<Record<string, string>>,
): Promise<EngineStage> {
  const database = await openTestDatabase(t)
  const log = createQuietLog()
  const sipPort = await freePorts(2)
  const ports = { SIP_PORT: String(sipPort), SIP_TLS_PORT: String(sipPort + 1) }
  // Calls are to be had on a machine that has other work as well; what is refused for want of room is proved elsewhere.
  const config = configOn(database, { ...ports, LOAD_GATE: 'off', ...settings })
  const receiver = await openFakeWebhookReceiver(t)
  const voices = new AsyncDisposableStack()
  const { engines, embedded } = await openEngines(config, { log, clock: systemClock }, voices)
  const { promise: opened, resolve } = Promise.withResolvers<Core>()
  const seed = async (core: Core): Promise<null> => {
    resolve(core)
    return null
  }
  const service = await startParley({ config, log, engines, seed })
  const close = async (): Promise<void> => {
    await service.close()
    await voices.disposeAsync()
  }
  let closed: Promise<void> | null = null
  t.teardown(() => (closed ??= close()))
  const core = await opened
  const { accountId, key } = await openAccount(core)
  let lines = 0
  return {
    service,
    sipPort,
    accountId,
    log,
    receiver,
    embedded,
    addLine: (options) => addLine({ core, accountId, receiver }, { ...options, order: ++lines }),
    rest: restOf(service.url, accountId, key),
    close: () => (closed ??= close()),
  }
}

async function openAccount({ sql }: Core): Promise<{ accountId: AccountId; key: string }> {
  const account = await createAccount(sql, { name: 'Acme', slug: 'acme', newId, now: Date.now() })
  const accountId = account.id as AccountId
  const { key } = await createApiKey(sql, { accountId, name: 'test', newId, now: Date.now() })
  return { accountId, key }
}

type Place = { readonly core: Core; readonly accountId: AccountId; readonly receiver: FakeWebhookReceiver }

async function addLine(place: Place, options: EngineLineOptions & { readonly order: number }): Promise<EngineLine> {
  const { receiver } = place
  const { name, tool, toolAnswers = [], order } = options
  const number = `+1202555${String(order).padStart(4, '0')}`
  const workerId = await makeWorker(place, { ...options, number })
  const pathOf = (what: EventType | 'tool'): string => `/${order}/${what}`
  for (const type of events) await subscribe(place, { workerId, type, path: pathOf(type) })
  if (tool) {
    const told = { ...tool, deliveryUrl: receiver.url(pathOf('tool')), signingSecret: toolSecret }
    const answer = { status: 200, body: JSON.stringify({ tools: [told] }) }
    receiver.script(pathOf('call.worker_request'), [answer], { forever: true })
    receiver.trust(pathOf('tool'), toolSecret)
    receiver.script(pathOf('tool'), toolAnswers)
  }
  const seen = (path: string): Json[] =>
    receiver.deliveries.filter((delivery) => delivery.path === path).map(({ data }) => data as Json)
  return {
    name,
    number,
    workerId,
    pathOf,
    next: async (type) => (await receiver.next(type, pathOf(type))).data as Json,
    events: (type) => seen(pathOf(type)),
    toolCalls: () => seen(pathOf('tool')),
  }
}

async function makeWorker(
  { core, accountId }: Place,
  { name, script, config = {}, number, gateway }: EngineLineOptions & { readonly number: string },
): Promise<WorkerId> {
  const made = { accountId, newId, now: Date.now() }
  const numbers = { inboundPhoneNumber: number, outboundPhoneNumber: number }
  const worker = await createWorker(core.sql, { ...made, ...numbers, name, language: 'en', config })
  const workerId = worker.id as WorkerId
  const document = { title: 'Script', fileName: `${name}.txt`, content: script, status: 'completed' } as const
  const tagKeys = ['inbound_call_script', 'outbound_call_script']
  await createDocument(core.sql, { ...made, ...document, tagKeys, workerIds: [workerId] })
  const gateways = gateway ? [gateway] : []
  const trunk = { name, gateways, allowedAddresses: ['127.0.0.1'], qualify: false, workerIds: [workerId] }
  await createTrunks({ ...core, newId }).create(accountId, trunk)
  return workerId
}

async function subscribe(
  { core, accountId, receiver }: Place,
  { workerId, type, path }: { readonly workerId: WorkerId; readonly type: EventType; readonly path: string },
): Promise<void> {
  const request = { eventType: type, workerId, url: receiver.url(path) } as const
  const made = { accountId, request, newId, now: Date.now() }
  const { signingSecret } = await createSubscription(core.sql, core.box, made)
  receiver.trust(path, signingSecret ?? '')
}
