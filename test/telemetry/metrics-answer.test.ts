/** Who is told the numbers of a process: whoever the operator means, and nobody else. */
import { test, type Test } from 'tap'
import { readConfig } from '../../app/config.ts'
import { openWatching } from '../../app/watching.ts'
import type { Fetch } from '../../model/listener.ts'
import { createFailureGuard, type Ban } from '../../net/failure-guard.ts'
import { createMetricsAnswer } from '../../telemetry/metrics/metrics-answer.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { parsePrometheus, totalOf } from '../scenes/prometheus-text.ts'

const token = 'a-token-of-enough-letters'

function openGuard() {
  const bans: Ban[] = []
  const guard = createFailureGuard({
    now: () => 0,
    banAfter: 10,
    banFor: 60_000,
    isExempt: () => false,
    banned: (ban) => void bans.push(ban),
  })
  return { guard, bans }
}

const asked = (headers: Record<string, string> = {}, method = 'GET'): Request =>
  new Request('http://127.0.0.1/metrics', { method, headers })
const from = (remoteAddress: string) => ({ remoteAddress })
const scrape = async (): Promise<string> => 'parley_role 1\n'

test('with a token the numbers are for who has it, and a stranger learns nothing', async (t) => {
  const answer = createMetricsAnswer({ metrics: { scrape }, token, guard: openGuard().guard })
  for (const authorization of [
    '',
    'Bearer',
    `Bearer ${token}x`,
    `Bearer ${token.slice(0, -1)}`,
    `Basic ${token}`,
    token,
  ]) {
    const response = await answer(asked(authorization === '' ? {} : { authorization }), from('192.0.2.1'))
    t.equal(response.status, 401, authorization)
    t.equal(response.headers.get('www-authenticate'), 'Bearer')
    t.notMatch(await response.text(), 'parley_role')
  }
  const response = await answer(asked({ authorization: `bearer  ${token}` }), from('192.0.2.1'))
  t.equal(response.status, 200)
  t.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  t.equal(await response.text(), 'parley_role 1\n')
})

test('who guesses is banned, and does not wait for a scrape', async (t) => {
  const { guard, bans } = openGuard()
  let scrapes = 0
  const metrics = { scrape: async () => String(scrapes++) }
  const answer = createMetricsAnswer({ metrics, token, guard })
  for (let nth = 0; nth < 200; nth++)
    t.equal((await answer(asked({ authorization: `Bearer ${nth}` }), from('192.0.2.7'))).status, 401)
  t.match(bans, [{ group: '192.0.2.7', failure: 'wrong_token' }])
  t.equal(scrapes, 0)
  const good = asked({ authorization: `Bearer ${token}` })
  t.equal((await answer(good, from('192.0.2.8'))).status, 200, 'others are heard')
})

test('the numbers are read and nothing else', async (t) => {
  const answer = createMetricsAnswer({ metrics: { scrape }, token: null, guard: openGuard().guard })
  t.equal((await answer(asked({}, 'POST'), from('127.0.0.1'))).status, 405)
  const head = await answer(asked({}, 'HEAD'), from('127.0.0.1'))
  t.same([head.status, await head.text()], [200, ''])
})

async function openDoor(t: Pick<Test, 'teardown'>, settings: Record<string, string>) {
  const closing = new AsyncDisposableStack()
  t.teardown(() => closing.disposeAsync())
  const watching = await openWatching(readConfig(settings), createQuietLog(), closing)
  return { watching, beside: await watching.open(openGuard().guard, closing) }
}

test('a port of their own serves the metrics, and nothing else', async (t) => {
  const { watching, beside } = await openDoor(t, { METRICS_PORT: '0' })
  watching.telemetry.count('bus.dropped', {}, 3)
  const url = `http://127.0.0.1:${beside.port}`
  const response = await fetch(`${url}/metrics`)
  t.equal(totalOf(parsePrometheus(await response.text()), 'parley_bus_dropped_total'), 3)
  t.equal((await fetch(`${url}/health`)).status, 404)
  t.equal((await fetch(`${url}/metrics`, { method: 'POST', body: 'x'.repeat(100_000) })).status, 405)
  t.equal(beside.answer(asked()), null, 'the front door has none')
})

test('with a token only they are at the front door', async (t) => {
  const { beside } = await openDoor(t, { METRICS_TOKEN: token })
  t.equal(beside.port, null)
  const answer = beside.answer(asked()) as Fetch
  t.equal((await answer(asked(), from('192.0.2.1'))).status, 401)
  t.equal((await answer(asked({ authorization: `Bearer ${token}` }), from('192.0.2.1'))).status, 200)
  t.equal(beside.answer(new Request('http://127.0.0.1/metrics/x')), null)
})

test('without settings nothing is gathered and nothing is served', async (t) => {
  const { watching, beside } = await openDoor(t, {})
  t.equal(watching.telemetry.isOn, false)
  t.same([beside.port, beside.answer(asked())], [null, null])
})

test('settings that would show the numbers to everybody, or have no effect, are refused by name', (t) => {
  t.equal(readConfig({}).metrics, null)
  const port = { METRICS_PORT: '9464' }
  t.match(readConfig(port).metrics, { listens: { host: '127.0.0.1', port: 9464 }, token: null })
  for (const METRICS_HOST of ['0.0.0.0', '::', '10.0.0.7', 'example.com'])
    t.throws(() => readConfig({ ...port, METRICS_HOST }), /METRICS_HOST.*METRICS_TOKEN/)
  t.match(readConfig({ ...port, METRICS_HOST: '0.0.0.0', METRICS_TOKEN: token }).metrics, { token })
  t.match(readConfig({ ...port, METRICS_HOST: '::1' }).metrics, { token: null })
  t.throws(() => readConfig({ METRICS_HOST: '::1' }), /METRICS_HOST needs METRICS_PORT/)
  t.throws(() => readConfig({ METRICS_TOKEN: 'short' }), /METRICS_TOKEN.*16 characters/)
  t.end()
})
