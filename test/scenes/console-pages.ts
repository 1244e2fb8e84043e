/** Owns an account with something on every page of the console, and what to wait for on each. */
import { insertTalk, type ConsoleScene } from './console.ts'
import type { CallId } from '../../model/ids.ts'
import { insertCall, insertTurns, newId } from './seeded-api.ts'

export type ShownPage = {
  readonly name: string
  readonly path: string
  readonly ready: string
  readonly isWhole?: boolean
}

export async function seedPages(scene: ConsoleScene): Promise<ShownPage[]> {
  const { sql, own, clock } = scene
  const now = clock.now()
  await sql`update accounts set name = 'Northwind Clinic' where id = ${own.id}`
  await sql`update workers set name = 'Ada, reception' where id = ${own.worker.id}`
  await sql`update calls set progress = 'completed', outcome = 'canceled', ended_at = ${now - 86_400_000} where account_id = ${own.id}`
  const callId = await insertTalk(scene, now - 420_000)
  for (const [minutes, outcome, number] of [
    [55, 'no_answer', '+442079460123'],
    [130, 'completed', '+4989123456'],
    [190, 'failed', '+12025550150'],
    [260, 'voicemail', '+33142685300'],
  ] as const)
    await insertCall(sql, own.id, own.worker.id, {
      direction: 'outbound',
      transport: 'sip_trunk',
      progress: outcome,
      outcome,
      toNumber: number,
      fromNumber: '+4930999000',
      createdAt: now - minutes * 60_000,
      endedAt: now - minutes * 60_000 + 40_000,
      ...(outcome === 'completed' && { startedAt: now - minutes * 60_000 + 9_000 }),
    })
  for (const [seconds, from, text] of [
    [95, '+4930555123', 'Yes, please, on Friday if that works for you.'],
    [31, '+442079460999', 'I lost my insurance card, what do I do now?'],
    [6, '+12025550177', ''],
  ] as const) {
    const running = await insertCall(sql, own.id, own.worker.id, {
      direction: 'inbound',
      transport: 'sip_trunk',
      progress: text === '' ? 'ringing' : 'in_progress',
      fromNumber: from,
      toNumber: '+4930999000',
      createdAt: now - seconds * 1_000,
      ...(text !== '' && { startedAt: now - seconds * 1_000 }),
    })
    if (text === '') continue
    await insertTurns(sql, own.id, running, [
      {
        role: 'agent',
        text: 'Good morning, this is Ada of Northwind Clinic.',
        from: 300,
        to: 3_000,
        confidence: null,
        source: null,
      },
      { role: 'user', text, from: 4_000, to: 7_500, confidence: 0.9, source: null },
    ])
    await sql`update transcript_turns set latency = ${sql.json({ endOfTurn: 400, recognised: 450, decided: 600, firstAudio: 780, firstPacket: 820 })} where call_id = ${running} and turn_index = 0`
  }
  const { scriptId, personId, subscriptionId, simulationId } = await seedConfiguration(scene, callId)
  const worker = `/console/workers/${own.worker.id}`
  return [
    { name: 'live', path: '/console', ready: 'I lost my insurance card' },
    { name: 'calls', path: '/console/calls', ready: 'Grace Hopper' },
    { name: 'call', path: `/console/calls/${callId}`, ready: 'Half past two is perfect.', isWhole: true },
    { name: 'workers', path: '/console/workers', ready: 'Ada, reception' },
    { name: 'worker', path: worker, ready: 'How it talks' },
    { name: 'script', path: `${worker}?part=scripts&script=${scriptId}`, ready: 'No errors' },
    { name: 'knowledge', path: `${worker}?part=knowledge`, ready: 'What would it find?' },
    { name: 'test-call', path: `${worker}?part=call`, ready: 'Call the agent' },
    { name: 'persons', path: '/console/persons', ready: 'Grace Hopper' },
    { name: 'person', path: `/console/persons/${personId}`, ready: 'Notes' },
    { name: 'documents', path: '/console/documents', ready: 'Opening hours' },
    { name: 'trunks', path: '/console/trunks', ready: 'nobody may call from there' },
    { name: 'webhooks', path: '/console/webhooks', ready: 'https://crm.example/calls' },
    { name: 'webhook', path: `/console/webhooks/${subscriptionId}`, ready: 'Send again' },
    { name: 'simulations', path: '/console/simulations', ready: 'of 3 failed' },
    { name: 'simulation', path: `/console/simulations/${simulationId}`, ready: 'Runs that failed' },
    { name: 'developers', path: '/console/developers', ready: 'Make a key' },
    { name: 'audit', path: '/console/audit', ready: 'user.sign_in' },
    { name: 'users', path: '/console/users', ready: 'Invite somebody' },
  ]
}

const script = 'Good morning, this is Ada of Northwind Clinic.\n\nPlease ask for the name and the day, and be kind.\n'

/** By the API, as a program of the account would. */
async function seedConfiguration({ ask, own, sql, clock }: ConsoleScene, callId: CallId) {
  const account = `/v1/accounts/${own.id}`
  const post = async (path: string, json: unknown) => {
    const answer = await ask(`${account}/${path}`, { method: 'POST', json })
    if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`)
    return answer.json as { id: string }
  }
  const workerIds = [own.worker.id]
  const { id: scriptId } = await post('documents', {
    title: 'Reception',
    text: script,
    tagKeys: ['inbound_call_script'],
    workerIds,
  })
  await ask(`${account}/documents/${scriptId}`, { method: 'PATCH', json: { text: `${script}Say good bye.\n` } })
  await post('documents', { title: 'Opening hours', text: 'We are open from eight to six on weekdays.', workerIds })
  const { id: personId } = await post('persons', {
    type: 'customer',
    firstName: 'Grace',
    lastName: 'Hopper',
    phoneNumber: '+4930123456',
    email: 'grace@example.com',
    tags: ['regular'],
  })
  await post('persons', { type: 'lead', firstName: 'Alan', lastName: 'Turing', phoneNumber: '+442079460123' })
  const { id: trunkId } = await post('trunks', {
    name: 'Carrier',
    direction: 'both',
    gateways: [{ host: 'sip.carrier.example' }],
    username: 'northwind',
  })
  const { id: subscriptionId } = await post('webhook-subscriptions', {
    url: 'https://crm.example/calls',
    eventType: 'call.ended',
  })
  const { id: simulationId } = await post('simulations', {
    ranAt: new Date(clock.now() - 600_000).toISOString(),
    target: 'https://calls.example',
    seeds: [1, 2, 3],
    scenarios: [{ name: 'Moves an appointment', runs: 3, passed: 2, passAll: [2 / 3, 1 / 3, 0] }],
    measures: [
      { name: 'responseLatency', value: 812, events: 14 },
      { name: 'yieldRate', events: 0, reason: 'the caller did not interrupt' },
    ],
    runs: [
      {
        scenario: 'Moves an appointment',
        seed: 3,
        passed: false,
        callId,
        faults: [{ field: 'expect.dimensions.day', wanted: '"Thursday"', got: 'nothing' }],
      },
    ],
  })
  const at = clock.now() - 300_000
  await sql`insert into call_refusals ${sql({ id: newId(), accountId: own.id, trunkId, direction: 'inbound', reason: 'unknown_source', details: 'Address 203.0.113.9: nobody may call from there. Add it to allowedAddresses of the trunk.', sipStatus: 403, address: '203.0.113.9:5060', calling: '+4930123456', called: '+4930999000', count: 3, firstAt: at, lastAt: at })}`
  const deliveryId = newId()
  await sql`insert into deliveries ${sql({ id: deliveryId, accountId: own.id, subscriptionId, callId, eventType: 'call.ended', body: '{}', status: 'exhausted', eventAt: at })}`
  await sql`insert into delivery_attempts ${sql({ deliveryId, attempt: 1, at, durationMs: 5000, statusCode: null, error: 'no answer within 5 s' })}`
  return { scriptId, personId, subscriptionId, simulationId }
}
