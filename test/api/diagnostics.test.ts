/** docs/contract/rest.md "Diagnostics": the course of a call, as REST and the operator's command tell it. */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test, type Test } from 'tap'
import { createReplayCheck } from '../../actors/call/check-replay.ts'
import type { CallSide } from '../../app/call-side.ts'
import type { Bus } from '../../model/bus.ts'
import { CallDiagnostics, diagnosticsLimit } from '../../model/call-diagnostics.ts'
import type { CallId } from '../../model/ids.ts'
import type { ReplayCheck } from '../../model/replay-check.ts'
import { writeLadders } from '../../store/call-messages.ts'
import { forgetTranscripts } from '../../store/retention.ts'
import { explanationOf, runCommand } from '../../tools/admin/run-command.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { createFolder } from '../scenes/folder.ts'
import { until } from '../scenes/in-time.ts'
import { insertCall, newId, openSeededApi, start } from '../scenes/seeded-api.ts'

type Api = Awaited<ReturnType<typeof openSeededApi>>

const read = async ({ ask, own }: Api, callId: string, query = '') => {
  const answer = await ask(`/v1/accounts/${own.id}/phone-calls/${callId}/diagnostics${query}`)
  return CallDiagnostics.parse(answer.json)
}

/** What `npm run admin -- call show` prints. */
async function show({ sql }: Api, args: readonly string[], what = 'show'): Promise<string[]> {
  const lines: string[] = []
  const print = (text: string): void => void lines.push(...text.split('\n'))
  const database = { sql, print, openBox: () => Promise.reject(new Error('no secret is needed')) }
  await runCommand(['call', what, ...args], { print, onDatabase: (use) => use(database) })
  return lines
}

const latency = { endOfTurn: 200, recognised: 320, decided: 500, firstAudio: 700, firstPacket: 720 }

test('a call is diagnosed while it runs and when it is over', async (t) => {
  const api = await openSeededApi(t)
  const { ask, own, other, deps, sql } = api
  const side = deps as unknown as { readonly bus: Bus } & Pick<CallSide, 'admission'>
  const created = await ask(`/v1/accounts/${own.id}/web-calls`, { method: 'POST', json: { workerId: own.worker.id } })
  const { callId, token } = created.json as { callId: CallId; token: string }
  const leg = createScriptedLeg(side.bus, callId)
  await side.admission.admit(token, null)
  leg.event({ type: 'connected', providerStatus: 'connected' })
  await until(() => leg.commands.some(({ type }) => type === 'start'))
  const running = await until(async () => {
    const found = await read(api, callId)
    return found.engines.length > 0 && found
  })
  t.match(running, { callId, ending: null, endedAt: null, quality: null })
  t.match(running.engines, [{ purpose: 'talk', to: null, ending: null }])
  t.match(running.hooks, [{ type: 'call.worker_request', name: null, verdict: 'answered', details: null }])
  t.same(
    running.steps.data.map(({ fact }) => fact).filter((fact) => fact === 'created' || fact === 'leg_connected'),
    ['created', 'leg_connected'],
  )
  t.ok(running.startedAt)

  t.equal(running.usage, null, 'nothing was counted yet')
  const asked = async () => (await ask(`/v1/accounts/${own.id}/phone-calls/${callId}`)).json as { usage?: object }
  t.notOk('usage' in (await asked()))
  const used = { type: 'used', model: 'talker-1', units: { audioIn: 400, textOut: 7 } } as const
  await until(() => api.engine.configs.length > 0)
  api.engine.emit(used)
  api.engine.emit({ type: 'user_text', text: 'Hello there.', isFinal: true, confidence: null, from: 0, to: 1500 })
  const said = await until(async () => (await read(api, callId)).usage)
  t.match(
    said,
    { speechInSeconds: 1.5, speechOutSeconds: 0, toolCalls: 0, carrierSeconds: null },
    'it is told with the turn',
  )
  t.same((await asked()).usage, said, 'the answer of the call has the same')
  api.engine.emit(used)
  await ask(`/v1/accounts/${own.id}/phone-calls/${callId}/hangup`, { method: 'POST' })
  const over = await until(async () => {
    const found = await read(api, callId)
    return found.steps.data.some(({ fact }) => fact === 'post_processed') && found
  })
  const counted = { engine: 'scripted', model: 'talker-1', price: null }
  t.same(over.usage?.engines, [
    { ...counted, unit: 'audioIn', amount: 800 },
    { ...counted, unit: 'textOut', amount: 14 },
  ])
  t.match(
    over.usage,
    { price: null, carrierPrice: null, currency: null, priceVersion: null },
    'nobody knows prices here',
  )
  t.same((await asked()).usage, over.usage)
  const listed = (await ask(`/v1/accounts/${own.id}/phone-calls`)).json as { data: object[] }
  t.notOk(listed.data.some((call) => 'usage' in call))
  const [row] = await sql<{ usage: unknown }[]>`select usage from calls where id = ${callId}`
  t.match(
    row?.usage,
    { speechInMs: 1500, engines: [{ units: { audioIn: 800 } }] },
    'kept with the call, apart from its log',
  )
  t.match(over.ending, /^The service ended the call: .*, after \d+ s\.$/)
  t.match(over.engines, [{ to: /Z$/, ending: 'hang_up_requested' }])
  t.same(
    over.tenures.slice(0, 2).map(({ epoch, takenOver }) => ({ epoch, takenOver })),
    [
      { epoch: 0, takenOver: false },
      { epoch: 1, takenOver: false },
    ],
    'its birth, and the actor that ran it',
  )

  const elsewhere = `/v1/accounts/${other.id}/phone-calls/${callId}/diagnostics`
  t.equal((await ask(elsewhere, { key: other.key })).status, 404, 'another account finds no such call')
  t.equal((await ask(`/v1/accounts/${own.id}/phone-calls/${newId()}/diagnostics`)).status, 404)
  const wrong = await ask(`/v1/accounts/${own.id}/phone-calls/${callId}/diagnostics?fromTurn=-1`)
  t.match(wrong, { status: 400, json: { issues: [{ path: 'fromTurn' }] } })
  t.same(JSON.parse((await show(api, [callId, '--json'])).join('\n')), await read(api, callId))
  const [log] = await sql<{ said: string }[]>`
    select string_agg(event::text, '') as said from call_events where call_id = ${callId}`
  t.ok(log?.said.includes('created'), 'it was read from a log that is there')
  await isReplayed(t, api, callId)
})

/** docs/contract/rest.md "Replay" */
async function isReplayed(t: Test, { ask, own, other, sql, deps }: Api, callId: CallId): Promise<void> {
  const address = `/v1/accounts/${own.id}/phone-calls/${callId}/replay`
  const [counted] = await sql<{ facts: number }[]>`
    select count(*)::integer as facts from call_events where call_id = ${callId}`
  const { json } = await ask(address)
  t.match(json, { verdict: 'same', facts: counted?.facts, different: 0, differences: [] })
  t.ok((json as ReplayCheck).effects > 0)
  t.equal((await ask(address, { key: other.key })).status, 404)
  t.match((await ask(address.replace(callId, own.callId))).json, { verdict: 'no_log', facts: 0 })

  const many = await Promise.all([ask(address), ask(address), ask(address)])
  t.same(
    many.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 200, 429],
    'two at a time',
  )
  t.equal((await ask(address)).status, 200, 'and then others')

  let now = 0
  const slow = createReplayCheck({ ...deps, clock: { ...deps.clock, now: () => (now += 3_000) } })
  t.match(await slow(own.id, callId), { verdict: 'unfinished', facts: 3 }, 'it ends in time')

  await sql`update call_events set effects = '[]' where call_id = ${callId} and seq = 0`
  t.match((await ask(address)).json, { verdict: 'different', different: 1, differences: [{ seq: 0, fact: 'created' }] })
  await sql`update call_events set event = '{"type":"leg_connected"}' where call_id = ${callId} and seq = 0`
  t.match((await ask(address)).json, { verdict: 'different', facts: 1, differences: [{ fact: 'leg_connected' }] })
}

test('a call of before any of it was kept has nothing to tell, and is no error', async (t) => {
  const api = await openSeededApi(t)
  const found = await read(api, api.own.callId)
  t.match(found, { ending: null, quality: null, engines: [], tenures: [], hooks: [] })
  for (const list of [found.turns, found.steps, found.deliveries]) t.same(list, { data: [], next: null })
  const lines = await show(api, [api.own.callId])
  t.match(lines.join('\n'), /It has not ended\.[^]*not told/)
  await t.rejects(show(api, [newId()]), /there is no call/)
  t.match(await show(api, ['nonsense']).catch(explanationOf), /must be an id/)
})

test('what is kept of a long call comes in parts, none of it twice and none left out', async (t) => {
  const api = await openSeededApi(t)
  const { sql, own } = api
  const callId = await insertCall(sql, own.id, own.worker.id, { startedAt: start })
  const turns = 2 * diagnosticsLimit + 3
  const told = JSON.stringify(latency)
  await sql`
    insert into transcript_turns (call_id, account_id, turn_index, role, text, from_ms, to_ms, source, latency)
    select ${callId}, ${own.id}, n, case when n % 2 = 0 then 'agent' else 'user' end, 'A secret of Ada.', n * 1000, n * 1000 + 900,
      'embedded', case when n % 2 = 0 then ${told}::text::jsonb end
    from generate_series(0, ${turns - 1}) n`
  await sql`
    insert into call_events (call_id, account_id, seq, epoch, at, event, effects, ignored)
    select ${callId}, ${own.id}, n, 1 + n / 400, ${start}::timestamptz + n * interval '1 second',
      case when n = 0 then '{"type": "created"}' when n % 400 = 0 then '{"type": "taken_over"}'
        when n % 2 = 0 then '{"type": "turn_committed", "turn": {"text": "A secret of Ada."}}'
        else '{"type": "tool_called", "id": "t", "name": "call/end", "arguments": {"why": "A secret of Ada."}}' end::jsonb,
      '[]', false
    from generate_series(0, ${turns - 1}) n`
  const subscriptionId = await createSubscription(api)
  await insertDelivery(api, { callId, subscriptionId })

  const seen: number[] = []
  for (let next: number | null = 0; next !== null;) {
    const part: CallDiagnostics = await read(api, callId, `?fromTurn=${next}`)
    seen.push(...part.turns.data.map(({ turnIndex }) => turnIndex))
    next = part.turns.next
  }
  t.same(
    seen,
    Array.from({ length: turns }, (_, turn) => turn),
  )
  const first = await read(api, callId)
  t.equal(first.turns.data.length, diagnosticsLimit)
  t.equal(first.hooks.length, diagnosticsLimit)
  const { hooks, nextHook } = await read(api, callId, `?fromHook=${first.nextHook}`)
  t.match(hooks, [{ type: 'tool', name: 'call/end', at: new Date(start + (turns - 2) * 1_000).toISOString() }])
  t.equal(nextHook, null)
  t.match(first.turns.data[2], { turnIndex: 2, speaker: 'agent', from: 2000, latency })
  t.match(first.turns.data[1], { speaker: 'user', latency: null })
  t.match(first.tenures.slice(0, 2), [
    { epoch: 1, takenOver: false, steps: 400 },
    { epoch: 2, takenOver: true },
  ])
  t.notMatch(JSON.stringify(first), 'Ada', 'no word that was said')
  t.match(first.deliveries.data, [
    {
      subscriptionId,
      eventType: 'call.status_update',
      status: 'delivered',
      attempts: [{ statusCode: 500, error: 'answered with status 500' }, { statusCode: 204 }],
    },
  ])
  const entry = { at: start, direction: 'in', protocol: 'udp', local: '127.0.0.1:5060' } as const
  const text = 'INVITE sip:4711@127.0.0.1 SIP/2.0\r\nCall-ID: 1\r\n\r\n'
  const offer = '{"type":"offer","sdp":"v=0\\r\\nm=audio 9 RTP/SAVPF 111\\r\\n"}'
  const socket = {
    ...entry,
    protocol: 'ws',
    local: 'calls.example:443',
    remote: '[2001:db8::7]:0',
    text: offer,
  } as const
  const ladder = { entries: [{ ...entry, remote: '192.0.2.1:5060', text }], leftOut: 7 }
  const second = {
    entries: [socket, { ...socket, at: start - 5, text: '{"type":"bye","reason":"completed"}' }],
    leftOut: 1,
  }
  await writeLadders(sql, [
    [callId, ladder],
    [newId<'call'>(), ladder],
    [callId, second],
  ])
  const { messages } = await read(api, callId)
  t.match(messages, { data: [{ text: /bye/ }, { direction: 'in', text }, { protocol: 'ws', text: offer }], leftOut: 8 })
  const lines = await show(api, [callId])
  t.match(
    lines.join('\n'),
    /<─── udp 192\.0\.2\.1:5060 +INVITE sip:4711@127\.0\.0\.1\n.*<─── ws \[2001:db8::7\]:0 +offer \(audio 9\)\n  and 8 more/,
  )
  t.same(
    lines.filter((line) => line.length > 100),
    [],
    'a terminal of a hundred columns is enough',
  )
  t.equal(lines.filter((line) => line.includes('720 ms  embedded')).length, diagnosticsLimit + 2)
  t.match(lines.join('\n'), /epoch 3, 203 steps, took the call over[^]*attempt 1: 500 in 12 ms, answered with/)
  t.notMatch(lines.join('\n'), 'Ada')

  const file = path.join(await createFolder(t), 'call.pcap')
  const capture = (call: string) => show(api, [call, file], 'capture')
  await capture(callId)
  const pcap = await readFile(file)
  t.same([pcap.readUInt32LE(0), pcap.readUInt32LE(20)], [0xa1b2c3d4, 101])
  t.ok(pcap.toString('latin1').endsWith(offer))
  t.ok(pcap.includes(text))
  await t.rejects(capture(callId), /cannot be written/, 'nothing is written over')
  t.same(await takeCapture(t, api, callId), pcap, 'by REST it is the same file')
  await t.rejects(capture(own.callId), /Nothing of this call was captured/)

  await sql`update calls set finished = true, progress = 'completed', ended_at = ${start}, outcome = 'completed' where id = ${callId}`
  const forgetting = { accountId: own.id, before: start + 1_000, now: start + 2_000, limit: 10 }
  await forgetTranscripts(sql, forgetting, (snapshot) => snapshot)
  await writeLadders(sql, [[callId, ladder]])
  const left = await read(api, callId)
  for (const list of [left.turns, left.steps, left.deliveries, left.messages])
    t.same(list.data, [], 'it goes with the transcript')
})

/** By REST, and what the audit log says of it. */
async function takeCapture(t: Test, { ask, own, other }: Api, callId: CallId): Promise<Buffer> {
  const answer = await ask(`/v1/accounts/${own.id}/phone-calls/${callId}/capture`)
  const headers = ['content-type', 'content-disposition'].map((name) => answer.headers.get(name))
  const { bytes } = answer
  t.same(headers, ['application/vnd.tcpdump.pcap', `attachment; filename="${callId}.pcap"`])
  const nothing = await ask(`/v1/accounts/${own.id}/phone-calls/${own.callId}/capture`)
  t.match(nothing, { status: 404, text: /Nothing of this call was captured/ })
  t.equal((await ask(`/v1/accounts/${other.id}/phone-calls/${callId}/capture`, { key: other.key })).status, 404)
  const log = (await ask(`/v1/accounts/${own.id}/audit-log?action=getPhoneCallCapture`)).json as { data: unknown[] }
  t.match(log.data, [
    { actor: { kind: 'api_key' }, result: 'error', errorCode: 'NOT_FOUND' },
    { actor: { kind: 'api_key' }, result: 'success', callIds: [callId] },
  ])
  return bytes
}

async function createSubscription({ ask, own }: Api): Promise<string> {
  const json = { eventType: 'call.status_update', url: 'https://receiver.example/hook' }
  const { json: answer } = await ask(`/v1/accounts/${own.id}/webhook-subscriptions`, { method: 'POST', json })
  return (answer as { id: string }).id
}

async function insertDelivery({ sql, own }: Api, ids: { callId: CallId; subscriptionId: string }): Promise<void> {
  const deliveryId = newId()
  const row = { id: deliveryId, accountId: own.id, ...ids, eventType: 'call.status_update', status: 'delivered' }
  await sql`insert into deliveries ${sql({ ...row, body: '{}', eventAt: start, deliveredAt: start + 9 })}`
  const attempts = [
    { attempt: 1, at: start + 1, durationMs: 12, statusCode: 500, error: 'answered with status 500' },
    { attempt: 2, at: start + 5, durationMs: 4, statusCode: 204, error: null },
  ]
  for (const attempt of attempts) await sql`insert into delivery_attempts ${sql({ deliveryId, ...attempt })}`
}
