/**
 * docs/contract/rest.md "Erasure of a person": after it a search of the whole database, every column of every table, finds nothing of the person; what
 * belongs to others stays as it was; and an erasure that was broken off is gone on with.
 */
import { createSecretKey, randomBytes } from 'node:crypto'
import { test, type Test } from 'tap'
import { createErasures } from '../../actors/privacy/erase-person.ts'
import { replay } from '../../actors/call/machine/replay.ts'
import { stateOf } from '../../actors/call/machine/step.ts'
import type { CallId, PersonId } from '../../model/ids.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import { findSnapshot, listCallEvents } from '../../store/call-steps.ts'
import { issueConfirmation } from '../../store/confirmations.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import { runCommand } from '../../tools/admin/run-command.ts'
import { inTime } from '../scenes/in-time.ts'
import { textsOfDatabase } from '../scenes/database-texts.ts'
import { insertPersonalCall, type Somebody } from '../scenes/personal-call.ts'
import { insertCall, insertTurns, newId, openSeededApi, start } from '../scenes/seeded-api.ts'

const who: Somebody = {
  firstName: 'Zdeňka',
  lastName: 'Šťastná-Quirke',
  phoneNumber: '+4930901820777',
  email: 'zd.quirke_7@mail-box.example',
  externalId: 'crm-88123',
}
/** What would be found of the person, whatever the spelling. */
const needles = ['zdeňka', 'Šťastná', 'Quirke', '30901820777', '901820', 'mail-box.example', 'crm-88123']
const namesOf = (whole: Awaited<ReturnType<typeof textsOfDatabase>>, more: readonly string[] = []): string[] => [
  ...new Set([...needles, ...more].flatMap((needle) => whole.naming(needle).map((place) => `${needle} in ${place}`))),
]

async function open(t: Test) {
  const api = await openSeededApi(t)
  const { ask, own, other } = api
  const of = (account: typeof own) => {
    const path = `/v1/accounts/${account.id}`
    const post = (target: string, json: unknown) => ask(`${path}/${target}`, { method: 'POST', json, key: account.key })
    return {
      path,
      post,
      addPerson: async (over: object = {}): Promise<PersonId> =>
        (await post('persons', { type: 'customer', ...who, linkedInUrl: 'https://in.example/zdq', ...over })).json.id,
      subscribe: async (): Promise<string> =>
        (await post('webhook-subscriptions', { eventType: '*', url: 'https://hooks.example' })).json.id,
      erase: (personId: string) => ask(`${path}/persons/${personId}/erase`, { method: 'POST', key: account.key }),
      get: (target: string) => ask(`${path}/${target}`, { key: account.key }),
    }
  }
  return { ...api, mine: of(own), theirs: of(other) }
}

test('after an erasure no column of any table names the person', async (t) => {
  const { sql, own, mine, recordings, ask } = await open(t)
  const personId = await mine.addPerson({ notes: 'Zdeňka calls often' })
  const scene = { sql, account: own, who, recordings, subscriptionId: await mine.subscribe() }
  const phone = { transport: 'sip_trunk', direction: 'inbound', fromNumber: who.phoneNumber, toNumber: '+4930111' }
  const calls = {
    linked: await insertPersonalCall(scene, { personId }),
    'of an old version': await insertPersonalCall(scene, { personId, isOld: true }),
    'known by the number that called': await insertPersonalCall(scene, { columns: phone, customer: null }),
    'known by the number that was called': await insertPersonalCall(scene, {
      columns: { ...phone, direction: 'outbound', fromNumber: '+4930111', toNumber: who.phoneNumber },
      customer: null,
    }),
    'known by its id elsewhere': await insertPersonalCall(scene, {
      customer: { type: 'lead', externalId: who.externalId },
    }),
    'known by its address in another case': await insertPersonalCall(scene, {
      customer: { type: 'lead', email: ' ZD.Quirke_7@mail-box.EXAMPLE' },
    }),
    'known by its number in national form': await insertPersonalCall(scene, {
      customer: { type: 'lead', phoneNumber: '030 901 820-777' },
    }),
  }
  const planned = { personId: null, calleeName: null, customer: null, context: null, scripts: [], instructions: null }
  const call = { workerId: own.worker.id, workerName: 'Reception', fromNumber: '+4930111', toNumber: who.phoneNumber }
  await issueConfirmation(sql, {
    holder: { accountId: own.id, userId: newId<'user'>(), clientId: 'client' },
    clientName: 'An application',
    kind: 'single',
    calls: [{ ...planned, ...call, scheduledAt: null, utcOffset: 'Z' }],
    summary: `Call ${who.firstName} ${who.lastName}`,
    newId,
    now: start,
  })
  const refusal = {
    accountId: own.id,
    direction: 'inbound',
    reason: 'busy',
    details: 'no place',
    firstAt: start,
    lastAt: start,
  }
  await sql`insert into call_refusals ${sql({ ...refusal, id: newId(), calling: who.phoneNumber })}`
  await sql`insert into call_refusals ${sql({ ...refusal, id: newId(), calling: '+4940555' })}`
  const workerIds = [own.worker.id]
  await mine.post('trunks', { name: 'Out', gateways: [{ host: '203.0.113.5' }], workerIds })
  await mine.post('documents', { title: 'S', text: 'say hi', workerIds, tagKeys: ['outbound_call_script'] })
  const scheduledAt = new Date(start + 3_600_000).toISOString()
  const request = {
    workerId: own.worker.id,
    phoneNumber: who.phoneNumber,
    customer: { type: 'lead', ...who },
    scheduledAt,
  }
  const headers = { 'idempotency-key': 'once' }
  const place = () => ask(`${mine.path}/phone-calls`, { method: 'POST', json: request, headers })
  const placed = (await place()).json.id as CallId
  const before = namesOf(await textsOfDatabase(sql), [personId])
  t.ok(before.length > 30, `${before.length} places`)

  const running = await mine.erase(personId)
  t.match(
    { status: running.status, ...running.json },
    { status: 409, type: 'CONFLICT', details: /a call that is not over/ },
  )
  t.same(namesOf(await textsOfDatabase(sql), [personId]), before, 'nothing was begun')
  t.equal((await ask(`${mine.path}/phone-calls/${placed}/cancel`, { method: 'POST' })).status, 200)

  const answer = await mine.erase(personId)
  t.equal(answer.status, 200, answer.text)
  t.match(answer.json, { status: 'completed', remaining: [] })
  t.match(answer.json.erased, { persons: 1, calls: 8, transcriptTurns: 21, recordings: 7, callRefusals: 1 })
  t.match(answer.json.erased, { idempotentAnswers: 1, mentions: 0 })
  t.ok(answer.json.erased.events > 80 && answer.json.erased.deliveries >= 21)
  t.same(namesOf(await textsOfDatabase(sql), [personId]), [])
  t.same((await mine.get(`persons/${personId}`)).status, 404)
  t.equal((await sql`select from call_refusals`).length, 1, 'the refusal of another number stays')

  for (const [what, callId] of Object.entries(calls)) {
    for (const form of ['wav', 'pcap'])
      t.equal(await recordings.read(`${own.id}/${callId}.${form}`), null, `the ${form} of the call ${what}`)
    const log = await listCallEvents(sql, callId)
    t.ok(log.length > 8)
    t.match(replay(log), { differences: [] }, `the log of the call ${what} replays`)
    t.ok(stateOf(await findSnapshot(sql, callId)).finished)
    const { status, json } = await mine.get(`phone-calls/${callId}`)
    t.match(
      { status, ...json },
      { id: callId, workerId: own.worker.id, startedAt: /2026/, nextAction: 'call_back' },
      what,
    )
    t.notOk('customer' in json || 'dimensions' in json || 'metadata' in json)
    t.same((await mine.get(`phone-calls/${callId}/transcript`)).json, [])
  }
  const again = await place()
  t.match(
    { ...again.json, status: again.status },
    { id: placed, status: 200 },
    'the same request places no second call',
  )
})

test('what waits to be delivered is delivered as an event of the contract, without the person', async (t) => {
  const { sql, own, mine } = await open(t)
  const personId = await mine.addPerson()
  const callId = await insertPersonalCall(
    { sql, account: own, who, subscriptionId: await mine.subscribe() },
    { personId },
  )
  t.equal((await mine.erase(personId)).status, 200)
  const rows = await sql<{ status: string; body: string }[]>`select status, body from deliveries order by seq`
  t.same(
    rows.map(({ status }) => status),
    ['delivered', 'delivered', 'pending'],
  )
  const [transcript, toolCall, ended] = rows.map(({ body }) => JSON.parse(body) as object)
  t.strictSame(transcript, {
    type: 'call.transcript',
    data: {
      callId,
      turnIndex: 0,
      role: 'user',
      text: '',
      isFinal: true,
      confidence: null,
      source: null,
      ts: '2026-01-01T12:00:00.000Z',
    },
  })
  t.match(toolCall, { type: 'call.tool_call', data: { callId, toolCallId: 'tool-1', name: 'crm', arguments: {} } })
  t.strictSame(ended, {
    type: 'call.ended',
    data: {
      callId,
      status: 'completed',
      accountId: own.id,
      workerId: own.worker.id,
      direction: 'inbound',
      duration: 12,
      startedAt: '2026-01-01T12:00:00.000Z',
      recordingAvailable: false,
      transcript: [],
      nextAction: { key: 'call_back', name: 'Call back', data: {} },
    },
  })
})

test('calls of others keep what they say, but for the name, the number and the addresses of the person', async (t) => {
  const { sql, own, mine } = await open(t)
  const personId = await mine.addPerson()
  const others = await mine.addPerson({
    firstName: 'Ada',
    lastName: 'Quirke',
    phoneNumber: '+4930111',
    email: null,
    externalId: 'crm-1',
    linkedInUrl: null,
  })
  const callId = await insertCall(sql, own.id, own.worker.id, {
    progress: 'completed',
    outcome: 'completed',
    finished: true,
    personId: others,
    fromNumber: who.phoneNumber,
    context: 'Quirke family',
  })
  const said = [
    'Please call Zdenka Stastna-Quirke instead.',
    'Call 030 / 90 18 20 777 or 0049 (0)30 901820777.',
    'It is zero three zero, nine oh one eight two oh double seven seven, thanks.',
    'Write to ZD.Quirke_7 at mail-box dot example.',
    'Order 4711 of Ada Quirke, for 17 people.',
  ]
  const turn = { role: 'user', from: 0, to: 9, confidence: null, source: null }
  await insertTurns(
    sql,
    own.id,
    callId,
    said.map((text) => ({ ...turn, text })),
  )
  const event = { type: 'noted', key: 'friend', value: `Zdeňka Šťastná-Quirke` }
  await sql`insert into call_events ${sql({ callId, accountId: own.id, epoch: 0, seq: 0, at: start, ignored: false, event: sql.json(event), effects: sql.json([]) })}`
  await mine.post('documents', {
    title: 'Contacts',
    text: `Ask ${who.firstName} ${who.lastName}.`,
    workerIds: [own.worker.id],
  })

  const { json } = await mine.erase(personId)
  t.match(json, { status: 'completed', remaining: [{ table: 'documents', rows: 1 }] })
  const turns = await sql<{ text: string }[]>`select text from transcript_turns order by turn_index`
  t.same(
    turns.map(({ text }) => text),
    [
      'Please call [erased] instead.',
      'Call [erased] or [erased].',
      'It is [erased], thanks.',
      'Write to [erased].',
      'Order 4711 of Ada Quirke, for 17 people.',
    ],
  )
  t.match(await sql`select event from call_events`, [{ event: { type: 'noted', key: 'friend', value: null } }])
  const [row] = await sql`select from_number, person_id, context from calls where id = ${callId}`
  t.same({ ...row }, { fromNumber: null, personId: others, context: 'Quirke family' })
  t.equal((await mine.get(`persons/${others}`)).status, 200)
  t.equal(json.erased.mentions, 6)
})

test('what two persons share stays with the other one', async (t) => {
  const { sql, own, mine } = await open(t)
  const personId = await mine.addPerson()
  const partner = await mine.addPerson({ firstName: 'Ada', email: null, externalId: 'crm-2' })
  const scene = { sql, account: own, who: { ...who, firstName: 'Ada', email: 'ada@home.example', externalId: 'crm-2' } }
  const [linked, byId] = [
    await insertPersonalCall(scene, { personId: partner, customer: null }),
    await insertPersonalCall(scene, { customer: { type: 'lead', externalId: 'crm-2', phoneNumber: who.phoneNumber } }),
  ]
  const before = await sql`select * from calls where id = any(${[linked, byId]}::text[]) order by id`
  t.match((await mine.erase(personId)).json, { status: 'completed', erased: { calls: 0 } })
  t.same(await sql`select * from calls where id = any(${[linked, byId]}::text[]) order by id`, before)
  t.match((await mine.get(`persons/${partner}`)).json, { phoneNumber: who.phoneNumber })
})

test('accounts never erase each other', async (t) => {
  const { sql, own, other, mine, theirs, recordings } = await open(t)
  const [personId, foreign] = [await mine.addPerson(), await theirs.addPerson()]
  const callId = await insertPersonalCall(
    { sql, account: other, who, recordings, subscriptionId: await theirs.subscribe() },
    { personId: foreign },
  )
  await insertPersonalCall({ sql, account: own, who }, { personId })
  const stored = async () =>
    Promise.all(
      ['persons', 'calls', 'call_events', 'transcript_turns', 'deliveries'].map(
        (table) => sql`select * from ${sql(table)} where account_id = ${other.id} order by 1, 2`,
      ),
    )
  const before = await stored()
  t.equal((await mine.erase(foreign)).status, 404)
  t.equal((await mine.erase(newId())).status, 404)
  t.equal((await mine.erase(personId)).status, 200)
  t.same(await stored(), before)
  t.ok(await recordings.read(`${other.id}/${callId}.wav`))
  t.match((await theirs.erase(foreign)).json, { status: 'completed', erased: { calls: 1 } })
  t.same(namesOf(await textsOfDatabase(sql)), [])
})

test('who is erased twice, or by two at once, is erased once, and both are told what was done', async (t) => {
  const { sql, own, mine } = await open(t)
  const personId = await mine.addPerson()
  await insertPersonalCall({ sql, account: own, who }, { personId })
  const [one, other] = await Promise.all([mine.erase(personId), mine.erase(personId)])
  const again = await mine.erase(personId)
  t.match(one.json, { status: 'completed', erased: { persons: 1, calls: 1 } })
  t.same([other.json, again.json], [one.json, one.json])
})

test('who sees the end of an erasure first keeps nobody else from being told of it', async (t) => {
  const { sql, own, mine, deps, recordings } = await open(t)
  const personId = await mine.addPerson()
  const [ending, arrived, written, told] = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
  let finds = 0
  /** The end is written when two wait for it, the second sees it there, and only then is its writer answered. */
  const ask = (...given: Parameters<typeof sql>) => {
    const text = String(given[0])
    const isFind = text.includes('from erasures where account_id') && text.includes('and id = ')
    if (isFind && ++finds === 2) return (arrived?.resolve(), written?.promise.then(() => sql(...given)))
    if (!text.includes('completed_at = ')) return sql(...given)
    ending?.resolve()
    return (async () => {
      await arrived?.promise
      await sql(...given)
      written?.resolve()
      await told?.promise
    })()
  }
  const box = createSecretBox(createSecretKey(randomBytes(32)))
  const erasures = createErasures({ ...deps, sql: Object.assign(ask, sql) as typeof sql, box, recordings })
  t.teardown(() => erasures.close())
  const first = erasures.erasePerson(own.id, personId)
  await ending?.promise
  t.match(await erasures.erasePerson(own.id, personId), { status: 'completed' })
  told?.resolve()
  t.match(await inTime('the end for the first', first), { status: 'completed' })
})

test('what is left of a person elsewhere is counted whole, however many rows there are and however large', async (t) => {
  const { sql, own, mine } = await open(t)
  const personId = await mine.addPerson()
  const name = `${who.firstName} ${who.lastName}`
  const count = 2_500
  await sql`
    insert into persons (id, account_id, type, first_name, last_name, notes, created_at, updated_at)
    select 'p' || n, ${own.id}, 'lead', 'Ada', 'L' || n, case when n % 2 = 0 then ${`A friend of ${name}`} end, now(), now()
    from generate_series(1, ${count}) n`
  const { json } = await mine.erase(personId)
  t.match(json, { status: 'completed', remaining: [{ table: 'persons', rows: count / 2 }] })
})

test('an erasure whose process dies half-way is gone on with by another', async (t) => {
  const { sql, own, mine, deps, hands, recordings } = await open(t)
  const personId = await mine.addPerson()
  for (let count = 0; count < 25; count += 1)
    await insertPersonalCall({ sql, account: own, who, recordings }, { personId })
  const box = createSecretBox(createSecretKey(randomBytes(32)))
  let removed = 0
  const dying: RecordingStore = {
    ...recordings,
    remove: (key) => ((removed += 1) === 12 ? new Promise(() => undefined) : recordings.remove(key)),
  }
  const first = createErasures({ ...deps, box, recordings: dying, patience: 5 })
  const half = first.erasePerson(own.id, personId)
  while (removed < 12) await new Promise(setImmediate)
  hands.turn(5)
  t.match(await half, { status: 'in_progress' })
  const [row] = await sql<{ left: number }[]>`select count(*)::int as left from calls where person_id = ${personId}`
  t.ok(row && row.left > 0 && row.left < 25, `${row?.left} calls are left`)

  const second = createErasures({ ...deps, box, recordings })
  t.teardown(() => second.close())
  second.start()
  await new Promise(setImmediate)
  hands.turn(60_000)
  t.match(await second.erasePerson(own.id, personId), {
    status: 'completed',
    erased: { persons: 1, calls: 25, recordings: 25 },
  })
  t.same(namesOf(await textsOfDatabase(sql), [personId]), [])
})

test('a call that began while its person was erased is erased when it is over', async (t) => {
  const { sql, own, mine, deps, hands, recordings } = await open(t)
  const personId = await mine.addPerson()
  await insertPersonalCall({ sql, account: own, who, recordings }, { personId })
  let late: CallId | null = null
  // Whoever begins it has read the person before.
  const calling = async (key: string) => {
    const removal = await recordings.remove(key)
    late ??= await insertPersonalCall({ sql, account: own, who }, { personId, columns: { finished: false } })
    return removal
  }
  const box = createSecretBox(createSecretKey(randomBytes(32)))
  const erasures = createErasures({ ...deps, box, recordings: { ...recordings, remove: calling } })
  t.teardown(() => erasures.close())
  t.match(await erasures.erasePerson(own.id, personId), { status: 'in_progress', erased: { persons: 1, calls: 1 } })
  t.ok(namesOf(await textsOfDatabase(sql)).length > 0)
  await sql`update calls set finished = true where id = ${late}`
  hands.turn(30_000)
  // Whoever looks first carries it out: these, or those of the API.
  let later = await Promise.race([
    erasures.erasePerson(own.id, personId),
    mine.erase(personId).then(({ json }) => json),
  ])
  while (later?.status !== 'completed') later = (await mine.erase(personId)).json
  t.match(later, { status: 'completed', erased: { calls: 2 } })
  t.same(namesOf(await textsOfDatabase(sql), [personId]), [])
})

test('the operator erases a person by one command, and is told what was done', async (t) => {
  const { sql, own, mine, recordings } = await open(t)
  const personId = await mine.addPerson()
  const callId = await insertPersonalCall({ sql, account: own, who, recordings }, { personId })
  const box = createSecretBox(createSecretKey(randomBytes(32)))
  const lines: string[] = []
  const print = (text: string): void => void lines.push(text)
  const admin = (...args: string[]) =>
    runCommand(args, { print, onDatabase: (use) => use({ sql, openBox: async () => box, recordings, print }) })
  t.equal(await admin('person', 'erase', own.id, newId()), 1)
  t.equal(lines.pop(), 'the account has no such person')
  t.equal(await admin('person', 'erase', own.id, personId), 0)
  t.match(JSON.parse(lines.pop() ?? ''), { status: 'completed', erased: { persons: 1, calls: 1, recordings: 1 } })
  t.equal(await recordings.read(`${own.id}/${callId}.wav`), null)
  t.equal(await admin('replay', callId), 0)
  t.match(lines.pop(), /identical/)
  t.same(namesOf(await textsOfDatabase(sql), [personId]), [])
})
