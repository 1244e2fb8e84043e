/** docs/contract/rest.md "Phone calls", "Workers" and "Lists": what each endpoint answers. */
import { test, type Test } from 'tap'
import { Problem } from '../../model/problem.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { createDocument } from '../../store/documents.ts'
import { createWorker } from '../../store/workers.ts'
import { createAsk, insertCall, insertTurns, newId, openSeededApi, start } from '../scenes/seeded-api.ts'

type Kind = 'string' | 'number' | 'boolean' | 'object' | 'array' | 'string or null' | 'number or null' | 'any'
/** As the tables of the contract; `!` marks what is always present. */
type Table = Record<string, Kind | `${Kind}!`>

const tables = {
  account: { id: 'string!', name: 'string', slug: 'string', createdAt: 'string', updatedAt: 'string' },
  worker: {
    id: 'string!',
    accountId: 'string!',
    name: 'string!',
    language: 'string!',
    type: 'object',
    inboundPhoneNumber: 'string',
    outboundPhoneNumber: 'string',
    // Additive.
    isActive: 'boolean!',
    maxConcurrentCalls: 'number',
  },
  config: {
    workerId: 'string!',
    accountId: 'string!',
    language: 'string!',
    voiceId: 'string',
    llmProvider: 'string',
    llmTemperature: 'number',
    ringTimeout: 'number',
    firstSpeechTimeout: 'number',
    inboundStaticMessageEnabled: 'boolean',
    inboundStaticMessageText: 'string',
    serviceDownRedirectEnabled: 'boolean',
    serviceDownRedirectNumber: 'string',
    emailEnabled: 'boolean',
    testModeEnabled: 'boolean',
    recordingChannelMode: 'string',
    recordingEnabled: 'boolean',
    disclosureText: 'any',
    dimensions: 'array',
    nextActions: 'array',
  },
  script: { id: 'string!', fileName: 'string!' },
  phoneCall: {
    id: 'string!',
    status: 'string!',
    direction: 'string!',
    postProcessingStatus: 'string!',
    fromNumber: 'string',
    toNumber: 'string',
    nextAction: 'any',
    dimensions: 'object',
    startedAt: 'string',
    endedAt: 'string',
    duration: 'number',
    customer: 'object',
    workerId: 'string',
    scheduledAt: 'string',
    // Additive: docs/contract/rest.md "Phone calls".
    progress: 'string',
    transport: 'string',
    metadata: 'object',
    outcome: 'string',
    failedReason: 'string',
    endedBy: 'string',
    endCause: 'string',
    providerStatus: 'string',
    evidence: 'object',
    nextActionData: 'object',
    summary: 'string',
    quality: 'object',
    recordingState: 'string',
    disclosure: 'object',
  },
  segment: {
    timestamps: 'object!',
    speaker: 'string!',
    text: 'string!',
    confidence: 'number or null',
    source: 'string or null',
  },
  audio: { id: 'string!', url: 'string!' },
  webCall: {
    callId: 'string!',
    sessionId: 'string!',
    signalingUrl: 'string!',
    token: 'string!',
    iceServers: 'array!',
    expiresAt: 'string!',
  },
  subscription: {
    id: 'string!',
    accountId: 'string!',
    workerId: 'string or null',
    eventType: 'string!',
    deliveryMode: 'string!',
    url: 'string!',
    signingSecret: 'string or null',
    headers: 'object',
    timeoutMs: 'number',
    enabled: 'boolean!',
    required: 'boolean!',
    createdAt: 'string!',
    updatedAt: 'string!',
  },
} as const satisfies Record<string, Table>

const kindOf = (value: unknown): string => {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

function hasFieldsOf(t: Test, table: Table, answer: Record<string, unknown>, name: string): void {
  const wrong = Object.entries(answer).filter(([field, value]) => {
    const kind = table[field]?.replace('!', '')
    return kind !== 'any' && !kind?.split(' or ').includes(kindOf(value))
  })
  const missing = Object.entries(table).filter(([field, kind]) => kind.endsWith('!') && !(field in answer))
  t.same({ wrong, missing }, { wrong: [], missing: [] }, `${name} has the fields of the contract`)
}

const everyConfig: WorkerConfig = {
  voiceId: 'slt',
  llmProvider: 'embedded',
  llmTemperature: 0.4,
  ringTimeout: 20,
  inboundStaticMessageEnabled: true,
  inboundStaticMessageText: 'Hello.',
  serviceDownRedirectEnabled: false,
  serviceDownRedirectNumber: '+15550100',
  emailEnabled: false,
  testModeEnabled: true,
  recordingChannelMode: 'split',
  recordingEnabled: true,
  disclosureText: { en: 'This call is recorded.' },
  dimensions: [{ key: 'drink', name: 'Drink', type: 'string' }],
  nextActions: [{ key: 'call_back', name: 'Call back' }],
}

test('the account, its workers and their scripts', async (t) => {
  const { ask, own, other, sql } = await openSeededApi(t)
  const workers = `/v1/accounts/${own.id}/workers`
  const numbered = await createWorker(sql, {
    accountId: own.id,
    name: 'Numbered',
    language: 'de-DE',
    inboundPhoneNumber: '+15550101',
    outboundPhoneNumber: '+15550102',
    config: everyConfig,
    newId,
    now: start + 1,
  })

  await t.test('GET /v1/accounts/current returns the account the key belongs to', async (t) => {
    const answer = await ask('/v1/accounts/current')
    t.equal(answer.status, 200)
    hasFieldsOf(t, tables.account, answer.json, 'account')
    const expected = { id: own.id, name: 'own account', slug: 'own', createdAt: '2026-01-01T12:00:00.000Z' }
    t.match(answer.json, expected)
    t.equal((await ask('/v1/accounts/current', { key: other.key })).json.id, other.id)
  })

  await t.test('GET workers returns a plain array of the own workers', async (t) => {
    const answer = await ask(workers)
    t.equal(answer.status, 200)
    t.same(
      answer.json.map((worker: { id: string }) => worker.id),
      [own.worker.id, numbered.id],
    )
    for (const worker of answer.json) hasFieldsOf(t, tables.worker, worker, 'worker')
  })

  await t.test('a worker has its numbers when it has some, and no such field when it has none', async (t) => {
    const answer = await ask(`${workers}/${numbered.id}`)
    t.same(answer.json, {
      id: numbered.id,
      accountId: own.id,
      name: 'Numbered',
      language: 'de-DE',
      isActive: true,
      inboundPhoneNumber: '+15550101',
      outboundPhoneNumber: '+15550102',
    })
    const plain = await ask(`${workers}/${own.worker.id}`)
    t.same(Object.keys(plain.json), ['id', 'accountId', 'name', 'language', 'isActive'])
  })

  await t.test('the configuration is the effective one: defaults behind what is stored', async (t) => {
    const stored = await ask(`${workers}/${numbered.id}/config`)
    hasFieldsOf(t, tables.config, stored.json, 'configuration')
    t.same(stored.json, {
      ...everyConfig,
      firstSpeechTimeout: 4,
      workerId: numbered.id,
      accountId: own.id,
      language: 'de-DE',
    })
    const plain = await ask(`${workers}/${own.worker.id}/config`)
    const defaults = { ringTimeout: 30, firstSpeechTimeout: 4, recordingChannelMode: 'mixed' }
    t.same(plain.json, { ...defaults, workerId: own.worker.id, accountId: own.id, language: 'en-US' })
  })

  await t.test('the scripts are the worker’s active and completed outbound ones, by file name', async (t) => {
    const shared = {
      accountId: own.id,
      title: 'Script',
      content: 'say hello',
      status: 'completed',
      newId,
      now: start,
    } as const
    const outbound = { ...shared, tagKeys: ['outbound_call_script'], workerIds: [own.worker.id] }
    const second = await createDocument(sql, { ...outbound, fileName: 'b.txt' })
    const first = await createDocument(sql, { ...outbound, fileName: 'a.txt' })
    await createDocument(sql, { ...outbound, fileName: 'inbound.txt', tagKeys: ['inbound_call_script'] })
    await createDocument(sql, { ...outbound, fileName: 'inactive.txt', isActive: false })
    await createDocument(sql, { ...outbound, fileName: 'queued.txt', status: 'queued' })
    await createDocument(sql, { ...outbound, fileName: 'unlinked.txt', workerIds: [] })
    const answer = await ask(`${workers}/${own.worker.id}/documents/outbound-call-scripts`)
    t.equal(answer.status, 200)
    t.same(answer.json, [
      { id: first, fileName: 'a.txt' },
      { id: second, fileName: 'b.txt' },
    ])
    for (const script of answer.json) hasFieldsOf(t, tables.script, script, 'script')
    t.same((await ask(`${workers}/${numbered.id}/documents/outbound-call-scripts`)).json, [])
  })
})

test('phone calls', async (t) => {
  const { ask, own, sql, recordings, hands } = await openSeededApi(t, { publicUrl: 'https://voice.example/' })
  const calls = `/v1/accounts/${own.id}/phone-calls`
  const personId = newId<'person'>()
  const finished = await insertCall(
    sql,
    own.id,
    own.worker.id,
    {
      direction: 'outbound',
      transport: 'sip_trunk',
      progress: 'completed',
      outcome: 'completed',
      postProcessingStatus: 'completed',
      providerStatus: '200 OK',
      fromNumber: '+15550102',
      toNumber: '+15550199',
      personId,
      scheduledAt: start - 60_000,
      startedAt: start,
      endedAt: start + 83_500,
    },
    {
      customer: { type: 'lead', firstName: 'Ada', externalId: 'crm-7' },
      nextAction: { key: 'call_back', name: 'Call back', data: { when: 'tomorrow' } },
      dimensions: { drink: 'tea', sugar: true, cups: 2 },
      metadata: { ticket: 7, deep: { list: [1, null] } },
    },
  )

  await t.test('a finished call has everything that is known of it', async (t) => {
    const answer = await ask(`${calls}/${finished}`)
    t.equal(answer.status, 200)
    hasFieldsOf(t, tables.phoneCall, answer.json, 'phone call')
    t.same(answer.json, {
      id: finished,
      status: 'completed',
      direction: 'outbound',
      postProcessingStatus: 'completed',
      fromNumber: '+15550102',
      toNumber: '+15550199',
      nextAction: 'call_back',
      nextActionData: { when: 'tomorrow' },
      dimensions: { drink: 'tea', sugar: true, cups: 2 },
      startedAt: '2026-01-01T12:00:00.000Z',
      endedAt: '2026-01-01T12:01:23.500Z',
      duration: 83.5,
      customer: { type: 'lead', firstName: 'Ada', externalId: 'crm-7', id: personId, accountId: own.id },
      workerId: own.worker.id,
      scheduledAt: '2026-01-01T11:59:00.000Z',
      progress: 'completed',
      transport: 'sip_trunk',
      metadata: { ticket: 7, deep: { list: [1, null] } },
      outcome: 'completed',
      providerStatus: '200 OK',
    })
  })

  await t.test(
    'a call whose media has ended tells how well sound got through, in the list too; parts not known are null',
    async (t) => {
      const told = {
        codec: 'pcmu',
        packetMs: 20,
        received: { packets: 3_000, lost: 30, jitterMs: 2.345 },
        sent: { packets: 3_000, lost: 0, jitterMs: 0.25 },
        roundTripMs: 40.04,
        concealedMs: 580.5,
        lateFrames: 2,
      } as const
      const silent = { ...told, codec: 'opus', received: null, sent: null, roundTripMs: null, concealedMs: 0 } as const
      const [known, unknown] = [
        await insertCall(sql, own.id, own.worker.id, {}, { quality: told }),
        await insertCall(sql, own.id, own.worker.id, {}, { quality: silent }),
      ]
      const answer = (await ask(`${calls}/${known}`)).json
      t.same(answer.quality, {
        mos: 4.3,
        codec: 'pcmu',
        received: { loss: 0.01, jitterMs: 2.3 },
        sent: { loss: 0, jitterMs: 0.3 },
        roundTripMs: 40,
        concealedMs: 581,
        lateFrames: 2,
      })
      const quality = { mos: null, codec: 'opus', received: null, sent: null, roundTripMs: null, concealedMs: 0 }
      t.same((await ask(`${calls}/${unknown}`)).json.quality, { ...quality, lateFrames: 2 })
      const page = (await ask(`${calls}?limit=100`)).json.data as { id: string; quality?: unknown }[]
      t.same(page.find(({ id }) => id === known)?.quality, answer.quality)
    },
  )

  await t.test('what is not known has no field: no nulls, no numbers of a web call', async (t) => {
    const id = await insertCall(sql, own.id, own.worker.id, { fromNumber: '+15550102', toNumber: '+15550199' })
    t.same((await ask(`${calls}/${id}`)).json, {
      id,
      status: 'scheduled',
      direction: 'inbound',
      postProcessingStatus: 'none',
      workerId: own.worker.id,
      progress: 'scheduled',
      transport: 'webrtc',
    })
  })

  await t.test('the status has four values, and outcome tells how a completed call ended', async (t) => {
    const expected = {
      scheduled: 'scheduled',
      queued: 'queued',
      ringing: 'in_progress',
      in_progress: 'in_progress',
      completed: 'completed',
      voicemail: 'completed',
      no_answer: 'completed',
      busy: 'completed',
      canceled: 'completed',
      failed: 'completed',
    }
    for (const [progress, status] of Object.entries(expected)) {
      const outcome = status === 'completed' ? progress : null
      const failedReason = progress === 'failed' ? 'webrtc_client_never_connected' : null
      const id = await insertCall(sql, own.id, own.worker.id, { progress, outcome, failedReason })
      const answer = (await ask(`${calls}/${id}`)).json
      const known = { status, ...(outcome && { outcome }), ...(failedReason && { failedReason }) }
      t.same({ ...answer, ...known }, answer, `${progress} reads ${status}`)
      t.equal('outcome' in answer, outcome !== null)
      t.equal('failedReason' in answer, failedReason !== null)
    }
  })

  await t.test(
    'a stored undetermined next action reads undetermined; a customer that is no person has the id null',
    async (t) => {
      const id = await insertCall(
        sql,
        own.id,
        own.worker.id,
        {},
        { nextAction: { key: 'undetermined', name: 'Undetermined' }, customer: { type: 'customer' } },
      )
      const { nextAction, customer } = (await ask(`${calls}/${id}`)).json
      t.same(
        { nextAction, customer },
        { nextAction: 'undetermined', customer: { id: null, type: 'customer', accountId: own.id } },
      )
    },
  )

  await t.test('the transcript is an array of segments with hh:mm:ss offsets', async (t) => {
    await insertTurns(sql, own.id, finished, [
      { role: 'agent', text: 'Hello.', from: 0, to: 1_900, confidence: null, source: 'embedded' },
      { role: 'user', text: 'Tea, please.', from: 3_723_400, to: 3_725_000, confidence: 0.5, source: null },
    ])
    const answer = await ask(`${calls}/${finished}/transcript`)
    t.equal(answer.status, 200)
    for (const segment of answer.json) hasFieldsOf(t, tables.segment, segment, 'segment')
    t.same(answer.json, [
      {
        timestamps: { from: '00:00:00', to: '00:00:01' },
        speaker: 'agent',
        text: 'Hello.',
        confidence: null,
        source: 'embedded',
      },
      {
        timestamps: { from: '01:02:03', to: '01:02:05' },
        speaker: 'user',
        text: 'Tea, please.',
        confidence: 0.5,
        source: null,
      },
    ])
    const later = await ask(`${calls}/${finished}/transcript?fromTurn=1`)
    t.same(later.json, answer.json.slice(1), 'or what was said from a turn on')
    t.match(await ask(`${calls}/${finished}/transcript?fromTurn=x`), { json: { issues: [{ path: 'fromTurn' }] } })
    t.same((await ask(`${calls}/${own.callId}/transcript`)).json, [], 'a call nobody spoke on has an empty one')
  })

  await t.test('audio/url is 404 while there is no recording, then a link to it under the public URL', async (t) => {
    t.equal((await ask(`${calls}/${finished}/audio/url`)).status, 404)
    const key = `${own.id}/${finished}.wav`
    await sql`update calls set recording_key = ${key} where id = ${finished}`
    t.equal((await ask(`${calls}/${finished}/audio/url`)).status, 404, 'a file that is gone is no recording')
    const writer = recordings.create(key)
    writer.append(new Uint8Array([1, 2, 3]))
    await writer.close()
    const answer = await ask(`${calls}/${finished}/audio/url`)
    t.equal(answer.status, 200)
    hasFieldsOf(t, tables.audio, answer.json, 'audio download')
    t.equal(answer.json.id, finished)
    const url = new URL(answer.json.url)
    t.equal(url.origin + url.pathname, `https://voice.example/v1/recordings/${own.id}/${finished}.wav`)
    t.equal(url.searchParams.get('expires'), String(hands.clock.now() + 15 * 60_000))
  })
})

test('web calls', async (t) => {
  let refusal: Problem | null = null
  const iceServers = [{ urls: ['turn:turn.example'], username: 'u', credential: 'c' }]
  const { ask, own, asked, deps } = await openSeededApi(t, { iceServers: () => iceServers })
  const webCalls = `/v1/accounts/${own.id}/web-calls`
  const full = {
    workerId: own.worker.id,
    instructions: 'Be brief.',
    customer: { type: 'lead', firstName: 'Ada' },
    context: '{"order": 7}',
    locale: 'en-GB',
    voiceId: 'slt',
    temperature: 0.2,
    llmProvider: 'voice_provider_a',
    externalTools: [
      {
        name: 'lookup',
        description: 'Looks it up.',
        inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
        deliveryUrl: 'https://tools.example/lookup',
        signingSecret: 'a secret of theirs',
      },
    ],
    allowedOrigins: ['https://app.example'],
    metadata: { ticket: 7, deep: { list: [1, null, 'x'] } },
  }

  await t.test('POST web-calls answers 200 with a session and hands over every field as it was sent', async (t) => {
    const answer = await ask(webCalls, { method: 'POST', json: full })
    t.equal(answer.status, 200)
    hasFieldsOf(t, tables.webCall, answer.json, 'web call session')
    t.same(answer.json.iceServers, iceServers)
    t.same(asked.at(-1), { accountId: own.id, request: full })
  })

  await t.test('workerId alone is enough', async (t) => {
    const { status } = await ask(webCalls, { method: 'POST', json: { workerId: own.worker.id } })
    t.equal(status, 200)
  })

  await t.test('the signaling URL is that of the request’s host, or of the configured public URL', async (t) => {
    const urlWith = async (publicUrl: string | null, target: string) => {
      const askThere = createAsk({ ...deps, publicUrl }, own.key)
      return (await askThere(target, { method: 'POST', json: { workerId: own.worker.id } })).json.signalingUrl
    }
    t.equal(await urlWith(null, webCalls), 'ws://calls.example:8080/v1/signaling')
    t.equal(await urlWith(null, `https://tls.example${webCalls}`), 'wss://tls.example/v1/signaling')
    t.equal(await urlWith('https://voice.example/parley/', webCalls), 'wss://voice.example/parley/v1/signaling')
    t.equal(await urlWith('http://voice.example', webCalls), 'ws://voice.example/v1/signaling')
  })

  await t.test('what the call side refuses is a 400 with its type', async (t) => {
    const refusing = createAsk({ ...deps, createWebCall: () => Promise.reject(refusal as Problem) }, own.key)
    for (const type of ['WEB_CALL_CAPACITY_EXCEEDED', 'WORKER_INACTIVE'] as const) {
      refusal = new Problem(type, 'No.')
      const answer = await refusing(webCalls, { method: 'POST', json: { workerId: own.worker.id } })
      t.match({ status: answer.status, ...answer.json }, { status: 400, statusCode: 400, type, details: 'No.' })
    }
  })
})

test('webhook subscriptions', async (t) => {
  const { ask, own, other, sql } = await openSeededApi(t)
  const path = `/v1/accounts/${own.id}/webhook-subscriptions`
  const second = await createWorker(sql, { accountId: own.id, name: 'Second', language: 'en-US', newId, now: start })

  await t.test('POST answers with the signing secret in plaintext, once', async (t) => {
    const json = {
      eventType: 'call.ended',
      url: 'https://hooks.example/ended',
      headers: { 'x-tenant': 'a' },
      timeoutMs: 900,
    }
    const created = await ask(path, { method: 'POST', json })
    t.equal(created.status, 200)
    hasFieldsOf(t, tables.subscription, created.json, 'created subscription')
    t.match(created.json, { ...json, workerId: null, deliveryMode: 'async', enabled: true, required: false })
    t.match(created.json.signingSecret, /^whsec_[\w-]{43}$/)
    const [listed, ...rest] = (await ask(path)).json
    t.same(rest, [])
    t.same(listed, { ...created.json, signingSecret: null })
  })

  await t.test('with workerId only those scoped to that worker are listed, otherwise all', async (t) => {
    for (const workerId of [own.worker.id, second.id]) {
      const json = { eventType: '*', url: 'https://hooks.example/all', workerId, required: true }
      t.match((await ask(path, { method: 'POST', json })).json, { deliveryMode: 'both', required: true, workerId })
    }
    const scopesOf = async (query: string) =>
      (await ask(`${path}${query}`)).json.map((found: { workerId: string | null }) => found.workerId)
    t.same(await scopesOf(''), [null, own.worker.id, second.id])
    t.same(await scopesOf(`?workerId=${second.id}`), [second.id])
    t.same(await scopesOf(`?workerId=${other.worker.id}`), [])
    t.same(await scopesOf('?workerId=none'), [])
  })

  await t.test('a worker of another account is refused like one that does not exist', async (t) => {
    const refusalOf = async (workerId: string) => {
      const json = { eventType: 'call.ended', url: 'https://hooks.example', workerId }
      const { status, json: body } = await ask(path, { method: 'POST', json })
      return { status, issues: body.issues.map((issue: { path: string }) => issue.path), details: body.details }
    }
    const refused = await refusalOf(other.worker.id)
    t.match(refused, { status: 400, issues: ['workerId'] })
    t.same(await refusalOf(newId()), refused)
    t.same(await refusalOf('none'), refused)
  })
})
