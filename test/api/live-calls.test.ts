/** docs/console.md "How it is served": what it costs to watch the calls that run, counted. */
import { test } from 'tap'
import { createEventStreams } from '../../api/console/event-streams.ts'
import { createLiveCalls, type Change } from '../../api/console/live-calls.ts'
import { systemClock } from '../../app/clock.ts'
import type { Bus } from '../../model/bus.ts'
import { toBytes } from '../../model/bus-json.ts'
import type { CallId } from '../../model/ids.ts'
import { qualitySubjectOf } from '../../model/live-quality.ts'
import type { Sql } from '../../store/sql.ts'
import { createCutDatabase } from '../fake/cut-database.ts'
import { until } from '../scenes/in-time.ts'
import { createHands, insertCall, insertTurns, newId, openSeededApi, start } from '../scenes/seeded-api.ts'

const calls = 200
type Told = { readonly calls: readonly { readonly id: string }[] }

/** Statements, and not the fragments that they are made of. */
function countStatements(sql: Sql) {
  let count = 0
  const counted = new Proxy(sql, {
    apply(target, self, given: readonly unknown[]) {
      const [words] = given
      if (Array.isArray(words) && String(words[0]).trimStart().startsWith('select')) count++
      return Reflect.apply(target as never, self, given as never) as unknown
    },
  })
  return { counted, count: () => count }
}

test('two hundred running calls are one statement a second, whoever watches, and only what changed is told', async (t) => {
  const { sql, own, deps } = await openSeededApi(t)
  const { bus } = deps as unknown as { readonly bus: Bus }
  const ids: CallId[] = []
  for (let made = 0; made < calls; made++) {
    const running = { transport: 'sip_trunk', progress: 'in_progress', fromNumber: '+4930123456', startedAt: start }
    const id = await insertCall(sql, own.id, own.worker.id, running)
    ids.push(id)
    await insertTurns(sql, own.id, id, [
      { role: 'user', text: 'Is anybody there?', from: 0, to: 900, confidence: null, source: null },
    ])
  }
  /** Of nothing else. */
  const hands = createHands()
  const { counted, count } = countStatements(sql)
  const database = createCutDatabase(counted)
  const live = createLiveCalls({ ...deps, sql: database.sql, clock: hands.clock })
  let late = 0
  const told: Change[][] = [[], []]
  const stop = told.map((changes) =>
    live.watch(
      own.id,
      (_, change) => void changes.push(change),
      () => void late++,
    ),
  )
  const looked = () => until(() => hands.waiting() === 1)
  const news = async (): Promise<Change[][]> => {
    for (const changes of told) changes.length = 0
    hands.turn(1_000)
    await looked()
    return told
  }
  await looked()
  t.same(
    told.map((changes) => changes.map(({ changed }) => changed.length)),
    [[calls], [calls]],
    'the whole at the beginning',
  )
  t.equal(count(), 1)
  const sessions = { findSignedIn: async () => null, requireOwnOrigin: () => undefined }
  const streams = createEventStreams({ sessions, clock: systemClock, live })
  const whose = { userId: newId<'user'>(), accountId: own.id, callId: ids[0]! }
  const page = streams.open(new Request('http://127.0.0.1/'), whose).body!.getReader()
  const events: string[] = []
  const read = async (): Promise<void> => {
    for (let { done, value } = await page.read(); !done; { done, value } = await page.read())
      events.push(new TextDecoder().decode(value as Uint8Array))
  }
  const reading = read()
  t.same(await news(), [[], []], 'nothing, when nothing has changed')

  await sql`update transcript_turns set text = 'It is me.' where call_id = any(${ids.slice(0, 3)}::text[])`
  for (const changes of await news()) t.same(changes[0]?.changed.length, 3)
  const bytes = told[0]?.[0]?.changed.reduce((sum, row) => sum + row.length, 0) ?? 0
  t.ok(bytes < 3 * 700, `${bytes} bytes of three calls`)

  const heard = { codec: 'pcma', packetMs: 20, roundTripMs: null, concealedMs: 0, lateFrames: 0, received: null }
  bus.publish(qualitySubjectOf(ids[7]!), toBytes({ ...heard, sent: { packets: 100, lost: 2, jitterMs: 3 } }))
  await bus.flush()
  const [sound] = await news()
  t.equal(sound?.[0]?.changed.length, 1)
  t.match(JSON.parse(sound?.[0]?.changed[0] ?? ''), { id: ids[7], sound: { loss: 0.02, jitterMs: 3 } })

  await sql`update calls set progress = 'completed' where id = ${ids[9]!}`
  for (const changes of await news()) t.same(changes, [{ changed: [], gone: [ids[9]] }])
  t.equal(count(), 5, 'one statement a look')
  database.cut()
  for (const changes of await news()) t.same(changes, [])
  t.equal(late, 2, 'a database that is away is told to each')
  database.mend()
  hands.turn(5_000)
  await looked()
  t.same(told[0], [{ changed: [], gone: [] }], 'and that it is back, though nothing has changed')
  hands.turn(15_000)
  await looked()
  hands.turn(1_000)
  await looked()
  t.match(
    JSON.parse(told[0]?.at(-1)?.changed[0] ?? ''),
    { id: ids[7], sound: null },
    'a leg that tells no more is forgotten',
  )

  await until(() => events.length === 3)
  const callsOf = (event?: string) => (JSON.parse(/data: (.*)/.exec(event ?? '')?.[1] ?? '') as Told).calls
  t.match(events[1], /^event: calls\n/)
  t.same(
    callsOf(events[1]).map(({ id }) => id),
    [ids[0]],
    'who looks at one call is told of that one',
  )
  t.match(events[2], /^event: change\n/)
  t.match(callsOf(events[2]), [{ id: ids[0], lastTurn: { text: 'It is me.' } }])
  await page.cancel()
  await reading
  t.equal(events.length, 3, 'and of nothing else')

  for (const end of stop) end()
  t.equal(hands.waiting(), 0, 'nobody watches: nothing waits')
})
