/** The whole service as Prometheus sees it: what a scrape tells agrees with the calls that were made, media threads included. */
import { test } from 'tap'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { until } from '../scenes/in-time.ts'
import { openLossyPhone } from '../scenes/lossy-line.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'
import { parsePrometheus, totalOf } from '../scenes/prometheus-text.ts'

test('what is scraped agrees with the calls that were made', { timeout: 120_000 }, async (t) => {
  const engine = createHearingEngine({ tone: 440, seconds: 60 })
  const settings = { METRICS_PORT: '0', MEDIA_THREADS: '1' }
  const stage = await openPhoneStage(t, engine, { settings })
  const { service } = stage
  const read = async () =>
    parsePrometheus(await (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text())
  const total = async (...asked: readonly [name: string, labels?: Record<string, string>]) =>
    totalOf(await read(), ...asked)
  const line = await stage.addLine()
  const phone = await openLossyPhone(t, stage.log, { to: null, from: null, reports: true })

  t.equal(await total('parley_call_ended_total'), 0)
  for (const nth of [1, 2]) {
    const call = await phone.call(`sip:${line.number}@127.0.0.1:${stage.port}`)
    await line.status('in_progress')
    const inProgress = { kind: 'inbound', state: 'in_progress' }
    await until(async () => (await total('parley_calls_running', inProgress)) === 1)
    t.equal(await total('parley_calls_legs'), 1)
    await call.hangUp()
    t.match((await line.ended()).row, { outcome: 'completed' })
    await until(async () => (await total('parley_calls_running')) === 0)
    t.equal(await total('parley_call_ended_total', { kind: 'inbound', outcome: 'completed' }), nth)
  }
  const after = await read()
  t.equal(totalOf(after, 'parley_call_ended_total'), 2, 'and nothing else has ended')
  t.equal(totalOf(after, 'parley_call_failed_total'), 0)
  t.equal(totalOf(after, 'parley_call_length_seconds_count', { kind: 'inbound', result: 'ok' }), 2)
  t.equal(totalOf(after, 'parley_call_set_up_seconds_count', { kind: 'inbound' }), 2)
  t.ok(totalOf(after, 'parley_call_set_up_seconds_sum') < totalOf(after, 'parley_call_length_seconds_sum'))
  t.equal(totalOf(after, 'parley_engine_sessions_total', { result: 'lost' }), 0)
  t.ok(totalOf(after, 'parley_call_step_seconds_count', { result: 'written' }) >= 8)
  t.ok(totalOf(after, 'parley_api_request_seconds_count', { method: 'GET', status: '200' }) >= 2)
  t.ok(totalOf(after, 'parley_db_query_seconds_count', { result: 'ok' }) > 10)
  t.equal(totalOf(after, 'parley_telemetry_refused_total'), 0, 'everything is told as it is declared')
  t.ok(after.has('parley_jobs_due') && after.has('parley_deliveries_waiting') && after.has('parley_steps_waiting'))
  t.ok(totalOf(after, 'parley_event_loop_idle_seconds_total', { thread: 'media 0' }) > 0)
  await until(async () => (await total('parley_leg_jitter_seconds_count', { line: 'phone' })) >= 2)
  await until(
    async () => (await total('parley_delivery_attempts_total', { event: 'call.ended', verdict: 'delivered' })) === 2,
  )
})

test('a number that nobody has is counted by its rule', { timeout: 60_000 }, async (t) => {
  const stage = await openPhoneStage(t, createHearingEngine({ tone: 440, seconds: 1 }), {
    settings: { METRICS_TOKEN: 'a-token-of-enough-letters', MEDIA_THREADS: '0' },
  })
  await stage.addLine()
  const phone = await openLossyPhone(t, stage.log, { to: null, from: null, reports: true })
  await phone.call(`sip:+12029990000@127.0.0.1:${stage.port}`).catch(() => null)
  const scrape = (authorization: string) => fetch(`${stage.service.url}/metrics`, { headers: { authorization } })
  t.equal((await scrape('Bearer somebody-elses-token')).status, 401)
  t.equal((await fetch(`${stage.service.url}/metrics`)).status, 401)
  await until(async () => {
    const families = parsePrometheus(await (await scrape('Bearer a-token-of-enough-letters')).text())
    return totalOf(families, 'parley_call_refused_total', { direction: 'inbound', reason: 'unknown_number' }) >= 1
  })
})
