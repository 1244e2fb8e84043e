/** Owns `npm run bench after processing`: how long post-processing of a talk of 30 minutes takes without a model, from its log to its results. */
import { createLog } from '../../app/log.ts'
import { createPostProcessing } from '../../actors/after-call/post-processing.ts'
import { beginCall, step } from '../../actors/call/machine/step.ts'
import type { CallFact } from '../../actors/call/call-event.ts'
import type { CallId } from '../../model/ids.ts'
import type { Json } from '../../model/json.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import type { Dimension, WorkerConfig } from '../../model/worker.ts'
import { findCallFacts } from '../../store/call-steps.ts'
import type { Sql } from '../../store/sql.ts'
import { createEmbeddedExtractor } from '../../voice/extraction/embedded-extractor.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'
import { printTable, quantile } from './table.ts'

const minutes = 30
/** A turn of either side every four seconds, and two looks at each of the caller's before it is over. */
const turnEvery = 4_000
const rounds = 20
const limit = 2_000

const dimensions = Array.from({ length: 30 }, (_, index): Dimension => {
  const type = (['boolean', 'number', 'enum', 'date', 'string'] as const)[index % 5]!
  return {
    key: `value_${index}`,
    name: `Matter ${index}`,
    type,
    ...(type === 'enum' && { options: ['inside', 'outside', 'at the bar'] }),
  }
})
const config: WorkerConfig = { dimensions, nextActions: [{ key: 'book', name: 'Book' }] }
const slots = {
  boolean: 'yes/no',
  number: 'number',
  enum: 'inside | outside | at the bar',
  date: 'date',
  string: 'free',
}
const script = [
  ...dimensions.map(({ key, name, type }) => `ask ${key} (${slots[type]}): What about the ${name.toLowerCase()}?`),
  'end (book): It is booked, and goodbye.',
].join('\n')
const answers = ['yes please', 'twenty three', 'outside I think', 'on the third of June', 'something with a view']

export async function benchProcessing(): Promise<void> {
  const closing: (() => Promise<void>)[] = []
  const { sql } = await openTestDatabase({ teardown: (close) => void closing.push(close) })
  try {
    const tenant = await createTenant(sql, { slug: 'bench', config, script })
    const times: number[] = []
    let values = 0
    for (let round = 0; round < rounds; round++) {
      const callId = await insertTalk(sql, tenant)
      const began = performance.now()
      await processCall(sql, tenant, callId)
      times.push(performance.now() - began)
      values = Object.keys((await findCallFacts(sql, callId))?.dimensions ?? {}).length
    }
    const [counted] = await sql<{ facts: number }[]>`select count(*)::int / ${rounds}::int as facts from call_events`
    printTable([
      {
        talk: `${minutes} min`,
        'facts in the log': String(counted?.facts),
        'dimensions found': `${values} of ${dimensions.length}`,
        p50: `${Math.round(quantile(times, 0.5))} ms`,
        p95: `${Math.round(quantile(times, 0.95))} ms`,
        limit: `${limit} ms`,
      },
    ])
  } finally {
    for (const close of closing) await close()
  }
}

const recordings: RecordingStore = {
  create: () => {
    throw new Error('nothing is recorded here')
  },
  read: () => Promise.resolve(null),
  remove: () => Promise.resolve('absent'),
}

/** As the scheduler has it done; the fact goes straight into the machine's step and the row. */
async function processCall(sql: Sql, { accountId }: Tenant, callId: CallId): Promise<void> {
  await sql`update calls set post_processing_status = 'in_progress' where id = ${callId}`
  const extractors = { embedded: createEmbeddedExtractor(), model: null }
  const router = { route: () => Promise.resolve(false) }
  const work = createPostProcessing({ sql, router, recordings, extractors, log: createLog('error') })
  await work({ id: newId(), accountId, callId, kind: 'post_process', attempts: 1, runAt: 0 })
}

/** A call that is over, with a log as a call of the embedded engine has it. */
async function insertTalk(sql: Sql, { accountId, workerId }: Tenant): Promise<CallId> {
  const callId = newId<'call'>()
  const startedAt = Date.now() - minutes * 60_000
  const facts = factsOf()
  const birth = { direction: 'inbound', transport: 'webrtc', scheduledAt: null, rules: 2 } as const
  let last = beginCall(birth, startedAt)
  const log = [{ event: { type: 'created', ...birth } as Json, effects: last.effects as Json, ignored: false }]
  const turns: object[] = []
  for (const { fact, at } of facts) {
    last = step(last.state.persisted, fact, startedAt + at)
    log.push({ event: fact as Json, effects: last.effects as Json, ignored: last.ignored })
    for (const effect of last.effects)
      if (effect.type === 'store_turn') {
        const { role, text, from, to } = effect.turn
        turns.push({ callId, accountId, turnIndex: effect.index, role, text, fromMs: from, toMs: to })
      }
  }
  await sql`
    insert into calls ${sql({
      id: callId,
      accountId,
      workerId,
      sessionId: newId(),
      direction: 'inbound',
      transport: 'webrtc',
      progress: 'completed',
      outcome: 'completed',
      startedAt,
      endedAt: Date.now(),
      finished: true,
      snapshot: sql.json(last.state.persisted as never),
    })}`
  const rows = log.map(({ event, effects, ignored }, seq) => ({
    callId,
    accountId,
    epoch: 1,
    seq,
    at: startedAt + seq,
    event: sql.json(event as never),
    effects: sql.json(effects as never),
    ignored,
  }))
  for (let at = 0; at < rows.length; at += 500) await sql`insert into call_events ${sql(rows.slice(at, at + 500))}`
  for (let at = 0; at < turns.length; at += 500)
    await sql`insert into transcript_turns ${sql(turns.slice(at, at + 500) as never)}`
  return callId
}

type Happened = { readonly fact: CallFact; readonly at: number }

function factsOf(): Happened[] {
  const source = 'embedded'
  const facts: Happened[] = [
    { at: 0, fact: { type: 'client_connected' } },
    { at: 1, fact: { type: 'leg_connected', providerStatus: 'connected' } },
    {
      at: 2,
      fact: { type: 'worker_request_answered', config: null, instructions: null, tools: null, metadata: null },
    },
  ]
  for (let turn = 0, at = 1_000; at < minutes * 60_000; turn++, at += turnEvery) {
    const isAgent = turn % 2 === 0
    const index = Math.floor(turn / 2) % dimensions.length
    const text = isAgent ? `What about the matter ${index}?` : (answers[index % answers.length] ?? '')
    const said = { role: isAgent ? 'agent' : 'user', text, from: at, to: at + 2_000, confidence: 0.9, source } as const
    if (!isAgent)
      for (const part of [0.4, 0.8]) {
        const heard = { ...said, text: text.slice(0, Math.ceil(text.length * part)) }
        facts.push({ at, fact: { type: 'caller_heard', words: { turn: heard, notes: [] } } })
      }
    facts.push({ at, fact: { type: 'turn_committed', turn: said, memory: { step: turn, answers: {} } } })
    // Every other value is noted while the talk goes on; the rest is left to the extractor.
    const noted = index % 2 === 0 && dimensions[index]?.type === 'string'
    if (!isAgent && noted) facts.push({ at, fact: { type: 'noted', key: `value_${index}`, value: text } })
  }
  const over = minutes * 60_000
  facts.push({ at: over, fact: { type: 'leg_disconnected', cause: 'hung_up', details: 'bye' } })
  facts.push({ at: over + 1, fact: { type: 'leg_closed', recordedMs: null } })
  facts.push({ at: over + 2, fact: { type: 'post_processing_failed', details: 'is to be measured' } })
  return facts
}
