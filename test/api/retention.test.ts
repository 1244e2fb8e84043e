/** docs/contract/rest.md "Retention": what an account keeps for a limited time goes when it is over, no earlier, and no other. */
import { test, type Test } from 'tap'
import { createRetention, retentionEvery } from '../../actors/rounds/retention.ts'
import type { CallId } from '../../model/ids.ts'
import { explanationOf, runCommand } from '../../tools/admin/run-command.ts'
import { textsOfDatabase } from '../scenes/database-texts.ts'
import { insertPersonalCall, type Somebody } from '../scenes/personal-call.ts'
import { openSeededApi, start } from '../scenes/seeded-api.ts'

const day = 24 * 3_600_000
const who: Somebody = {
  firstName: 'Zdeňka',
  lastName: 'Quirke',
  phoneNumber: '+4930901820777',
  email: 'zd@mail-box.example',
  externalId: 'crm-88123',
}

async function open(t: Test) {
  const api = await openSeededApi(t)
  const { ask, own, sql, deps, recordings, hands } = api
  const { clock, log } = deps
  const path = `/v1/accounts/${own.id}`
  // Nothing else is old enough to go.
  const keep = { deliveries: 100 * 365 * day }
  const retention = createRetention({ sql, clock, log, recordings, keep })
  t.teardown(() => retention.close())
  return {
    ...api,
    path,
    retention,
    keepFor: (json: object) => ask(`${path}/retention`, { method: 'PATCH', json }),
    settings: async () => (await ask(`${path}/retention`)).json,
    get: (callId: CallId, part = '') => ask(`${path}/phone-calls/${callId}${part}`),
    call: (over: Parameters<typeof insertPersonalCall>[1] = {}) =>
      insertPersonalCall(
        { sql, account: own, who, recordings },
        { ...over, columns: { endedAt: start, ...over.columns } },
      ),
    /** Its sound or its packets are there. */
    async isRecorded(callId: CallId) {
      const files = await Promise.all(['wav', 'pcap'].map((form) => recordings.read(`${own.id}/${callId}.${form}`)))
      return files.some((file) => file !== null)
    },
    /** So many days after the end of the calls. */
    async afterDays(days: number) {
      hands.turn(start + days * day - clock.now())
      // The service has rounds of its own by the same hands: each passes over what the other is at.
      const waitForOthers = () => sql.begin((tx) => tx`lock table calls in exclusive mode`)
      await retention.idle()
      await waitForOthers()
      await retention.idle()
      await waitForOthers()
    },
    admin: async (...args: string[]) => {
      const lines: string[] = []
      const print = (text: string): void => void lines.push(text)
      const openBox = () => Promise.reject(new Error('no key is needed'))
      const onDatabase = (use: Parameters<Parameters<typeof runCommand>[1]['onDatabase']>[0]) =>
        use({ sql, openBox, print })
      const code = await runCommand(args, { print, onDatabase }).catch((error: unknown) => {
        print(explanationOf(error))
        return 1
      })
      return { code, out: lines.join('\n') }
    },
  }
}

test('days are set by a key of the account or by the operator, and what is not set is kept', async (t) => {
  const { keepFor, settings, admin, own, other, ask, call, afterDays, get, isRecorded } = await open(t)
  t.same(await settings(), { report: [] })
  t.same((await keepFor({ recordingDays: 30, callDays: 90 })).json, { recordingDays: 30, callDays: 90, report: [] })
  t.same((await keepFor({ transcriptDays: 60, callDays: null })).json, {
    recordingDays: 30,
    transcriptDays: 60,
    report: [],
  })
  for (const [field, value] of [
    ['recordingDays', 0],
    ['callDays', 1.5],
    ['transcriptDays', '7'],
    ['callDays', 40_000],
    ['days', 1],
  ] as const) {
    const refused = await keepFor({ [field]: value })
    t.equal(refused.status, 400, `${field} ${value}`)
    t.match(refused.json.issues[0].path, field === 'days' ? /^(days)?$/ : field)
  }
  t.equal((await ask(`/v1/accounts/${other.id}/retention`)).status, 404)
  t.match(await admin('account', 'retention', own.id, '--calls', '7', '--recordings', 'off'), {
    code: 0,
    out: /"callDays": 7/,
  })
  t.same(await settings(), { transcriptDays: 60, callDays: 7, report: [] })
  t.match(await admin('account', 'retention', own.id, '--calls', '0'), {
    code: 1,
    out: /--calls must be a whole number/,
  })
  t.match(await admin('account', 'retention', own.id, '--calls', 'off', '--transcripts', 'off'), { code: 0 })
  const callId = await call()
  await afterDays(36_500)
  t.equal((await get(callId)).status, 200)
  t.ok(await isRecorded(callId))
})

test('of what is more than a round removes, the rest goes without waiting for the next', async (t) => {
  const { own, sql, retention } = await open(t)
  const longAgo = new Date(start - 31 * day)
  await sql`
    insert into call_refusals (id, account_id, direction, reason, details, first_at, last_at)
    select 'old-' || n, ${own.id}, 'inbound', 'overloaded', 'no room', ${longAgo}, ${longAgo}
    from generate_series(1, 100001) n`
  await retention.idle()
  t.same(await sql`select count(*)::int from call_refusals`, [{ count: 0 }])
})

test('recordings go when their days are over, and the rest of the call stays', async (t) => {
  const { keepFor, settings, call, afterDays, get, isRecorded, sql, own } = await open(t)
  const callId = await call()
  const later = await call({ columns: { endedAt: start + day } })
  const unprocessed = await call()
  await sql`update calls set recording_key = null, post_processing_status = 'failed' where id = ${unprocessed}`
  await keepFor({ recordingDays: 30 })
  await afterDays(29.9)
  t.ok(await isRecorded(callId))
  t.equal((await get(callId, '/audio/url')).status, 200)
  await afterDays(30.1)
  t.notOk(await isRecorded(callId))
  t.notOk(await isRecorded(unprocessed), 'also one that its row does not tell of')
  t.ok(await isRecorded(later), 'counted from the end of the call')
  t.equal((await get(callId, '/audio/url')).status, 404)
  t.equal((await get(callId, '/transcript')).json.length, 3)
  t.match((await get(callId)).json, { customer: { firstName: 'Zdeňka' } })
  t.match(await settings(), { report: [{ day: '2026-01-31', recordings: 2, transcripts: 0, calls: 0 }] })
  await afterDays(31.2)
  t.notOk(await isRecorded(later))
  t.same((await settings()).report, [
    { day: '2026-02-01', recordings: 1, transcripts: 0, calls: 0 },
    { day: '2026-01-31', recordings: 2, transcripts: 0, calls: 0 },
  ])
  t.equal((await sql`select from calls where account_id = ${own.id}`).length, 4)
})

test('transcripts go with log, deliveries and what the machine remembers; results stay, and replay says why there is no log', async (t) => {
  const { keepFor, call, afterDays, get, isRecorded, sql, admin, ask, path } = await open(t)
  const subscription = await ask(`${path}/webhook-subscriptions`, {
    method: 'POST',
    json: { eventType: '*', url: 'https://hooks.example' },
  })
  const callId = await call()
  const delivery = {
    callId,
    subscriptionId: subscription.json.id,
    eventType: 'call.transcript',
    body: 'said',
    eventAt: start,
  }
  await sql`insert into deliveries ${sql({ ...delivery, id: 'd', accountId: path.split('/').at(-1)!, status: 'delivered' })}`
  t.match(await admin('replay', callId), { code: 0, out: /identical/ })
  await keepFor({ transcriptDays: 10 })
  await afterDays(10.1)
  for (const table of ['call_events', 'transcript_turns', 'deliveries'])
    t.same(await sql`select from ${sql(table)} where call_id = ${callId}`, [], table)
  const [row] = await sql`select snapshot::text as snapshot from calls where id = ${callId}`
  t.notMatch(row?.['snapshot'], /Zde|Quirke|9018/)
  t.same((await get(callId, '/transcript')).json, [])
  t.match((await get(callId)).json, { dimensions: { name: 'Zdeňka Quirke' }, nextAction: 'call_back' })
  t.ok(await isRecorded(callId))
  t.match(await admin('replay', callId), {
    code: 1,
    out: /keeps logs for a limited time: that of call .* was removed on 2026-01-11/,
  })
})

test('calls go with everything, and one that is not settled is kept until it is', async (t) => {
  const { keepFor, settings, call, afterDays, get, isRecorded, sql, other, ask, path, own } = await open(t)
  const callId = await call()
  const subscription = await ask(`${path}/webhook-subscriptions`, {
    method: 'POST',
    json: { eventType: '*', url: 'https://hooks.example' },
  })
  const unsettled = {
    'that runs': await call({ columns: { finished: false } }),
    'that is processed again': await call({ columns: { postProcessingStatus: 'in_progress' } }),
    'whose end is not delivered': await call(),
    'that was scheduled long ago': await call({ columns: { endedAt: start + 5 * day } }),
  }
  const delivery = {
    id: 'd',
    accountId: own.id,
    callId: unsettled['whose end is not delivered'],
    eventType: 'call.ended',
    body: '{}',
    eventAt: start,
  }
  await sql`insert into deliveries ${sql({ ...delivery, subscriptionId: subscription.json.id })}`
  await keepFor({ callDays: 3, recordingDays: 3, transcriptDays: 3 })
  await afterDays(3.1)
  t.equal((await get(callId)).status, 404)
  t.notOk(await isRecorded(callId))
  t.same((await textsOfDatabase(sql)).naming(callId), [])
  for (const [what, id] of Object.entries(unsettled)) {
    t.equal((await get(id)).status, 200, `a call ${what}`)
    t.ok(await isRecorded(id), what)
    t.equal((await get(id, '/transcript')).json.length, 3, what)
  }
  const ids = Object.values(unsettled)
  await sql`update calls set finished = true, post_processing_status = 'completed' where id = any(${ids}::text[])`
  await sql`update deliveries set status = 'exhausted'`
  await afterDays(8.1)
  t.same((await textsOfDatabase(sql)).naming('Quirke'), [])
  t.equal((await sql`select from calls where account_id = ${other.id}`).length, 1, 'another account keeps its own')
  t.match((await settings()).report, [
    { day: '2026-01-09', calls: 4 },
    { day: '2026-01-04', calls: 1 },
  ])
  t.ok(retentionEvery <= 600_000)
})
