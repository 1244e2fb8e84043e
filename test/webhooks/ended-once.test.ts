/**
 * call.ended exactly once, and every lane in order, whatever dies: two loops on one database, each of which is killed or disturbed at one of
 * its await points, and then replaced; a receiver that fails, hangs, resets, and takes a delivery without the sender ever knowing.
 */
import { createSecretKey, randomBytes } from 'node:crypto'
import t, { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { claimLease, createDeliveryLoop, type DeliveryLoop } from '../../actors/webhooks/delivery-loop.ts'
import { openWebhookReceiver } from '../../tools/callers/webhook-receiver.ts'
import { createWebhookSender, type SendResult, type WebhookSender } from '../../actors/webhooks/sender.ts'
import type { CallId } from '../../model/ids.ts'
import { enqueueDeliveries, type OutboxEvent } from '../../store/deliveries.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import { connect, type Sql } from '../../store/sql.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createHandClock, type HandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom, type Random } from '../fake/random.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

/** What happens at the await point: the loop dies before or after the work was done, or the work fails with or without having been done. */
const faults = ['die before', 'die after', 'fail before', 'fail after'] as const
type Fault = { readonly at: number; readonly kind: (typeof faults)[number] | 'close' }

const points = 10
const turns = 3
const answerTimeout = 60
/** Of every lane; its delivery is then taken. */
const badAnswers = 3

const never = <Value>(): Promise<Value> => new Promise(() => {})
const database = openTestDatabase(t)
const box = createSecretBox(createSecretKey(randomBytes(32)))

type Arrival = {
  readonly lane: string
  readonly index: number
  readonly eventId: string
  readonly attempt: number
  readonly accepted: boolean
}

/** Knows which accepted attempts nobody alive heard of: only these may come again. */
type Witness = { readonly excused: Set<string> }
const keyOf = ({ eventId, attempt }: { eventId: string; attempt: number }): string => `${eventId} ${attempt}`

type Deps = { readonly sql: Sql; readonly sender: WebhookSender; readonly clock: HandClock; readonly witness: Witness }

/** A delivery loop that meets its fault at the n-th await point, counted over database and sender alike. */
function openMortal({ sql, sender, clock, witness }: Deps, fault: Fault, random: Random) {
  const nodeId = newId<'node'>()
  /** Attempts that were sent and are not in the database yet; the ones that a 2xx answered are `true`. */
  const open = new Map<string, boolean>()
  let count = 0
  let under = 0
  let alive = true

  function die(): void {
    alive = false
    for (const [key, taken] of open) if (taken) witness.excused.add(key)
  }
  async function point<Value>(work: () => Promise<Value>, failure: () => Value): Promise<Value> {
    if (!alive) return never()
    count += 1
    const kind = count === fault.at ? fault.kind : null
    if (kind === 'die before') die()
    if (!alive) return never()
    if (kind === 'fail before') return failure()
    under += 1
    const value = await work().finally(() => (under -= 1))
    if (kind === 'die after') die()
    if (!alive) return never()
    return kind === 'fail after' ? failure() : value
  }
  const mortalSql = (strings: TemplateStringsArray, ...values: never[]) => {
    // A part of a statement is asked with it.
    if (!/^\s*(?:select|insert|update|delete|with)\b/.test(strings[0] ?? '')) return sql(strings, ...values)
    const work = async () => {
      const rows = await sql(strings, ...values)
      if (strings.join('').includes('into delivery_attempts')) {
        const written = JSON.parse(String(values[0])) as { id: string; attempt: number }[]
        for (const { id, attempt } of written) open.delete(keyOf({ eventId: id, attempt }))
      }
      return rows
    }
    return point(work, () => {
      throw new Error('the database went away')
    })
  }
  async function send(request: Parameters<WebhookSender['send']>[0]): Promise<SendResult> {
    const { 'X-Service-Event-Id': eventId = '', 'X-Service-Attempt': attempt } = request.headers
    const key = keyOf({ eventId, attempt: Number(attempt) })
    const lost = (): SendResult => {
      witness.excused.add(key)
      return { kind: 'failed', reason: 'transport', details: 'the connection went away' }
    }
    const work = async () => {
      open.set(key, true)
      const result = await sender.send({ ...request, timeout: answerTimeout })
      const taken = result.kind === 'answered' && result.status < 300
      open.set(key, taken)
      if (!taken || !alive) witness.excused.add(key)
      return result
    }
    return point(work, lost)
  }
  const loop: DeliveryLoop = createDeliveryLoop({
    sql: mortalSql as unknown as Sql,
    box,
    sender: { send },
    // The timers of the dead die with them.
    clock: { now: clock.now, after: (ms, action) => clock.after(ms, () => alive && action()) },
    nodeId,
    log: createQuietLog(),
    random: random.next,
  })
  loop.start()
  return {
    wake: loop.wake,
    isAlive: () => alive,
    isBusy: () => alive && under > 0,
    holds: () => alive && open.size > 0,
    /** In order, as a deploy ends it. What it still waits for gets its grace. */
    async close() {
      if (!alive) return
      let closed = false
      const closing = loop.close().then(() => (closed = true))
      while (alive && !closed) {
        await Promise.race([closing, new Promise((resolve) => setTimeout(resolve, 5))])
        if (under === 0) clock.advance(1_000)
      }
      alive = false
    },
    fault,
  }
}

type Mortal = ReturnType<typeof openMortal>

/** Verifies signatures as a customer does; what it accepts, it has processed, whether its answer arrives or not. */
async function openJudge(t: Test, random: () => Random) {
  const secrets = new Map<string, string>()
  const bad = new Map<string, number>()
  const arrivals: Arrival[] = []
  const receiver = await openWebhookReceiver({
    secretOf: (path) => secrets.get(path) ?? null,
    answer({ path, data, eventId, attempt, type }, response) {
      const { callId, turnIndex } = data as { callId: string; turnIndex?: number }
      const lane = `${path} ${callId}`
      const left = bad.get(lane) ?? badAnswers
      const answer = left > 0 ? random().pick(['take', 'take', '500', 'hang', 'reset', 'lose'] as const) : 'take'
      if (answer !== 'take') bad.set(lane, left - 1)
      const index = type === 'call.ended' ? turns : Number(turnIndex)
      arrivals.push({ lane, index, eventId, attempt, accepted: answer === 'take' || answer === 'lose' })
      if (answer === 'take') response.end()
      if (answer === '500') response.writeHead(500).end()
      if (answer === 'reset' || answer === 'lose') response.socket?.resetAndDestroy()
    },
  })
  t.teardown(() => receiver.close())
  return { arrivals, url: receiver.url, counts: receiver.counts, trust: secrets.set.bind(secrets) }
}

function eventsOf(callId: CallId): OutboxEvent[] {
  const transcripts = Array.from({ length: turns }, (_, turnIndex) => ({
    type: 'call.tool_call' as const,
    data: { callId, turnIndex },
  }))
  const data = { callId, status: 'completed', accountId: 'a', workerId: 'w', recordingAvailable: false } as const
  return [...transcripts, { type: 'call.ended', data }]
}

type Next = { readonly pending: number; readonly due: number; readonly next: number | null }

/** `next`: when the next head of a lane is due, or its claim runs out. */
async function stateOf(sql: Sql, now: number): Promise<Next> {
  const [row] = await sql<Next[]>`
    select count(*)::int as pending, min(at) as next, count(*) filter (where at <= ${now})::int as due from (
      select distinct on (call_id, subscription_id) greatest(run_at, claimed_until) as at
      from deliveries where status = 'pending' order by call_id, subscription_id, seq) heads`
  return row as Next
}

const flawsOf = (arrivals: readonly Arrival[], lanes: readonly string[], { excused }: Witness): string[] =>
  lanes.flatMap((lane) => {
    const came = arrivals.filter((arrival) => arrival.lane === lane)
    const ended = came.filter(({ index }) => index === turns)
    const flaws: string[] = []
    if (!ended.some(({ accepted }) => accepted)) flaws.push(`${lane}: call.ended never arrived`)
    if (new Set(ended.map(({ eventId }) => eventId)).size > 1) flaws.push(`${lane}: call.ended has two ids`)
    came.forEach((arrival, place) => {
      const later = came.slice(place + 1)
      if (later.some(({ index }) => index < arrival.index)) flaws.push(`${lane}: ${arrival.index} came too early`)
      const again = later.some(({ eventId }) => eventId === arrival.eventId)
      if (arrival.accepted && again && !excused.has(keyOf(arrival)))
        flaws.push(`${lane}: ${arrival.index} was sent again after a 2xx`)
    })
    return flaws
  })

test('call.ended is taken once, last and always, whatever dies and whatever the receiver does', async (t) => {
  const { sql, server } = await database
  const second = connect({ server, applicationName: 'second node', maxConnections: 4 })
  t.teardown(() => second.end({ timeout: 1 }))
  let random = createRandom(0)
  const judge = await openJudge(t, () => random)
  const seen = { duplicates: 0, deaths: 0, closes: 0, arrivals: 0 }
  const firstFaults: Fault[] = Array.from({ length: points }, (_, at) =>
    [...faults, 'close' as const].map((kind) => ({ at: at + 1, kind })),
  ).flat()

  for (const [seed, firstFault] of firstFaults.entries()) {
    random = createRandom(seed)
    judge.arrivals.length = 0
    await sql`delete from deliveries`
    const clock = createHandClock()
    const witness: Witness = { excused: new Set() }
    const sender = createWebhookSender({
      allowHosts: ['127.0.0.1'],
      log: createQuietLog(),
      clock: { ...systemClock, now: clock.now },
    })
    const { lanes, enqueueNext } = await prepare(sql, judge, seed, clock)
    const mortals: Mortal[] = []
    const begin = (place: number, fault: Fault): void => {
      mortals[place] = openMortal({ sql: place === 0 ? sql : second, sender, clock, witness }, fault, random)
    }
    const randomFault = (): Fault => ({ at: 1 + random.below(3 * points), kind: random.pick([...faults, 'close']) })
    begin(0, firstFault)
    begin(1, randomFault())
    for (let step = 0; step < 3_000; step += 1) {
      const more = await enqueueNext()
      for (const [place, mortal] of mortals.entries()) {
        if (mortal.fault.kind === 'close' && step === mortal.fault.at) await mortal.close()
        if (mortal.isAlive()) continue
        seen[mortal.fault.kind === 'close' ? 'closes' : 'deaths'] += 1
        begin(place, step < 200 ? randomFault() : { at: Infinity, kind: 'die before' })
      }
      for (const mortal of mortals) mortal.wake()
      await settled(mortals)
      const { pending, due, next } = await stateOf(sql, clock.now())
      if (pending === 0 && !more) break
      // No claim of a loop that lives may run out: what it still has to write down gets its second.
      if (mortals.some((mortal) => mortal.holds())) clock.advance(1_000)
      else if (due === 0 && next !== null) clock.advance(Math.max(0, next - clock.now()))
    }
    for (const mortal of mortals) await mortal.close()
    await sender.close()
    const flaws = flawsOf(judge.arrivals, lanes, witness)
    t.strictSame(flaws, [], `seed ${seed}: ${firstFault.kind} at ${firstFault.at}`)
    if (flaws.length > 0) t.comment(judge.arrivals)
    seen.arrivals += judge.arrivals.length
    const accepted = judge.arrivals.filter((arrival) => arrival.accepted)
    seen.duplicates += accepted.length - new Set(accepted.map(({ eventId }) => eventId)).size
  }
  t.equal(judge.counts().refused, 0, 'every signature was good')
  t.ok(seen.deaths > firstFaults.length / 2 && seen.duplicates > 0 && seen.closes > 0, JSON.stringify(seen))
  t.ok(claimLease > 10_000 + 20 * 1_000, 'a claim outlives sending and all tries to record')
})

/** Two calls of two subscriptions; their events come one after the other, while the loops are at work. */
async function prepare(sql: Sql, judge: Awaited<ReturnType<typeof openJudge>>, seed: number, clock: HandClock) {
  const tenant = await createTenant(sql, { slug: newId() })
  const { accountId, workerId } = tenant
  const paths = [`/${seed}/a`, `/${seed}/b`]
  for (const path of paths) {
    const request = { eventType: '*', url: `${judge.url}${path}` } as const
    const made = await createSubscription(sql, box, { accountId, request, newId, now: clock.now() })
    judge.trust(path, made.signingSecret ?? '')
  }
  const calls = [newId<'call'>(), newId<'call'>()]
  for (const callId of calls)
    await sql`
      insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot)
      values (${callId}, ${accountId}, ${workerId}, ${callId}, 'outbound', 'webrtc', 'queued', '{}')`
  const waiting = calls.flatMap((callId) => eventsOf(callId).map((event) => ({ callId, event })))
  return {
    lanes: paths.flatMap((path) => calls.map((callId) => `${path} ${callId}`)),
    /** False when there is nothing more to come. */
    async enqueueNext(): Promise<boolean> {
      const next = waiting.shift()
      if (!next) return false
      const batch = { accountId, workerId, callId: next.callId, events: [next.event], now: clock.now(), newId }
      await sql.begin((tx) => enqueueDeliveries(tx, batch))
      return true
    },
  }
}

/** Nothing is under way in any loop that lives, for as long as an answer takes to come back through its promises. */
async function settled(mortals: readonly Mortal[]): Promise<void> {
  for (let calm = 0; calm < 4; calm += 1) {
    await new Promise(setImmediate)
    if (!mortals.some((mortal) => mortal.isBusy())) continue
    calm = 0
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
