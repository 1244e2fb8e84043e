/** Owns a call that is over and tells of somebody in every place where a call can: its row, its log, turns, deliveries, recording and capture. The log is the machine’s. */
import { beginCall, step, stateOf } from '../../actors/call/machine/step.ts'
import type { CallBirth, CallFact } from '../../actors/call/call-event.ts'
import { captureKeyOf } from '../../model/call-capture.ts'
import type { AccountId, CallId, PersonId } from '../../model/ids.ts'
import type { Json } from '../../model/json.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import { renewCallWords } from '../../store/call-words.ts'
import type { Sql } from '../../store/sql.ts'
import { insertCall, newId, start } from './seeded-api.ts'

export type Somebody = {
  readonly firstName: string
  readonly lastName: string
  readonly phoneNumber: string
  readonly email: string
  readonly externalId: string
}

type Of = {
  readonly sql: Sql
  readonly account: { readonly id: AccountId; readonly worker: { readonly id: string } }
  readonly who: Somebody
  readonly recordings?: RecordingStore
  readonly subscriptionId?: string
}

type Over = {
  readonly personId?: PersonId | null
  readonly columns?: Record<string, string | number | boolean | null>
  /** Absent: `who` as a customer. Null: none. */
  readonly customer?: Json
  /** As the first versions wrote them: without rules, quality, or what came later. */
  readonly isOld?: boolean
}

/** What is said in it, and noted of it. */
function factsOf({ firstName, lastName, phoneNumber, email }: Somebody, isOld: boolean): CallFact[] {
  const name = `${firstName} ${lastName}`
  const turn = (role: 'user' | 'agent', text: string) => ({
    role,
    text,
    from: 0,
    to: 900,
    confidence: 0.5,
    source: 'embedded',
  })
  const told = { config: { inboundStaticMessageText: `Hello ${name}` }, instructions: `Call ${name}`, tools: null }
  const said: CallFact[] = [
    { type: 'turn_committed', turn: turn('agent', `Am I speaking to ${name}?`), memory: { asked: name } },
    { type: 'caller_heard', words: { turn: turn('user', `Yes, ${email}`), notes: [{ key: 'mail', value: email }] } },
    { type: 'turn_committed', turn: turn('user', `Yes, my number is ${phoneNumber}`), memory: { number: phoneNumber } },
    { type: 'noted', key: 'name', value: name },
    { type: 'tool_called', id: 'tool-1', name: 'crm', arguments: { [email]: name } },
    { type: 'tool_answered', id: 'tool-1', status: 'success', tookMs: 3 },
  ]
  return [
    { type: 'client_connected' },
    {
      type: 'worker_request_answered',
      ...told,
      metadata: { who: { mail: email } },
      ...(isOld ? {} : { locale: 'de' }),
    },
    { type: 'leg_connected', providerStatus: 'connected' },
    ...said,
    ...(isOld ? [] : ([{ type: 'warned', warning: { type: 'INSTRUCTIONS_NOT_FOLLOWED', message: name } }] as const)),
    { type: 'caller_heard', words: { turn: turn('user', `Bye from ${name}`), notes: [{ key: 'who', value: name }] } },
    { type: 'agent_finished', nextAction: 'call_back' },
    { type: 'leg_closed', recordedMs: 900 },
    {
      type: 'post_processed',
      recordedMs: 900,
      dimensions: { name },
      nextAction: { key: 'call_back', name: 'Call back', data: { number: phoneNumber } },
    },
  ]
}

export async function insertPersonalCall(of: Of, over: Over = {}): Promise<CallId> {
  const { sql, account, who, recordings, subscriptionId } = of
  const { personId = null, columns = {}, isOld = false } = over
  const name = `${who.firstName} ${who.lastName}`
  const customer = over.customer === undefined ? { type: 'customer', ...who, city: name } : over.customer
  const birth: CallBirth = {
    direction: 'inbound',
    transport: 'webrtc',
    scheduledAt: null,
    ...(isOld ? {} : { rules: 2 }),
  }
  let now = start
  let last = beginCall(birth, now)
  const log = [{ event: { type: 'created', ...birth } as Json, ...last, at: now }]
  for (const fact of factsOf(who, isOld)) {
    now += 100
    last = step(last.state.persisted, fact, now)
    log.push({ event: fact as Json, ...last, at: now })
  }
  if (!stateOf(last.state.persisted).finished) throw new Error('the call is not over')
  const row = {
    progress: 'completed',
    outcome: 'completed',
    finished: true,
    postProcessingStatus: 'completed',
    personId,
  }
  const texts = {
    context: `About ${name}`,
    providerStatus: `200 ${name}`,
    endCause: `SIP 486 ${name}`,
    arrivedFrom: '198.51.100.7',
  }
  const callId = await insertCall(
    sql,
    account.id,
    account.worker.id as never,
    { ...row, ...texts, startedAt: start, ...columns },
    {
      ...(customer !== null && { customer }),
      metadata: { [who.email]: name },
      dimensions: { name },
      nextAction: { key: 'call_back', name: 'Call back', data: { name } },
    },
  )
  const json = { from: `"${name}" <sip:${who.phoneNumber}@example.com>`, headers: { 'X-Who': name } }
  await sql`
    update calls set snapshot = ${sql.json(last.state.persisted as never)}, sip = ${sql.json(json)}, request = ${sql.json({ instructions: name })},
      hook_answer = ${sql.json({ instructions: name })}, warnings = ${sql.json([{ type: 'RECORDING_INCOMPLETE', message: name }])}
    where id = ${callId}`
  for (const [seq, { event, effects, ignored, at }] of log.entries())
    await sql`
      insert into call_events ${sql({ callId, accountId: account.id, epoch: 0, seq, at, ignored, event: sql.json(event as never), effects: sql.json(effects as never) })}`
  for (const [turnIndex, text] of [
    `I am ${name}`,
    `My number is ${who.phoneNumber}`,
    'three zero nine oh one',
  ].entries())
    await sql`
      insert into transcript_turns ${sql({ callId, accountId: account.id, turnIndex, role: 'user', text, fromMs: 0, toMs: 9 })}`
  await renewCallWords(sql, [callId])
  if (recordings) await record({ sql, recordings }, account.id, callId)
  if (subscriptionId !== undefined) await insertDeliveries(of, callId, subscriptionId)
  return callId
}

async function record(
  { sql, recordings }: { sql: Sql; recordings: RecordingStore },
  accountId: AccountId,
  callId: CallId,
) {
  const key = `${accountId}/${callId}.wav`
  for (const written of [key, captureKeyOf(accountId, callId)]) {
    const writer = recordings.create(written)
    writer.append(new Uint8Array([1, 2, 3]))
    await writer.close()
  }
  await sql`update calls set recording_key = ${key}, recorded_ms = 900 where id = ${callId}`
}

/** One that has arrived, one that has not, each with what its receiver answered. */
async function insertDeliveries({ sql, account, who }: Of, callId: CallId, subscriptionId: string): Promise<void> {
  const name = `${who.firstName} ${who.lastName}`
  const ended = {
    callId,
    status: 'completed',
    accountId: account.id,
    workerId: account.worker.id,
    direction: 'inbound',
    fromNumber: who.phoneNumber,
    duration: 12,
    startedAt: '2026-01-01T12:00:00.000Z',
    recordingAvailable: true,
    transcript: [{ speaker: 'user', text: name }],
    personId: who.externalId,
    metadata: { name },
    nextAction: { key: 'call_back', name: 'Call back', data: { name } },
  }
  const bodies = [
    {
      type: 'call.transcript',
      data: {
        callId,
        turnIndex: 0,
        role: 'user',
        text: name,
        isFinal: true,
        confidence: null,
        source: null,
        ts: '2026-01-01T12:00:00.000Z',
      },
    },
    {
      type: 'call.tool_call',
      data: {
        callId,
        accountId: account.id,
        workerId: account.worker.id,
        toolCallId: 'tool-1',
        name: 'crm',
        arguments: { name },
      },
    },
    { type: 'call.ended', data: ended },
  ]
  for (const body of bodies) {
    const id = newId<'delivery'>()
    const status = body.type === 'call.ended' ? 'pending' : 'delivered'
    const row = { id, callId, accountId: account.id, subscriptionId, eventType: body.type, status, eventAt: start }
    await sql`insert into deliveries ${sql({ ...row, body: JSON.stringify(body) })}`
    const attempt = {
      deliveryId: id,
      attempt: 1,
      at: start,
      durationMs: 1,
      responseExcerpt: `Thanks, ${name}`,
      error: name,
    }
    await sql`insert into delivery_attempts ${sql(attempt)}`
  }
}
