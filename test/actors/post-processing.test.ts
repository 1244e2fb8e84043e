/** Post-processing as a durable job: what an extractor that fails does to it, running it again, deleted workers, old calls. Engine, leg and extractor are scripted. */
import top, { test, type Test } from 'tap'
import { createProcessAgain } from '../../actors/after-call/process-again.ts'
import { replay } from '../../actors/call/machine/replay.ts'
import { ExtractionError, type Claims, type ExtractionQuestion, type Extractor } from '../../model/extraction.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import { toPhoneCall } from '../../model/phone-call.ts'
import type { Dimension, WorkerConfig } from '../../model/worker.ts'
import { findCall } from '../../store/calls.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { deleteWorker } from '../../store/delete-worker.ts'
import { findUsedCall, pricedUseOf } from '../../store/call-usage.ts'
import { finishJobs, insertJob } from '../../store/jobs.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { box, listen, openCallNode, openShared, status } from '../scenes/call-node.ts'
import { until } from '../scenes/in-time.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const seating: Dimension = { key: 'seating', name: 'Seating', type: 'enum', options: ['inside', 'outside'] }
const config: WorkerConfig = {
  dimensions: [seating],
  nextActions: [{ key: 'book', name: 'Book it' }],
}
const words = { type: 'user_text', isFinal: true, confidence: 0.9, from: 100, to: 900 } as const

/** Answers as the test says; `asked` are the questions. */
function createScriptedExtractor(...answers: (Partial<Claims> | Error)[]) {
  const asked: ExtractionQuestion[] = []
  const extractor: Extractor = {
    name: 'model',
    async extract(question, used) {
      asked.push(question)
      used?.('reader-1', { textIn: 100 * asked.length, textOut: 7 })
      const answer = answers.length > 1 ? answers.shift() : answers[0]
      if (answer instanceof Error) throw answer
      return { values: [], nextAction: null, summary: null, ...answer }
    },
    close: () => Promise.resolve(),
  }
  return { extractor, asked, answers }
}

const opened = openShared(top)

async function openStage(t: Test, extractor?: Extractor, recordings?: RecordingStore) {
  const shared = await opened
  const { sql, clock, bus } = shared
  const node = await openCallNode(shared, undefined, {
    ...(extractor && { extractor }),
    ...(recordings && { recordings }),
  })
  t.teardown(() => node.close())
  const tenant = await createTenant(sql, { slug: newId(), config })
  const request = { eventType: 'call.ended', url: 'https://example.com/hook' } as const
  await createSubscription(sql, box, { accountId: tenant.accountId, request, newId, now: clock.now() })
  const created = await node.createWebCall(tenant.accountId, { workerId: tenant.workerId })
  const { accountId } = tenant
  const { callId } = created
  const leg = createScriptedLeg(bus, callId)
  const browser = listen(bus, callId)
  await node.admission.admit(created.token, null)
  leg.event({ type: 'connected', providerStatus: 'connected' })
  await browser.until(status('in_progress'))
  await until(() => node.engine.configs.length > 0)
  const call = async () => toPhoneCall((await findCall(sql, accountId, callId))!)
  const jobs = () =>
    sql<{ attempts: number; runAt: number }[]>`select attempts, run_at from jobs where call_id = ${callId}`
  return {
    ...shared,
    ...tenant,
    node,
    callId,
    leg,
    call,
    jobs,
    processAgain: createProcessAgain({ sql, clock, newId, wakeJobs: () => node.scheduler.wake() }),
    /** The caller says this and the agent ends the call. */
    async talk(said: readonly string[], notes: readonly { key: string; value: string }[] = []) {
      for (const text of said) node.engine.emit({ ...words, text })
      for (const note of notes) node.engine.emit({ type: 'noted', ...note })
      node.engine.emit({ type: 'finished', nextAction: 'book' })
      await browser.until(status('completed'))
    },
    /** Until nothing is left to do, whatever it waits for. */
    async processed() {
      await until(async () => {
        await node.scheduler.idle()
        const [job] = await jobs()
        if (!job) return true
        clock.advance(Math.max(1_000, job.runAt - clock.now()))
        return false
      })
      return call()
    },
    ended: async () => {
      const rows = await sql<{ body: string }[]>`select body from deliveries where call_id = ${callId}`
      return rows.map(({ body }) => (JSON.parse(body) as { data: Record<string, unknown> }).data)
    },
    replayed: async () => replay(await listCallEvents(sql, callId)).differences,
  }
}

test('a call ends with transcript, values with the words that show them, a next action with its words, and call.ended once after that', async (t) => {
  const stage = await openStage(t)
  await stage.talk(['Outside, please.'], [{ key: 'seating', value: 'outside' }])
  t.match(await stage.processed(), {
    postProcessingStatus: 'completed',
    dimensions: { seating: 'outside' },
    nextAction: 'book',
    evidence: {
      seating: { turn: 0, quote: 'Outside', source: 'engine' },
      nextAction: { turn: 0, quote: 'Outside, please.', source: 'engine' },
    },
  })
  t.match(await stage.ended(), [
    { nextAction: { key: 'book', name: 'Book it' }, transcript: [{ speaker: 'user', text: 'Outside, please.' }] },
  ])
  t.same(await stage.replayed(), [])
})

test('an extractor that is down for a moment is asked again, and call.ended waits for it', async (t) => {
  const said = { values: [{ key: 'seating', value: 'outside', turn: 0, quote: 'out there' }], summary: 'A table.' }
  const { extractor, asked } = createScriptedExtractor(new ExtractionError('down'), said)
  const stage = await openStage(t, extractor)
  await stage.talk(['I would sit out there.'])
  await stage.node.scheduler.idle()
  t.match(await stage.call(), { postProcessingStatus: 'in_progress' })
  t.same(await stage.ended(), [])
  t.match(await stage.processed(), {
    postProcessingStatus: 'completed',
    dimensions: { seating: 'outside' },
    evidence: { seating: { quote: 'out there', source: 'model' } },
    summary: 'A table.',
  })
  t.equal(asked.length, 2)
  t.match(asked[0], { turns: [{ turn: 0, role: 'user', text: 'I would sit out there.' }], dimensions: [seating] })
  const [found] = await stage.sql<{ words: string[] }[]>`select words from call_words where call_id = ${stage.callId}`
  t.same(found?.words, ['i', 'would', 'sit', 'out', 'there'], 'it is found by what was said')
  t.equal((await stage.ended()).length, 1)
  const used = async () => {
    const row = await findUsedCall(stage.sql, stage.accountId, stage.callId)
    return row && pricedUseOf(row, null)
  }
  const counted = { engine: 'extraction', model: 'reader-1', price: null }
  const first = await used()
  t.match(first, { speechInSeconds: 0.8, price: null })
  const read = first?.engines.filter(({ engine }) => engine === 'extraction')
  t.same(
    read,
    [
      { ...counted, unit: 'textIn', amount: 300 },
      { ...counted, unit: 'textOut', amount: 14 },
    ],
    'both runs were paid for',
  )
  await stage.processAgain(stage.accountId, stage.callId)
  await stage.processed()
  t.match((await used())?.engines, [{ unit: 'textIn', amount: 600 }], 'and so was the one that was asked for later')
  t.same(await stage.replayed(), [])
})

test('an extractor that is down for good fails post-processing after three retries; what was noted, the recording and call.ended are there, and the account is told', async (t) => {
  const { extractor, asked, answers } = createScriptedExtractor(new ExtractionError('it answered 503'))
  const stage = await openStage(t, extractor)
  await stage.talk(['Outside, please.'], [{ key: 'seating', value: 'outside' }])
  const failed = await stage.processed()
  t.equal(asked.length, 4)
  t.match(failed, {
    postProcessingStatus: 'failed',
    dimensions: { seating: 'outside' },
    nextAction: 'book',
    evidence: { seating: { turn: 0 } },
    warnings: [{ type: 'EXTRACTION_FAILED', message: /it answered 503/ }],
  })
  t.equal((await stage.ended()).length, 1)
  t.same(await stage.replayed(), [])

  answers.splice(0, 1, { summary: 'A table outside.' })
  await stage.processAgain(stage.accountId, stage.callId)
  const again = await stage.processed()
  t.match(again, { postProcessingStatus: 'completed', summary: 'A table outside.' })
  t.notOk('warnings' in again, 'what was wrong is over')
  t.equal((await stage.ended()).length, 1, 'the end is not announced again')
})

test('a run again finds what the worker asks for by now, keeps what it found when it fails, and announces no second end', async (t) => {
  const { extractor, answers } = createScriptedExtractor({})
  const stage = await openStage(t, extractor)
  const { sql, accountId, workerId, callId } = stage
  await stage.talk(['Outside, for four.'], [{ key: 'seating', value: 'outside' }])
  t.match(await stage.processed(), { dimensions: { seating: 'outside' } })
  const dimensions = [seating, { key: 'guests', name: 'Guests', type: 'number' }] as const
  await sql`update workers set config = ${sql.json({ ...config, dimensions } as never)} where id = ${workerId}`
  answers.splice(0, 1, { values: [{ key: 'guests', value: 4, turn: 0, quote: 'for four' }] })
  t.match(await stage.processAgain(accountId, callId), { postProcessingStatus: 'in_progress', status: 'completed' })
  const found = { postProcessingStatus: 'completed', dimensions: { seating: 'outside', guests: 4 } }
  t.match(await stage.processed(), { ...found, evidence: { guests: { turn: 0, quote: 'for four' } } })
  answers.splice(0, 1, new ExtractionError('down'))
  await stage.processAgain(accountId, callId)
  t.match(await stage.processed(), {
    ...found,
    postProcessingStatus: 'failed',
    warnings: [{ type: 'EXTRACTION_FAILED' }],
  })
  t.equal((await stage.ended()).length, 1)
  t.same(await stage.replayed(), [])
})

test('a call that is not over, is being processed, was never answered or is another account’s is not processed again', async (t) => {
  const stage = await openStage(t, createScriptedExtractor(new ExtractionError('down')).extractor)
  const { sql, accountId, workerId, callId, node } = stage
  const refusal = (account = accountId, call = callId) =>
    stage.processAgain(account, call).then(
      () => null,
      ({ type, message }: { type: string; message: string }) => `${type}: ${message}`,
    )
  t.match(await refusal(), /^CONFLICT: The call is not over/)
  await stage.talk(['Outside'])
  await node.scheduler.idle()
  t.match(await refusal(), /^CONFLICT: The call is being processed/)
  const never = await node.createWebCall(accountId, { workerId })
  await node.endCall.cancel(accountId, never.callId)
  t.match(await refusal(accountId, never.callId), /^CONFLICT: The call was never answered/)
  const stranger = await createTenant(sql, { slug: newId() })
  t.match(await refusal(stranger.accountId), /^NOT_FOUND/)
  await stage.processed()
  t.same(await Promise.all([refusal(), refusal()]).then((both) => both.filter((one) => one === null).length), 1)
})

test('a run again is not lost behind a job that is just being finished', async (t) => {
  const stage = await openStage(t)
  await stage.talk(['Outside, please.'])
  await stage.processed()
  const { sql, accountId, callId, clock } = stage
  await sql.begin((tx) =>
    insertJob(tx, { id: newId(), accountId, callId, kind: 'post_process', runAt: clock.now() + 60_000 }),
  )
  const [old] = await sql<{ id: string }[]>`
    update jobs set claimed_by = 'another', claimed_until = ${clock.now() + 60_000}, attempts = 4
    where call_id = ${callId} returning id`
  await createProcessAgain({ sql, clock, newId, wakeJobs: () => undefined })(accountId, callId)
  await finishJobs(sql, [old?.id ?? ''])
  t.match(await stage.jobs(), [{ attempts: 0 }])
  t.match(await stage.processed(), { postProcessingStatus: 'completed', dimensions: { seating: 'outside' } })
})

test('a worker that is deleted while its call is processed does not stop that', async (t) => {
  const { extractor } = createScriptedExtractor(new ExtractionError('down'), { summary: 'A table.' })
  const stage = await openStage(t, extractor)
  const { sql, accountId, workerId } = stage
  await stage.talk(['Outside, please.'], [{ key: 'seating', value: 'outside' }])
  await stage.node.scheduler.idle()
  t.ok(await deleteWorker(sql, { accountId, workerId, now: Date.now() }))
  t.match(await stage.processed(), {
    postProcessingStatus: 'completed',
    dimensions: { seating: 'outside' },
    summary: 'A table.',
  })
  t.equal((await stage.ended()).length, 1)
})

test('a call whose recording cannot be asked for all the while is processed all the same, and keeps what the leg told of it', async (t) => {
  let reads = 0
  const away = (): Promise<never> => Promise.reject(new Error(`storage is away, ${++reads}`))
  const stage = await openStage(t, undefined, { create: away as never, read: away, remove: away })
  stage.leg.answer('close', { type: 'closed', recordedMs: 1_234 })
  await stage.talk(['Outside, please.'])
  t.match(await stage.processed(), { postProcessingStatus: 'completed', dimensions: { seating: 'outside' } })
  t.equal(reads, 4)
  t.match(await stage.ended(), [{ recordingAvailable: true }])
})

test('no turn of the transcript lies behind the end of the recording, but of one that lacks sound', async (t) => {
  const away = (): Promise<never> => Promise.reject(new Error('storage is away'))
  for (const recordingIncomplete of [false, true]) {
    const stage = await openStage(t, undefined, { create: away as never, read: away, remove: away })
    stage.leg.answer('close', {
      type: 'closed',
      recordedMs: 1_234,
      ...(recordingIncomplete && { recordingIncomplete }),
    })
    stage.node.engine.emit({ ...words, from: 900, to: 2_500, text: 'Outside.' })
    stage.node.engine.emit({ ...words, from: 2_600, to: 3_000, text: 'Please.' })
    await stage.talk([])
    t.match(await stage.processed(), { postProcessingStatus: 'completed' })
    const turns = await stage.sql<{ fromMs: number; toMs: number }[]>`
      select from_ms, to_ms from transcript_turns where call_id = ${stage.callId} order by turn_index`
    const told = turns.map(({ fromMs, toMs }) => [fromMs, toMs])
    const clamped = [
      [900, 1_234],
      [1_234, 1_234],
    ]
    const said = [
      [900, 2_500],
      [2_600, 3_000],
    ]
    t.same(told, recordingIncomplete ? said : clamped)
    t.match(await stage.ended(), [
      { transcript: [{ timestamps: { to: recordingIncomplete ? '00:00:02' : '00:00:01' } }, {}] },
    ])
    t.same(await stage.replayed(), [])
  }
})

test('a call that is gone while its job waits is nobody’s work any more', async (t) => {
  const { extractor } = createScriptedExtractor(new ExtractionError('down'), {})
  const stage = await openStage(t, extractor)
  const { sql, callId, node, clock } = stage
  await stage.talk(['Outside, please.'])
  await node.scheduler.idle()
  await sql`delete from calls where id = ${callId}`
  clock.advance(60_000)
  await node.scheduler.idle()
  t.same(await stage.jobs(), [])
})

test('a call of before there was evidence reads as it did, replays, and is processed again as any other', async (t) => {
  const stage = await openStage(t)
  await stage.talk(['Outside, please.'], [{ key: 'seating', value: 'outside' }])
  await stage.processed()
  const { sql, accountId, callId } = stage
  const old = { recordedMs: null, dimensions: { seating: 'outside' }, nextAction: { key: 'book', name: 'Book it' } }
  await sql`update calls set evidence = null, summary = null where id = ${callId}`
  await sql`
    update call_events set event = ${sql.json({ type: 'post_processed', ...old })} where call_id = ${callId}
      and event->>'type' = 'post_processed'`
  await sql`
    update call_events set effects = jsonb_set(effects, '{0}', ${sql.json({ type: 'store_analysis', ...old })})
    where call_id = ${callId} and effects->0->>'type' = 'store_analysis'`
  const before = await stage.call()
  t.match(before, { dimensions: { seating: 'outside' }, nextAction: 'book' })
  t.notOk('evidence' in before)
  t.same(await stage.replayed(), [])
  await stage.processAgain(accountId, callId)
  t.match(await stage.processed(), { evidence: { seating: { turn: 0, quote: 'Outside', source: 'engine' } } })
})
