/**
 * An integrator who has read the pages of docs/contract/ and nothing else: the service is a program that was started, everything
 * goes over HTTP, and each answer and each event is compared with the document field by field.
 */
import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { test, type Test } from 'tap'
import { WebSocket } from 'ws'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { placeWebCall } from '../../tools/callers/web-caller.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { parseWav } from '../scenes/parse-wav.ts'
import { createSyntheticCaller } from '../../tools/callers/synthetic-caller.ts'
import { createFolder } from '../scenes/folder.ts'
import { soundThreads } from '../scenes/sound-threads.ts'

type Fields = Record<string, unknown>
type Answer = { readonly status: number; readonly headers: Headers; readonly body: Fields }
type Ask = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>

const program = path.join(import.meta.dirname, '../../tools/start/start.ts')

/** `npm start`, as its output tells where it is and what the key is. */
async function startService(t: Test): Promise<{ url: string; key: string; page: string }> {
  const folder = await createFolder(t)
  const { PATH, HOME } = process.env
  const child = spawn(process.execPath, [program], {
    cwd: folder,
    env: {
      PATH,
      HOME,
      ...soundThreads(),
      PORT: '0',
      SIP_PORT: '0',
      DATA_DIR: path.join(folder, 'data'),
      SELF_TEST: 'off',
      SHUTDOWN_GRACE_SECONDS: '0',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(async () => {
    if (child.exitCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    await gone
  })
  let [key, page] = ['', '']
  for await (const line of createInterface({ input: child.stdout })) {
    key ||= /vk_\w+/.exec(line)?.[0] ?? ''
    const url = /curl .*(http:\/\/127\.0\.0\.1:\d+)/.exec(line)?.[1]
    page ||= /http:\S+\?token=\S+/.exec(line)?.[0] ?? ''
    if (url) return { url, key, page }
  }
  throw new Error('the service ended before it said where it is')
}

/** As a forwarder on this machine that adds no header: it knows the port, and not what `npm start` printed. */
async function opensDemo(t: Test, page: string): Promise<void> {
  const session = (search: string) => fetch(new URL(`/demo/session${search}`, page), { method: 'POST' })
  t.match(new URL(page).search, /^\?token=[\w-]{20,}$/)
  for (const search of ['', '?token=', '?token=guess']) t.equal((await session(search)).status, 401, search)
  t.equal((await session(new URL(page).search)).status, 200, 'as the page does')
}

function createClient(url: string, key: string): Ask {
  return async (method, where, body, headers = {}) => {
    const json = body === undefined ? {} : { 'content-type': 'application/json' }
    const answer = await fetch(new URL(where, url), {
      method,
      headers: { 'x-api-key': key, ...json, ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, body: text === '' ? {} : (JSON.parse(text) as Fields) }
  }
}

type Event = {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly raw: Buffer
  readonly type: string
  readonly data: Fields
}
type HookAnswer = { readonly status: number; readonly body: unknown }

/** The integrator's endpoint: keeps every delivery, and answers hooks as `answers` says by path. */
async function openReceiver(t: Test) {
  const events: Event[] = []
  const taken = new Set<Event>()
  const waiting = new Set<() => void>()
  const answers = new Map<string, HookAnswer>()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const raw = Buffer.concat(chunks)
      const { type, data } = JSON.parse(raw.toString()) as { type: string; data: Fields }
      const isSync = request.headers['x-service-delivery'] === 'sync'
      const { status, body } = (isSync && answers.get(request.url ?? '')) || { status: 200, body: {} }
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      events.push({ path: request.url ?? '', headers: request.headers, raw, type, data })
      for (const look of waiting) look()
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(async () => {
    const closed = once(server.close(), 'close')
    server.closeAllConnections()
    await closed
  })
  const { port } = server.address() as AddressInfo
  const take = (fits: (event: Event) => boolean): Event | undefined => {
    const found = events.find((event) => !taken.has(event) && fits(event))
    if (found) taken.add(found)
    return found
  }
  return {
    events,
    url: (where: string) => `http://127.0.0.1:${port}${where}`,
    answer: (where: string, status: number, body: unknown) => void answers.set(where, { status, body }),
    of: (callId: unknown, where: string) =>
      events.filter((event) => event.path === where && event.data['callId'] === callId),
    next: (fits: (event: Event) => boolean) =>
      new Promise<Event>((resolve) => {
        const look = (): void => {
          const found = take(fits)
          if (!found) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
      }),
  }
}
type Receiver = Awaited<ReturnType<typeof openReceiver>>

/** A field of the document: its type, `?` when it may be absent, `null` when it may be null. */
type Shape = Readonly<Record<string, string>>
const isIso = (value: unknown): boolean => typeof value === 'string' && new Date(value).toISOString() === value

const fits: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string' && value !== '',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  array: (value) => Array.isArray(value),
  time: isIso,
  e164: (value) => typeof value === 'string' && /^\+[1-9]\d{6,14}$/.test(value),
  null: (value) => value === null,
  any: () => true,
}

function complies(t: Test, what: string, given: Fields, shape: Shape): void {
  const flaws = Object.entries(shape).flatMap(([name, rule]) => {
    if (!(name in given)) return rule.endsWith('?') ? [] : [`${name} is missing`]
    const kinds = rule.replace('?', '').split('|')
    return kinds.some((kind) => fits[kind]?.(given[name]))
      ? []
      : [`${name}: ${JSON.stringify(given[name])} is no ${rule}`]
  })
  const unknown = Object.keys(given).filter((name) => !(name in shape))
  t.same({ flaws, unknown }, { flaws: [], unknown: [] }, `${what} is as the document has it`)
}

const shapes = {
  account: { id: 'string', name: 'string?', slug: 'string?', createdAt: 'time?', updatedAt: 'time?' },
  worker: {
    id: 'string',
    accountId: 'string',
    name: 'string',
    language: 'string',
    type: 'object?',
    inboundPhoneNumber: 'e164?',
    outboundPhoneNumber: 'e164?',
    // Additive.
    isActive: 'boolean',
    maxConcurrentCalls: 'integer?',
  },
  config: {
    workerId: 'string',
    accountId: 'string',
    language: 'string',
    voiceId: 'string?',
    llmProvider: 'string?',
    llmTemperature: 'number?',
    ringTimeout: 'number?',
    firstSpeechTimeout: 'number?',
    inboundStaticMessageEnabled: 'boolean?',
    inboundStaticMessageText: 'string?',
    serviceDownRedirectEnabled: 'boolean?',
    serviceDownRedirectNumber: 'string?',
    emailEnabled: 'boolean?',
    testModeEnabled: 'boolean?',
    recordingChannelMode: 'string?',
    recordingEnabled: 'boolean?',
    dimensions: 'array?',
    nextActions: 'array?',
  },
  call: {
    id: 'string',
    status: 'string',
    direction: 'string',
    postProcessingStatus: 'string',
    fromNumber: 'e164?',
    toNumber: 'e164?',
    nextAction: 'any?',
    dimensions: 'object?',
    startedAt: 'time?',
    endedAt: 'time?',
    duration: 'number?',
    customer: 'object?',
    workerId: 'string?',
    scheduledAt: 'time?',
    // Additive.
    outcome: 'string?',
    progress: 'string?',
    transport: 'string?',
    metadata: 'object?',
    endedBy: 'string?',
    endCause: 'string?',
    failedReason: 'string?',
    trunkId: 'string?',
    providerStatus: 'string?',
    evidence: 'object?',
    nextActionData: 'object?',
    summary: 'string?',
    quality: 'object?',
    recordingState: 'string?',
    disclosure: 'object?',
    usage: 'object?',
  },
  segment: {
    timestamps: 'object',
    speaker: 'string',
    text: 'string',
    confidence: 'number|null',
    source: 'string|null',
  },
  audio: { id: 'string', url: 'string' },
  session: {
    callId: 'string',
    sessionId: 'string',
    signalingUrl: 'string',
    token: 'string',
    iceServers: 'array',
    expiresAt: 'time',
  },
  subscription: {
    id: 'string',
    accountId: 'string',
    workerId: 'string|null?',
    eventType: 'string',
    deliveryMode: 'string',
    url: 'string',
    signingSecret: 'string|null?',
    headers: 'object?',
    timeoutMs: 'number?',
    enabled: 'boolean',
    required: 'boolean',
    createdAt: 'time',
    updatedAt: 'time',
  },
  tool: { name: 'string', provider: 'string', description: 'string', inputSchema: 'object', capabilityKey: 'string' },
  error: {
    statusCode: 'integer',
    type: 'string',
    localizedKey: 'string',
    details: 'string',
    requestId: 'string',
    issues: 'array?',
  },
  'call.worker_request': {
    callId: 'string',
    accountId: 'string',
    workerId: 'string',
    direction: 'string',
    transport: 'string?',
    customer: 'object?',
    metadata: 'object?',
  },
  'call.tool_call': {
    callId: 'string',
    accountId: 'string',
    workerId: 'string',
    toolCallId: 'string',
    name: 'string',
    arguments: 'object',
    metadata: 'object?',
  },
  'call.transcript': {
    callId: 'string',
    turnIndex: 'integer',
    role: 'string',
    text: 'string',
    isFinal: 'boolean',
    confidence: 'number|null',
    source: 'string|null',
    ts: 'time',
    metadata: 'object?',
  },
  'call.status_update': {
    callId: 'string',
    status: 'string',
    providerStatus: 'string|null',
    ts: 'time',
    metadata: 'object?',
  },
  'call.ended': {
    callId: 'string',
    status: 'string',
    failedReason: 'string|null?',
    endedBy: 'string|null?',
    endCause: 'string|null?',
    accountId: 'string',
    workerId: 'string',
    direction: 'string?',
    fromNumber: 'e164|null?',
    toNumber: 'e164|null?',
    duration: 'number|null?',
    scheduledAt: 'time|null?',
    startedAt: 'time|null?',
    endedAt: 'time|null?',
    transcript: 'any?',
    recordingAvailable: 'boolean',
    nextAction: 'object?',
    personId: 'string|null?',
    metadata: 'object?',
  },
} as const satisfies Record<string, Shape>

const compliesWithEvent = (t: Test, event: Event, secret: string, accountId: unknown): void => {
  const { headers, raw, type, data } = event
  complies(t, type, data, shapes[type as keyof typeof shapes])
  t.same(Object.keys(JSON.parse(raw.toString()) as Fields), ['type', 'data'])
  t.match(headers, {
    'x-service-event': type,
    'x-service-event-id': /^[0-9a-f-]{36}$/,
    'x-service-account-id': accountId,
    'x-service-attempt': '1',
    'content-type': 'application/json',
    'x-service-signature': createHmac('sha256', secret).update(raw).digest('hex'),
  })
  t.ok(isIso(headers['x-service-timestamp']), 'X-Service-Timestamp is ISO 8601')
}

/** Every number, status and type of a refusal. */
function refused(t: Test, { status, headers, body }: Answer, statusCode: number, type: string): void {
  t.equal(status, statusCode, type)
  t.equal(headers.get('content-type'), 'application/json')
  complies(t, 'the refusal', body, shapes.error)
  const localizedKey = `errors.${type.toLowerCase().replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())}`
  t.match(body, { statusCode, type, localizedKey })
}

test('an integrator with the document alone', { timeout: 110_000 }, async (t) => {
  const { url, key, page } = await startService(t)
  await opensDemo(t, page)
  const receiver = await openReceiver(t)
  const ask = createClient(url, key)
  const account = await ask('GET', '/v1/accounts/current')
  const accountId = account.body['id'] as string
  const at = `/v1/accounts/${accountId}`
  const [worker] = (await ask('GET', `${at}/workers`)).body as unknown as Fields[]
  const workerId = worker?.['id'] as string
  const place = { t, ask, at, url, key, receiver, accountId, workerId }

  await t.test('account and workers', (t) => readsResources({ ...place, t: t as Test }, account, worker ?? {}))
  await t.test('subscriptions', (t) => managesSubscriptions({ ...place, t: t as Test }))
  await t.test('the refusals of a phone call, in their order', (t) => isRefused({ ...place, t: t as Test }))
  await t.test('phone calls, now and later', (t) => placesPhoneCalls({ ...place, t: t as Test }))
  await t.test('a web call with its tools, transcript and recording', (t) => makesWebCall({ ...place, t: t as Test }))
  await t.test('a web call nobody joined', (t) => cancelsWebCall({ ...place, t: t as Test }))
})

type Place = {
  readonly t: Test
  readonly ask: Ask
  readonly at: string
  readonly url: string
  readonly key: string
  readonly receiver: Receiver
  readonly accountId: string
  readonly workerId: string
}

async function readsResources({ t, ask, at, url, workerId }: Place, account: Answer, worker: Fields): Promise<void> {
  t.equal(account.status, 200)
  t.equal(account.headers.get('content-type'), 'application/json')
  complies(t, 'the account', account.body, shapes.account)
  complies(t, 'the worker', worker, shapes.worker)
  t.same((await ask('GET', `${at}/workers/${workerId}`)).body, worker)
  const config = await ask('GET', `${at}/workers/${workerId}/config`)
  complies(t, 'the configuration', config.body, shapes.config)
  const scripts = await ask('GET', `${at}/workers/${workerId}/documents/outbound-call-scripts`)
  for (const script of scripts.body as unknown as Fields[])
    complies(t, 'the script', script, { id: 'string', fileName: 'string' })

  for (const wrong of ['', 'vk_wrong'])
    refused(t, await createClient(url, wrong)('GET', '/v1/accounts/current'), 401, 'UNAUTHORIZED')
  const stranger = '01980a5e-9b02-7c3f-8a21-3c4d5e6f7081'
  const { requestId: _, ...unknownAccount } = (await ask('GET', `/v1/accounts/${stranger}/workers`)).body
  const { requestId: __, ...unknownWorker } = (await ask('GET', `${at}/workers/${stranger}`)).body
  t.same(unknownAccount, unknownWorker, "another account's things read as things that are not")
  t.match(unknownWorker, { statusCode: 404, type: 'NOT_FOUND' })
}

async function managesSubscriptions({ t, ask, at, receiver, workerId }: Place): Promise<void> {
  const path = `${at}/webhook-subscriptions`
  const hook = receiver.url('/managed')
  const wide = await ask('POST', path, { eventType: 'call.ended', url: hook })
  t.equal(wide.status, 200)
  complies(t, 'the subscription', wide.body, shapes.subscription)
  t.match(wide.body, {
    workerId: null,
    deliveryMode: 'async',
    enabled: true,
    required: false,
    signingSecret: /^whsec_/,
  })
  const scoped = await ask('POST', path, { eventType: 'call.worker_request', url: hook, workerId, timeoutMs: 10_000 })
  t.match(scoped.body, { workerId, deliveryMode: 'sync', timeoutMs: 10_000 })
  const list = async (query: string) => (await ask('GET', `${path}${query}`)).body as unknown as Fields[]
  t.equal((await list('')).length, 2)
  t.same(
    (await list(`?workerId=${workerId}`)).map(({ id }) => id),
    [scoped.body['id']],
    'account-wide ones are left out',
  )
  t.same(
    new Set((await list('')).map(({ signingSecret }) => signingSecret)),
    new Set([null]),
    'the secret is shown once',
  )

  for (const wrong of [
    { eventType: 'call.ended', url: hook, required: true },
    { eventType: 'call.ended', url: hook, timeoutMs: 10_001 },
    { eventType: 'call.begun', url: hook },
    { eventType: 'call.ended' },
    { eventType: 'call.ended', url: hook, headers: { 'X-Service-Event': 'mine' } },
  ])
    refused(t, await ask('POST', path, wrong), 400, 'VALIDATION_FAILED')

  const one = `${path}/${String(wide.body['id'])}`
  refused(t, await ask('PATCH', one, { required: true }), 400, 'VALIDATION_FAILED')
  const secret = 'a secret of the integrator'
  const patched = await ask('PATCH', one, { signingSecret: secret, headers: { 'X-Tenant': 'acme' } })
  complies(t, 'the patched subscription', patched.body, shapes.subscription)
  t.match(patched.body, { signingSecret: null, headers: { 'X-Tenant': 'acme' }, url: hook })
  t.same((await ask('GET', one)).body, patched.body)
  t.same((await ask('POST', `${one}/test`)).body, { delivered: true, statusCode: 200 })
  const tested = await receiver.next(({ type }) => type === 'call.ended')
  compliesWithEvent(t, tested, secret, wide.body['accountId'])
  t.match(tested.headers, { 'x-tenant': 'acme', 'x-service-delivery': 'async' })

  receiver.answer('/managed', 500, { reason: 'the CRM is away' })
  const failed = (await ask('POST', `${path}/${String(scoped.body['id'])}/test`)).body
  t.match(
    failed,
    { delivered: false, statusCode: 500, error: /the CRM is away/ },
    'the answer of a sync one is in the error',
  )
  for (const { body } of [wide, scoped]) {
    const gone = await ask('DELETE', `${path}/${String(body['id'])}`)
    t.same([gone.status, gone.body], [204, {}])
  }
  refused(t, await ask('GET', one), 404, 'NOT_FOUND')
  t.same(await list(''), [])
}

/** A worker of its own goes through every refusal, one cure after the other; what comes later is wrong from the beginning. */
async function isRefused({ t, ask, at }: Place): Promise<void> {
  const config = { llmProvider: 'voice_provider_a' }
  const worker = await ask('POST', `${at}/workers`, { name: 'Refused', language: 'en', config })
  complies(t, 'the new worker', worker.body, shapes.worker)
  const workerId = worker.body['id'] as string
  const call = (): Promise<Answer> => ask('POST', `${at}/phone-calls`, { workerId, phoneNumber: '+4930123456' })

  // The one that the demo begins with.
  const seeded = (await ask('GET', `${at}/trunks`)).body as unknown as Fields[]
  for (const { id } of seeded) t.equal((await ask('DELETE', `${at}/trunks/${String(id)}`)).status, 204)
  refused(t, await call(), 400, 'TELEPHONY_INTEGRATION_NOT_SETUP')
  const gateways = [{ host: '127.0.0.1', port: 5999 }]
  const trunk = await ask('POST', `${at}/trunks`, { name: 'Refused', direction: 'inbound', gateways })
  t.equal(trunk.status, 200)
  refused(t, await call(), 400, 'TELEPHONY_INTEGRATION_NOT_ADDED_TO_WORKER')
  const trunkPath = `${at}/trunks/${String(trunk.body['id'])}`
  await ask('PATCH', trunkPath, { workerIds: [workerId] })
  refused(t, await call(), 400, 'TELEPHONY_TRANSPORT_NOT_SUPPORTED')
  await ask('PATCH', trunkPath, { direction: 'both' })
  refused(t, await call(), 400, 'CALL_SCRIPT_NOT_CONFIGURED')
  const tagKeys = ['outbound_call_script']
  await ask('POST', `${at}/documents`, {
    title: 'Script',
    fileName: 'mine.txt',
    text: 'agent: Hello.',
    tagKeys,
    workerIds: [workerId],
  })
  const unknownScript = { workerId, callScriptFileNames: ['mine.txt', 'other.txt'] }
  const named = await ask('POST', `${at}/phone-calls`, unknownScript)
  refused(t, named, 400, 'VALIDATION_FAILED')
  t.match(named.body, { issues: [{ path: 'callScriptFileNames.1', message: /other\.txt/ }] })
  refused(t, await call(), 400, 'TELEPHONY_SERVICE_PROVIDER_UNAVAILABLE')
  await ask('PATCH', `${at}/workers/${workerId}`, { isActive: false })
  refused(t, await call(), 400, 'WORKER_INACTIVE')
  t.equal((await ask('DELETE', trunkPath)).status, 204)
}

async function subscribe({ ask, at, receiver }: Place, body: Fields, where: string) {
  const { body: created } = await ask('POST', `${at}/webhook-subscriptions`, { ...body, url: receiver.url(where) })
  return { secret: created['signingSecret'] as string, path: `${at}/webhook-subscriptions/${String(created['id'])}` }
}

const ended = (callId: unknown) => (event: Event) => event.type === 'call.ended' && event.data['callId'] === callId
const statusesOf = (events: readonly Event[]) =>
  events.filter(({ type }) => type === 'call.status_update').map(({ data }) => data['status'])

async function placesPhoneCalls(place: Place): Promise<void> {
  const { t, ask, at, receiver, workerId, accountId } = place
  const calls = `${at}/phone-calls`
  await ask('PATCH', `${at}/workers/${workerId}`, { outboundPhoneNumber: '+4930999999' })
  // Nobody listens there, and TCP says so at once.
  const gateways = [{ host: '127.0.0.1', port: 5999, transport: 'tcp' }]
  await ask('POST', `${at}/trunks`, { name: 'Mine', direction: 'both', gateways, workerIds: [workerId] })
  const person = await ask('POST', `${at}/persons`, {
    type: 'customer',
    firstName: 'Ada',
    lastName: 'Lovelace',
    phoneNumber: '+4930123456',
    language: 'en-GB',
  })
  t.equal(person.status, 200)
  const { secret, path } = await subscribe(place, { eventType: '*' }, '/calls')
  receiver.answer('/calls', 200, { metadata: { crm: 7 } })

  const customer = { type: 'customer', firstName: 'Ada', externalId: 'crm-7' }
  const request = { workerId, phoneNumber: '+4930123456', customer, context: 'A call back.' }
  const once = { 'Idempotency-Key': 'order-17' }
  const created = await ask('POST', calls, request, once)
  t.equal(created.status, 200)
  complies(t, 'the call', created.body, shapes.call)
  t.match(created.body, { status: 'queued', direction: 'outbound', postProcessingStatus: 'none', customer })
  t.same((await ask('POST', calls, request, once)).body, created.body, 'the same key is the same call')
  refused(t, await ask('POST', calls, { ...request, context: 'Other.' }, once), 409, 'IDEMPOTENCY_KEY_REUSED')

  const callId = created.body['id']
  const over = await receiver.next(ended(callId))
  const events = receiver.of(callId, '/calls')
  for (const event of events) compliesWithEvent(t, event, secret, accountId)
  for (const { headers } of events)
    t.equal(headers['x-request-id'], created.headers.get('x-request-id'), 'its own id, where the client gave none')
  t.same(events.at(-1), over, 'call.ended is the last')
  t.equal(events.filter(({ type }) => type === 'call.ended').length, 1)
  const asked = events.filter(({ type }) => type === 'call.worker_request')
  t.equal(asked.length, 1)
  t.match(asked[0]?.headers, { 'x-service-delivery': 'sync' })
  t.match(asked[0]?.data, { direction: 'outbound', transport: 'sip_trunk' })
  t.match(asked[0]?.data['customer'], { number: '+4930123456', personId: person.body['id'] })
  t.notOk('metadata' in (asked[0]?.data ?? {}), 'nobody has given metadata yet')
  t.match(over.data, {
    status: 'failed',
    failedReason: 'sip_call_failed',
    direction: 'outbound',
    metadata: { crm: 7 },
  })
  t.match(over.data, { fromNumber: '+4930999999', toNumber: '+4930123456', recordingAvailable: false })
  t.notOk('transcript' in over.data || 'nextAction' in over.data, 'a call that never connected has neither')
  t.same([statusesOf(events).at(0), statusesOf(events).at(-1)], ['queued', 'failed'])
  const read = await ask('GET', `${calls}/${String(callId)}`)
  complies(t, 'the ended call', read.body, shapes.call)
  t.match(read.body, { status: 'completed', outcome: 'failed', failedReason: 'sip_call_failed' })
  t.same((await ask('GET', `${calls}/${String(callId)}/transcript`)).body, [])
  refused(t, await ask('GET', `${calls}/${String(callId)}/audio/url`), 404, 'NOT_FOUND')

  await schedulesAndCancels(place, secret)
  await knowsWhomItCalls(place)
  await ask('DELETE', path)
  await abortsWhenRequired(place)
}

async function schedulesAndCancels(place: Place, secret: string): Promise<void> {
  const { t, ask, at, receiver, workerId, accountId } = place
  const calls = `${at}/phone-calls`
  const soon = new Date(Date.now() + 3000).toISOString()
  const scheduled = await ask('POST', calls, { workerId, phoneNumber: '+4930123457', scheduledAt: soon })
  t.match(scheduled.body, { status: 'scheduled', scheduledAt: soon })
  const late = new Date(Date.now() + 3_600_000).toISOString()
  const canceled = await ask('POST', calls, { workerId, phoneNumber: '+4930123458', scheduledAt: late })
  const canceledPath = `${calls}/${String(canceled.body['id'])}`
  const gone = await ask('POST', `${canceledPath}/cancel`)
  complies(t, 'the canceled call', gone.body, shapes.call)
  t.match(gone.body, { status: 'completed', outcome: 'canceled', failedReason: 'cancelled_by_account_admin' })
  refused(t, await ask('POST', `${canceledPath}/cancel`), 409, 'CONFLICT')
  refused(t, await ask('POST', `${canceledPath}/hangup`), 409, 'CONFLICT')

  const over = await receiver.next(ended(scheduled.body['id']))
  const events = receiver.of(scheduled.body['id'], '/calls')
  for (const event of events) compliesWithEvent(t, event, secret, accountId)
  t.same(statusesOf(events).slice(0, 2), ['scheduled', 'queued'])
  t.equal(over.data['scheduledAt'], soon)
  const asked = events.find(({ type }) => type === 'call.worker_request')
  t.ok(String(asked?.headers['x-service-timestamp']) >= soon, 'the worker is asked for when the call runs')

  const numberless = await ask('POST', calls, { workerId })
  t.match((await receiver.next(ended(numberless.body['id']))).data, {
    status: 'failed',
    failedReason: 'missing_phone_numbers',
  })
  t.notOk(
    receiver.of(canceled.body['id'], '/calls').some(({ type }) => type === 'call.ended'),
    'no end of a canceled call',
  )
  const first = await ask('GET', `${calls}?limit=2&direction=outbound`)
  const ids = (first.body['data'] as Fields[]).map(({ id }) => id)
  t.same(ids, [numberless.body['id'], canceled.body['id']], 'newest first')
  const cursor = encodeURIComponent(first.body['nextCursor'] as string)
  const rest = await ask('GET', `${calls}?limit=2&direction=outbound&cursor=${cursor}`)
  t.match(rest.body, { data: [{ id: scheduled.body['id'] }, {}], nextCursor: null })
}

async function knowsWhomItCalls({ t, ask, at, receiver, workerId }: Place): Promise<void> {
  const calls = `${at}/phone-calls`
  const stored = await ask('POST', calls, { workerId, phoneNumber: '+4930123456' })
  const known = { type: 'customer', firstName: 'Ada', lastName: 'Lovelace', language: 'en-GB' }
  t.match(stored.body['customer'], { ...known, id: String, accountId: String }, 'a stored person is the customer')
  const asked = await receiver.next(
    ({ type, data }) => type === 'call.worker_request' && data['callId'] === stored.body['id'],
  )
  t.match(asked.data['customer'], { name: 'Ada Lovelace', language: 'en-GB' })
  await receiver.next(ended(stored.body['id']))

  const customer = { type: 'lead', phoneNumber: 'extension 12, after nine' }
  const undialable = await ask('POST', calls, { workerId, customer })
  complies(t, 'the call', undialable.body, shapes.call)
  t.match(undialable.body['customer'], customer)
  t.match((await receiver.next(ended(undialable.body['id']))).data, {
    toNumber: null,
    failedReason: 'missing_phone_numbers',
  })
}

async function abortsWhenRequired(place: Place): Promise<void> {
  const { t, ask, at, receiver, workerId } = place
  const { path } = await subscribe(place, { eventType: '*', required: true, workerId }, '/required')
  receiver.answer('/required', 503, {})
  const { body } = await ask('POST', `${at}/phone-calls`, { workerId, phoneNumber: '+4930123456' })
  const reason = { status: 'failed', failedReason: 'worker_request_required_failed' }
  t.match((await receiver.next(ended(body['id']))).data, reason)
  t.equal((await ask('DELETE', path)).status, 204)
}

async function makesWebCall(place: Place): Promise<void> {
  const { t, ask, at, receiver, workerId, accountId } = place
  const { secret, path } = await subscribe(place, { eventType: '*' }, '/web')
  const signingSecret = 'the secret of the tool'
  const inputSchema = { type: 'object', properties: { day: { type: 'string' } }, required: ['day'] }
  const tool = { name: 'free_tables', description: 'Free tables of a day.', inputSchema, signingSecret }
  const tools = [{ ...tool, deliveryUrl: receiver.url('/tool') }]
  receiver.answer('/web', 200, { config: { recordingChannelMode: 'mixed' }, tools, metadata: { from: 'hook' } })
  receiver.answer('/tool', 200, { result: { tables: 3 } })

  const wish = {
    workerId,
    customer: { type: 'lead', firstName: 'Grace' },
    allowedOrigins: ['https://app.example.com'],
    metadata: { from: 'creation' },
  }
  const session = await ask('POST', `${at}/web-calls`, wish, { 'x-request-id': 'checkout-17' })
  t.equal(session.status, 200)
  complies(t, 'the session', session.body, shapes.session)
  const { callId, signalingUrl, token } = session.body as { callId: string; signalingUrl: string; token: string }
  t.match(signalingUrl, /^ws:\/\/127\.0\.0\.1:\d+\/v1\/signaling$/)
  const call = `${at}/phone-calls/${callId}`
  t.match((await ask('GET', call)).body, { id: callId, status: 'scheduled', customer: { firstName: 'Grace' } })

  const join = (origin: string) =>
    placeWebCall({ signalingUrl, token, origin, createCaller: () => createWeriftCaller(), onMessage: () => undefined })
  await t.rejects(join('https://evil.example.com'), /refused with 403/)
  const joined = await join('https://app.example.com')
  t.teardown(() => joined.hangUp())
  await t.rejects(join('https://app.example.com'), /refused with 401/, 'a token is good once')
  const ticker = createTicker({
    now: () => performance.now(),
    after: (ms, action) => {
      const pending = setTimeout(action, ms)
      return () => clearTimeout(pending)
    },
  })
  t.teardown(() => ticker.close())
  const audio = await joined.caller.connected
  const opus = createOpusLibrary()
  const voice = createSyntheticCaller({ caller: joined.caller, audio, opus, ticker, now: () => performance.now() })
  t.teardown(() => voice.close())
  await receiver.next(({ type, data }) => type === 'call.status_update' && data['status'] === 'in_progress')
  await receiver.next(({ type, data }) => type === 'call.transcript' && data['role'] === 'agent')
  t.match((await ask('GET', call)).body, { status: 'in_progress', postProcessingStatus: 'none' })

  await callsTools(place, callId, signingSecret)
  complies(t, 'the call that is hung up', (await ask('POST', `${call}/hangup`)).body, shapes.call)
  const over = await receiver.next(ended(callId))
  const events = receiver.of(callId, '/web')
  for (const event of events) compliesWithEvent(t, event, secret, accountId)
  for (const { headers, type } of [...events, ...receiver.of(callId, '/tool')])
    t.equal(headers['x-request-id'], 'checkout-17', `${type} is told by the request that asked for the call`)
  t.same(events.at(-1), over, 'call.ended is the last')
  t.same(statusesOf(events), ['scheduled', 'in_progress', 'completed'])
  t.match(events.find(({ type }) => type === 'call.worker_request')?.data, {
    direction: 'inbound',
    transport: 'webrtc',
    metadata: { from: 'creation' },
  })
  t.match(over.data, { status: 'completed', recordingAvailable: true, metadata: { from: 'hook' } })
  t.notOk('failedReason' in over.data)
  await readsFinishedCall(place, call, over)
  await ask('DELETE', path)
}

async function callsTools({ t, ask, at, receiver, workerId, accountId }: Place, callId: string, toolSecret: string) {
  const tools = `${at}/workers/${workerId}/mcp/tools`
  const listed = (await ask('GET', `${tools}?phoneCallId=${callId}`)).body['tools'] as Fields[]
  for (const tool of listed) {
    complies(t, 'the tool', tool, shapes.tool)
    t.match(tool['inputSchema'], { type: 'object', properties: Object, required: Array })
  }
  t.ok(listed.some(({ name, provider }) => name === 'free_tables' && provider === 'external'))
  const without = (await ask('GET', tools)).body['tools'] as Fields[]
  t.notOk(without.some(({ provider }) => provider === 'external'))

  const call = (body: Fields) => ask('POST', `${tools}/call`, body)
  const external = { toolName: 'free_tables', provider: 'external', phoneCallId: callId }
  const answer = await call({ ...external, arguments: { day: 'today' } })
  t.same(answer.body, { result: { status: 'success', data: { result: { tables: 3 } } } })
  const asked = await receiver.next((event) => event.path === '/tool')
  compliesWithEvent(t, asked, toolSecret, accountId)
  t.match(asked.headers, { 'x-service-delivery': 'sync' })
  t.match(asked.data, { callId, name: 'free_tables', arguments: { day: 'today' }, metadata: { from: 'hook' } })
  const copy = await receiver.next((event) => event.path === '/web' && event.type === 'call.tool_call')
  t.match(copy.headers, { 'x-service-delivery': 'async' })
  t.same(copy.data, asked.data)

  refused(t, await call({ ...external, arguments: {} }), 400, 'INVALID_TOOL')
  refused(t, await call({ ...external, toolName: 'nothing', arguments: {} }), 400, 'INVALID_TOOL')
  const found = await call({ toolName: 'search', provider: 'knowledge_base', arguments: { query: 'opening hours' } })
  t.match(found.body, { result: { status: 'success', data: Object } })
  const gated = await call({ toolName: 'get_caller', provider: 'person', arguments: {} })
  t.equal(gated.status, 200)
  t.match(gated.body, { result: { status: 'error', error: { code: 'CALLER_IDENTITY_REQUIRED', message: String } } })
}

async function readsFinishedCall({ t, ask }: Place, call: string, over: Event): Promise<void> {
  const finished = await ask('GET', call)
  complies(t, 'the finished call', finished.body, shapes.call)
  t.match(finished.body, { status: 'completed', outcome: 'completed', postProcessingStatus: 'completed' })
  t.notOk('fromNumber' in finished.body || 'toNumber' in finished.body, 'unset for web calls')
  t.equal(finished.body['duration'], over.data['duration'])
  const segments = (await ask('GET', `${call}/transcript`)).body as unknown as Fields[]
  t.ok(segments.length > 0)
  for (const segment of segments) {
    complies(t, 'the segment', segment, shapes.segment)
    t.match(segment, { timestamps: { from: /^\d\d:\d\d:\d\d$/, to: /^\d\d:\d\d:\d\d$/ }, speaker: /^(user|agent)$/ })
  }
  t.same(segments, over.data['transcript'])
  const audio = await ask('GET', `${call}/audio/url`)
  complies(t, 'the recording', audio.body, shapes.audio)
  const recording = await fetch(audio.body['url'] as string)
  t.same([recording.status, recording.headers.get('content-type')], [200, 'audio/wav'])
  t.match(parseWav(new Uint8Array(await recording.arrayBuffer())), { rateHz: 16000, channels: 1 }, 'as the hook wanted')
}

async function cancelsWebCall(place: Place): Promise<void> {
  const { t, ask, at, workerId } = place
  const { body } = await ask('POST', `${at}/web-calls`, { workerId })
  const call = `${at}/phone-calls/${String(body['callId'])}`
  refused(t, await ask('POST', `${call}/hangup`), 409, 'CONFLICT')
  t.match((await ask('POST', `${call}/cancel`)).body, { status: 'completed', outcome: 'canceled' })
  const socket = new WebSocket(`${String(body['signalingUrl'])}?token=${String(body['token'])}`)
  socket.on('error', () => undefined)
  const [, late] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
  socket.terminate()
  t.equal(late.statusCode, 401, 'its token is good no more')
  const client = await fetch(new URL('/parley-client.js', String(body['signalingUrl']).replace(/^ws/, 'http')))
  await client.arrayBuffer()
  t.match(client.headers.get('ratelimit'), /^"default";r=\d+;t=\d$/, 'what is charged to nobody tells it, too')
  t.match(client.headers.get('x-request-id'), /./)
  t.match(late.headers, { ratelimit: /^"default";r=\d+;t=\d$/, 'ratelimit-policy': /;w=60$/, 'x-request-id': /./ })
}
