/** The receiver kit proves itself: the doctor against good receivers and against those that are wrong on purpose, each named for what it is. */
import { execFile, spawn } from 'node:child_process'
import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { test, type Test } from 'tap'
import { refusalOfDelivery } from '../../tools/callers/webhook-receiver.ts'
import { headersOf, standardSignatureOf, toSigningKey } from '../../actors/webhooks/sign.ts'
import { webhookCommands } from '../../tools/admin/webhook.ts'
import { newId } from '../../app/core.ts'
import { arrivalJsonOf, arrivalTextOf, type Arrival } from '../../tools/webhook-kit/arrival.ts'
import { doctorReportOf } from '../../tools/webhook-kit/doctor-report.ts'
import { examine, type Examination, type ExamineOptions } from '../../tools/webhook-kit/doctor.ts'
import { listenForWebhooks, type ListenOptions } from '../../tools/webhook-kit/listen.ts'
import { Problem } from '../../model/problem.ts'
import { createFolder } from '../scenes/folder.ts'
import { createHandClock } from '../fake/hand-clock.ts'

const secret = 'whsec_of-the-receiver-kit'
const root = path.join(import.meta.dirname, '../..')
const admin = path.join(root, 'tools/admin/admin.ts')

const forgeries = [
  'tampered-body',
  'added-space',
  'tampered-signature',
  'missing-signature',
  'other-secret',
  'uppercase-signature',
  'truncated-signature',
]

type Incoming = { readonly headers: IncomingHttpHeaders; readonly body: Buffer; readonly type: string }
type Answer =
  { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string } | 'hang' | 'reset'

const ok: Answer = { status: 200 }
const unauthorized: Answer = { status: 401 }
const hexOf = (body: Buffer | string): string => createHmac('sha256', secret).update(body).digest('hex')
const header = (headers: IncomingHttpHeaders, name: string): string => String(headers[name] ?? '')

/** As the documentation of the service says, and nothing more: no timestamp is looked at. */
function goodAnswer({ headers, body, type }: Incoming): Answer {
  if (header(headers, 'x-service-signature') !== hexOf(body)) return unauthorized
  return { status: 200, body: type === 'call.tool_call' ? '{"result":[1,null]}' : '' }
}

async function openReceiver(t: Test, answerTo: (incoming: Incoming) => Answer): Promise<URL> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const type = header(request.headers, 'x-service-event')
      const answer = answerTo({ headers: request.headers, body: Buffer.concat(chunks), type })
      if (answer === 'hang') return
      if (answer === 'reset') return void request.socket.resetAndDestroy()
      response.writeHead(answer.status, answer.headers).end(answer.body ?? '')
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks?tenant=7`)
}

/** By a clock that stands still: how busy this machine is warns nobody. */
const diagnose = (url: URL, over: Partial<ExamineOptions> = {}): Promise<Examination> =>
  examine({ url, secret, only: null, timeout: null, headers: {}, clock: createHandClock(Date.now()), newId, ...over })

const named = (examination: Examination, verdict: string): string[] =>
  examination.checks.filter((check) => check.verdict === verdict).map(({ name }) => name)

const checkOf = (examination: Examination, name: string) => examination.checks.find((check) => check.name === name)

async function listen(t: Test, over: Partial<ListenOptions> = {}) {
  const arrivals: Arrival[] = []
  const tell = (arrival: Arrival) => void arrivals.push(arrival)
  const options = { host: '127.0.0.1', port: 0, secret, answer: null, status: 200, now: Date.now, tell, ...over }
  const receiver = await listenForWebhooks(options)
  t.teardown(() => receiver.close())
  return { url: receiver.url, arrivals }
}

/** Posts what the service would. */
function send(url: string, event: { type: string; data: object }, over: Record<string, string> = {}) {
  const body = JSON.stringify(event)
  const headers = headersOf(
    {
      type: event.type as 'call.ended',
      eventId: 'e1',
      eventAt: Date.now(),
      delivery: 'async',
      accountId: 'a1',
      attempt: 1,
      sentAt: Date.now(),
      body,
      customHeaders: {},
    },
    toSigningKey(secret),
  )
  return fetch(url, { method: 'POST', headers: { ...headers, ...over }, body })
}

test('the doctor finds the receiver of webhook listen sound, in every check', async (t) => {
  const { url, arrivals } = await listen(t)
  const examination = await diagnose(new URL(url))
  t.strictSame(named(examination, 'failed'), [])
  t.strictSame(named(examination, 'warned'), [])
  t.ok(examination.passed)
  t.equal(named(examination, 'passed').length, 25)
  t.match(examination.note, /WEBHOOK_ALLOW_HOSTS/, 'and says that the service would not go to loopback by itself')
  t.equal(arrivals.filter(({ duplicate }) => duplicate).length, 1, 'the second of two equal deliveries is marked')
  t.equal(arrivals.filter(({ status }) => status === 401).length, forgeries.length + 1)
  const types = new Set(arrivals.filter(({ verified }) => verified).map(({ type }) => type))
  for (const type of ['worker_request', 'tool_call', 'transcript', 'status_update', 'ended', 'something_new'])
    t.ok(types.has(`call.${type}`), type)
})

test('a receiver that does only what the contract asks passes, with a warning about old deliveries', async (t) => {
  const examination = await diagnose(await openReceiver(t, goodAnswer))
  t.strictSame(named(examination, 'failed'), [])
  t.strictSame(named(examination, 'warned'), ['stale-timestamp'])
  t.ok(examination.passed)
})

test('a receiver that verifies with the webhook-* headers alone passes', async (t) => {
  const url = await openReceiver(t, (incoming) => {
    const { headers, body, type } = incoming
    const [id, at] = [header(headers, 'webhook-id'), header(headers, 'webhook-timestamp')]
    const expected = standardSignatureOf(toSigningKey(secret), id, Number(at), body.toString())
    const isFresh = Math.abs(Date.now() / 1000 - Number(at)) < 300
    if (header(headers, 'webhook-signature') !== expected || !isFresh) return unauthorized
    return { status: 204, ...(type === 'call.tool_call' && { status: 200, body: '{"result":0}' }) }
  })
  const examination = await diagnose(url)
  t.strictSame([named(examination, 'failed'), named(examination, 'warned')], [[], []])
})

test('a receiver that verifies nothing fails every forgery', async (t) => {
  const url = await openReceiver(t, ({ type }) => (type === 'call.tool_call' ? { ...ok, body: '{"result":1}' } : ok))
  const examination = await diagnose(url)
  t.strictSame(named(examination, 'failed'), forgeries)
  t.notOk(examination.passed)
  t.match(checkOf(examination, 'tampered-body'), { got: /^200/, mend: /HMAC-SHA256 of the raw body/ })
})

test('a receiver that verifies parsed JSON instead of the raw body is found by white space and escapes', async (t) => {
  const url = await openReceiver(t, (incoming) => {
    const body = Buffer.from(JSON.stringify(JSON.parse(incoming.body.toString())))
    return goodAnswer({ ...incoming, body })
  })
  const examination = await diagnose(url)
  t.strictSame(named(examination, 'failed'), ['raw-body', 'added-space'])
  for (const name of ['raw-body', 'added-space'])
    t.match(checkOf(examination, name)?.mend, /raw bytes of the body, not JSON that was parsed/)
})

test('a receiver that decodes the body as Latin-1 before it verifies is found by text in other scripts', async (t) => {
  const url = await openReceiver(t, (incoming) =>
    goodAnswer({ ...incoming, body: Buffer.from(incoming.body.toString('ascii')) }),
  )
  const examination = await diagnose(url)
  t.strictSame(named(examination, 'failed'), ['non-ascii', 'raw-body'])
})

test('a receiver that crashes on a duplicate is found, whether it answers 500 or breaks off', async (t) => {
  for (const crash of [{ status: 500 }, 'reset'] as const) {
    const seen = new Set<string>()
    const url = await openReceiver(t, (incoming) => {
      const [answer, id] = [goodAnswer(incoming), header(incoming.headers, 'x-service-event-id')]
      if (answer !== unauthorized && seen.has(id)) return crash
      seen.add(id)
      return answer
    })
    const examination = await diagnose(url)
    t.strictSame(named(examination, 'failed'), ['duplicate'])
    t.match(checkOf(examination, 'duplicate')?.mend, /remember the ids that were handled/)
  }
})

test('a receiver that redirects is told that nobody follows', async (t) => {
  const url = await openReceiver(t, () => ({ status: 302, headers: { location: 'https://example.com/\u0085new' } }))
  const examination = await diagnose(url)
  t.match(checkOf(examination, 'redirects'), { verdict: 'failed', got: /^302 to https:/, mend: /name the final URL/ })
  t.match(checkOf(examination, 'reachable'), { verdict: 'warned', mend: /Redirects are not followed/ })
  t.strictSame(named(examination, 'passed'), [], 'a redirect refuses no forgery either')
  t.notMatch(JSON.stringify(examination), '\u0085', 'nothing that steers a terminal is repeated')
})

test('a receiver that is slow is warned after one second and fails when the time is over', async (t) => {
  const clock = createHandClock()
  const url = await openReceiver(t, (incoming) => {
    const { type } = incoming
    if (type === 'call.transcript' || type === 'call.worker_request') clock.advance(1_500)
    if (type === 'call.ended') clock.advance(10_000)
    if (type === 'call.tool_call') clock.advance(header(incoming.headers, 'x-service-delivery') === 'sync' ? 5_000 : 0)
    return type === 'call.ended' ? 'hang' : goodAnswer(incoming)
  })
  const only = ['status-update', 'transcript', 'ended', 'tool-call-copy', 'hooks']
  const examination = await diagnose(url, { clock, only })
  t.strictSame(named(examination, 'warned'), ['transcript', 'worker-request'])
  t.match(checkOf(examination, 'transcript'), { got: '200 in 1500 ms', mend: /Answer within a second/ })
  t.strictSame(named(examination, 'failed'), ['ended', 'tool-call'])
  t.match(checkOf(examination, 'ended'), { got: 'no answer within 10000 ms', mend: /Answer first and work afterwards/ })
  t.match(checkOf(examination, 'tool-call'), { got: 'no answer within 5000 ms' })
  t.equal(clock.pending(), 0)
})

test('a receiver that answers a hook with what it must not is told what is wrong with it', async (t) => {
  const answers: readonly (readonly [string, RegExp, string, RegExp])[] = [
    ['OK', /no JSON: OK/, 'OK', /no JSON/],
    ['{"config":{"ringTimeout":"long"}}', /config\.ringTimeout/, '{"results":1}', /result /],
    ['{"config":{"llmTemperature":11}}', /config\.llmTemperature/, '[]', /invalid answer/],
    ['7', /invalid answer/, '', /result /],
    [
      '{"instructions":"\\u0000"}',
      /cannot be stored: instructions/,
      '{"result":"\\ud800"}',
      /cannot be stored: result/,
    ],
  ]
  for (const [workerRequest, why, toolCall, whyNot] of answers) {
    const url = await openReceiver(t, (incoming) => {
      const answer = goodAnswer(incoming)
      if (answer === unauthorized) return answer
      return { status: 200, body: incoming.type === 'call.tool_call' ? toolCall : workerRequest }
    })
    const examination = await diagnose(url, { only: ['deliveries', 'hooks'] })
    t.strictSame(named(examination, 'failed'), ['worker-request', 'tool-call'])
    t.match(checkOf(examination, 'worker-request')?.got, why)
    t.match(checkOf(examination, 'tool-call')?.got, whyNot)
  }
})

test('a receiver that knows no events or fields but today’s is told that more will come', async (t) => {
  const types = ['call.worker_request', 'call.tool_call', 'call.transcript', 'call.status_update', 'call.ended']
  const onTypes = await openReceiver(t, (incoming) =>
    types.includes(incoming.type) ? goodAnswer(incoming) : { status: 500 },
  )
  const byType = await diagnose(onTypes)
  t.strictSame(named(byType, 'failed'), ['unknown-type'])
  t.match(checkOf(byType, 'unknown-type'), { got: /^500/, mend: /types and fields that are unknown/ })
  const onFields = await openReceiver(t, (incoming) =>
    incoming.body.includes('addedLater') ? { status: 400 } : goodAnswer(incoming),
  )
  t.strictSame(named(await diagnose(onFields), 'failed'), ['unknown-fields'])
})

test('a receiver with a small body limit, with no kept connections, or without a place for late events is found', async (t) => {
  const small = await openReceiver(t, (incoming) =>
    incoming.body.length > 100_000 ? { status: 413 } : goodAnswer(incoming),
  )
  t.strictSame(named(await diagnose(small), 'failed'), ['large-body'])
  const closing = await openReceiver(t, (incoming) => {
    const answer = goodAnswer(incoming)
    return typeof answer === 'object' ? { ...answer, headers: { connection: 'close' } } : answer
  })
  const handshakes = await diagnose(closing)
  t.strictSame(named(handshakes, 'warned'), ['keep-alive', 'stale-timestamp'])
  t.match(checkOf(handshakes, 'keep-alive')?.got, /^2 more connections/)
  const over = new Set<string>()
  const strict = await openReceiver(t, (incoming) => {
    const answer = goodAnswer(incoming)
    if (answer === unauthorized) return answer
    const { callId } = (JSON.parse(incoming.body.toString()) as { data: { callId: string } }).data
    if (incoming.type === 'call.ended') over.add(callId)
    return incoming.type === 'call.transcript' && over.has(callId) ? { status: 409 } : answer
  })
  t.strictSame(named(await diagnose(strict), 'failed'), ['out-of-order'])
})

test('a receiver whose comparison is not exact, or throws, is found', async (t) => {
  const compareAsBytes = ({ headers, body, type }: Incoming): Answer => {
    const given = Buffer.from(header(headers, 'x-service-signature'), 'hex')
    try {
      if (!timingSafeEqual(given, Buffer.from(hexOf(body), 'hex'))) return unauthorized
    } catch {
      // Of another length: what a framework makes of an exception.
      return { status: 500 }
    }
    return { status: 200, body: type === 'call.tool_call' ? '{"result":1}' : '{}' }
  }
  const examination = await diagnose(await openReceiver(t, compareAsBytes))
  t.strictSame(named(examination, 'failed'), ['missing-signature', 'uppercase-signature', 'truncated-signature'])
  t.match(checkOf(examination, 'truncated-signature')?.mend, /the check of the signature crashes/i)
  const gone = await openReceiver(t, (incoming) => {
    const answer = goodAnswer(incoming)
    return answer === unauthorized ? { status: 410 } : answer
  })
  const disabling = await diagnose(gone)
  t.strictSame(named(disabling, 'failed'), [])
  t.strictSame(named(disabling, 'warned'), [...forgeries, 'stale-timestamp'], '410 is a refusal, and a dangerous one')
})

test('a wrong secret and a receiver that is not there are told apart', async (t) => {
  const url = await openReceiver(t, goodAnswer)
  const examination = await diagnose(url, { secret: 'whsec_wrong', only: ['ended'] })
  t.match(checkOf(examination, 'reachable'), { verdict: 'warned', mend: /Is --secret the secret of the receiver/ })
  t.match(checkOf(examination, 'ended'), { verdict: 'failed', got: /^401/ })
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  const absent = await diagnose(new URL(`http://127.0.0.1:${port}/`), { only: ['ended', 'signatures'] })
  t.match(checkOf(absent, 'reachable'), { verdict: 'failed', got: /ECONNREFUSED/, mend: /Is the receiver running/ })
  t.equal(named(absent, 'skipped').length, forgeries.length + 2)
  t.notOk(absent.passed)
})

test('the headers of a subscription are sent along, and unknown checks are refused by name', async (t) => {
  const url = await openReceiver(t, (incoming) =>
    header(incoming.headers, 'authorization') === 'Bearer x' ? goodAnswer(incoming) : { status: 403 },
  )
  t.ok((await diagnose(url, { headers: { Authorization: 'Bearer x' } })).passed)
  t.notOk((await diagnose(url, { only: ['ended'] })).passed)
  await t.rejects(diagnose(url, { only: ['ended', 'nonsense'] }), { message: /no such check: nonsense; there are/ })
})

test('the report has a line per check, and below what needs it what was expected and how to mend it', async (t) => {
  const examination = await diagnose(await openReceiver(t, () => ok), { only: ['signatures', 'tool-call'] })
  const lines = doctorReportOf(examination).split('\n')
  t.match(lines[0], /^http:\/\/127\.0\.0\.1:\d+\/hooks\?tenant=7$/)
  t.match(lines[1], /^✓ reachable {12}200 in \d+ ms$/)
  const at = lines.findIndex((line) => line.startsWith('✗ tool-call'))
  t.match(lines[at + 1], '    expected: 2xx within the timeout')
  t.match(lines[at + 2], '    mend:     Answer {"result": …}')
  t.match(lines.at(-1), /^1 passed, 1 with a warning, 8 failed: the receiver needs mending$/)
})

test('listen answers hooks so that they change nothing, or as it was told', async (t) => {
  const quiet = await listen(t)
  const bodyOf = async (url: string, type: string) => (await send(url, { type, data: { callId: 'c1' } })).text()
  t.equal(await bodyOf(quiet.url, 'call.worker_request'), '{}')
  t.equal(await bodyOf(quiet.url, 'call.tool_call'), '{"result":null}')
  const answer = { instructions: 'Be brief.' }
  const told = await listen(t, { answer, status: 202 })
  t.equal(await bodyOf(told.url, 'call.worker_request'), '{"instructions":"Be brief."}')
  t.equal(await bodyOf(told.url, 'call.tool_call'), '{"result":null}', 'no answer of a tool has no result')
  t.equal(await bodyOf(told.url, 'call.ended'), '{}')
  const tool = await listen(t, { answer: { result: [1] } })
  t.equal(await bodyOf(tool.url, 'call.tool_call'), '{"result":[1]}')
  t.strictSame(
    told.arrivals.map(({ status, duplicate, callId }) => [status, duplicate, callId]),
    [
      [202, false, 'c1'],
      [202, true, 'c1'],
      [202, true, 'c1'],
    ],
  )
})

test('listen refuses with 401 and says why; what is too long or no JSON is refused too', async (t) => {
  const { url, arrivals } = await listen(t)
  const event = { type: 'call.ended', data: { callId: 'c1' } }
  const statusOf = async (over: Record<string, string>) => (await send(url, event, over)).status
  t.equal(await statusOf({}), 200)
  t.equal(await statusOf({ 'X-Service-Signature': 'ü' }), 401)
  t.equal(await statusOf({ 'webhook-signature': 'v1,AAAA' }), 401)
  t.equal(await statusOf({ 'webhook-id': 'another' }), 401)
  t.equal(await statusOf({ 'webhook-timestamp': 'soon' }), 401)
  t.equal(await statusOf({ 'webhook-timestamp': '1700000000' }), 401)
  t.equal(await statusOf({ 'webhook-signature': '' }), 401)
  const long = await fetch(url, { method: 'POST', body: 'x'.repeat(3_000_000) }).then(
    (answer) => answer.status,
    () => 413, // The connection may break before the answer is read.
  )
  t.equal(long, 413)
  const headers = { 'X-Service-Signature': hexOf('[') }
  const at = Math.floor(Date.now() / 1000)
  const standard = standardSignatureOf(toSigningKey(secret), 'e', at, '[')
  const trio = { 'webhook-id': 'e', 'webhook-timestamp': String(at), 'webhook-signature': `v1,old ${standard}` }
  t.equal((await fetch(url, { method: 'POST', headers: { ...headers, ...trio }, body: '[' })).status, 400)
  t.strictSame(
    arrivals.map(({ reason, data }) => [reason, data !== null]),
    [
      [null, true],
      ['refused: X-Service-Signature is wrong', false],
      ['refused: webhook-signature is wrong', false],
      ['refused: webhook-signature is wrong', false],
      ['refused: webhook-timestamp is no number of seconds', false],
      [arrivals[5]?.reason, false],
      ['refused: webhook-signature is missing', false],
      ['refused: the body is over 2097152 bytes', false],
      ['refused: the body is no JSON object', false],
    ],
  )
  t.match(arrivals[5]?.reason, /^refused: webhook-timestamp is \d+ s old$/)
})

test('a delivery is good for five minutes before and after its timestamp', async (t) => {
  const now = 1_790_000_000_000
  const body = '{"type":"call.ended","data":{}}'
  const event = { type: 'call.ended', eventId: 'e', eventAt: 0, delivery: 'async', accountId: 'a', attempt: 1 } as const
  const signed = headersOf({ ...event, sentAt: now, body, customHeaders: {} }, toSigningKey(secret))
  const headers = Object.fromEntries(Object.entries(signed).map(([name, value]) => [name.toLowerCase(), value]))
  const refusalAt = (at: number) =>
    refusalOfDelivery({ path: '/', headers, body: Buffer.from(body) }, toSigningKey(secret), at)
  for (const off of [0, 300_000, -300_000]) t.equal(refusalAt(now + off), null)
  t.equal(refusalAt(now + 301_000), 'webhook-timestamp is 301 s old')
  t.equal(refusalAt(now - 301_000), 'webhook-timestamp is -301 s old')
})

test('listen without a secret takes everything and marks everything as not verified', async (t) => {
  const { url, arrivals } = await listen(t, { secret: null })
  const answer = await fetch(url, { method: 'POST', body: '{"type":"call.tool_call","data":{"callId":"c9"}}' })
  t.equal(await answer.text(), '{"result":null}')
  t.match(arrivals, [{ verified: false, reason: 'not verified: no --secret', callId: 'c9', duplicate: false }])
})

test('an arrival reads as one line with its data below, or as JSON on one line, and never steers the terminal', async (t) => {
  const arrival: Arrival = {
    at: '2026-11-21T12:00:00.120Z',
    type: 'call.ended',
    eventId: 'e1',
    attempt: 2,
    callId: 'c1',
    verified: true,
    reason: null,
    duplicate: true,
    status: 200,
    data: { callId: 'c1', text: 'Grüße\u009b31m\u007f\u2028\u202e' },
  }
  const [line, ...below] = arrivalTextOf(arrival).split('\n')
  t.equal(line, '12:00:00.120  call.ended  e1  attempt 2  call c1  verified  DUPLICATE  → 200')
  t.strictSame(below, ['{', '  "callId": "c1",', String.raw`  "text": "Grüße\u009b31m\u007f\u2028\u202e"`, '}'])
  const refused = { ...arrival, type: '\u001b[2J', attempt: Number.NaN, callId: null, verified: false, data: null }
  t.equal(
    arrivalTextOf({ ...refused, duplicate: false, reason: 'refused: no', status: 401 }),
    String.raw`12:00:00.120  \u001b[2J  e1  attempt ?  call ?  refused: no  → 401`,
  )
  const json = arrivalJsonOf(arrival)
  t.notMatch(json, /[\n\u009b\u007f\u2028\u202e]/)
  t.strictSame(JSON.parse(json), arrival)
  const long = arrivalTextOf({ ...arrival, data: { text: 'x'.repeat(1_000_000) } })
  t.ok(long.length < 21_000)
  t.match(long, /… and 9\d+ characters more/)
})

function run(name: string, given: readonly string[], options: Record<string, string | string[]>): Promise<number> {
  const command = webhookCommands[name]
  return command && 'run' in command ? command.run(given, options) : Promise.reject(new Error('needs a database'))
}

test('the commands refuse what they cannot mean in a sentence', async (t) => {
  const doctor = 'webhook doctor'
  const cases: readonly (readonly [Promise<number>, RegExp])[] = [
    [run(doctor, [], { secret }), /<url> is missing/],
    [run(doctor, ['ftp://x'], { secret }), /http or https URL/],
    [run(doctor, ['https://u:p@x/'], { secret }), /credentials/],
    [run(doctor, ['http://127.0.0.1:1/'], {}), /--secret-file.* is missing/],
    [run(doctor, ['http://127.0.0.1:1/'], { 'secret-file': '/dev/null/nowhere' }), /nowhere cannot be read as a text/],
    [run(doctor, ['http://127.0.0.1:1/'], { secret, timeout: '10001' }), /--timeout must be .* from 1 to 10000/],
    [run(doctor, ['http://127.0.0.1:1/'], { secret, header: ['Host: x'] }), /--header: Host is a header the service/],
    [run('webhook listen', [], { port: '70000' }), /--port must be/],
    [run('webhook listen', [], { status: '100' }), /--status must be/],
    [run('webhook listen', [], { answer: '{' }), /--answer must be a JSON object/],
    [run('webhook listen', [], { answer: '[1]' }), /--answer must be a JSON object/],
    [run('webhook listen', [], { host: '192.0.2.1', port: '0' }), /--host, --port: .*192\.0\.2\.1/],
  ]
  await Promise.all(cases.map(([refusal, message]) => t.rejects(refusal, { name: Problem.name, message })))
})

type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string }

/** A command beside the service; no setting of this process reaches it, so a database cannot be found by accident. */
async function runAdmin(...words: string[]): Promise<Ended> {
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [admin, ...words], { env: noSettings })
    return { code: 0, stdout, stderr }
  } catch (error) {
    return error as Ended
  }
}
const noSettings = { PATH: process.env['PATH'] ?? '', DATA_DIR: '/dev/null/nowhere' }

async function firstLine(t: Test, file: string, words: readonly string[], env: Record<string, string>) {
  const child = spawn(process.execPath, [file, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  const lines: string[] = []
  const warnings: string[] = []
  createInterface(child.stderr).on('line', (line) => warnings.push(line))
  const reader = createInterface(child.stdout)
  reader.on('line', (line) => lines.push(line))
  await once(reader, 'line')
  return { child, lines, warnings }
}

test('npm run admin -- webhook listen and doctor work together as processes, without a database', async (t) => {
  const words = ['webhook', 'listen', '--port', '0', '--secret', secret, '--json']
  const { child, lines } = await firstLine(t, admin, words, noSettings)
  const { listening } = JSON.parse(lines[0] ?? '') as { listening: string }
  const file = path.join(await createFolder(t), 'secret')
  await writeFile(file, `${secret}\n`)
  const good = await runAdmin('webhook', 'doctor', listening, '--secret-file', file)
  t.match(good, { code: 0, stderr: '', stdout: /, 0 failed: the receiver is sound\n$/ })
  const bad = await runAdmin('webhook', 'doctor', listening, '--secret', 'whsec_no', '--only', 'ended,hooks', '--json')
  t.equal(bad.code, 1)
  t.match(JSON.parse(bad.stdout), { passed: false, checks: [{}, { name: 'ended', verdict: 'failed' }, {}, {}] })
  const taken = run('webhook listen', [], { port: new URL(listening).port })
  await t.rejects(taken, { name: Problem.name, message: /--host, --port: .*EADDRINUSE/ })
  child.kill('SIGINT')
  t.strictSame(await once(child, 'close'), [0, null], 'Ctrl-C ends it in order')
  const told = lines.slice(1).map((line) => JSON.parse(line) as Arrival)
  t.ok(told.length > 40)
  t.ok(told.some(({ reason }) => reason?.startsWith('refused: ')))
})

test('listen says loudly that nothing is verified when it has no secret', async (t) => {
  const { child, lines, warnings } = await firstLine(t, admin, ['webhook', 'listen', '--port', '0'], noSettings)
  t.match(lines[0], /^Listening on http:\/\/127\.0\.0\.1:\d+ \(Ctrl-C ends\)$/)
  child.kill('SIGTERM')
  t.strictSame(await once(child, 'close'), [0, null])
  t.match(warnings.join('\n'), /NOTHING IS VERIFIED/)
})

test('the example receiver of docs/webhooks.md passes every check of the doctor', async (t) => {
  const page = await readFile(path.join(root, 'docs/webhooks.md'), 'utf8')
  const [, example = ''] = /```js\n([\s\S]*?)```/.exec(page) ?? []
  const file = path.join(await createFolder(t), 'receiver.mjs')
  await writeFile(file, example)
  const { lines } = await firstLine(t, file, [], { WEBHOOK_SECRET: secret, PORT: '0' })
  const [address = ''] = /http:\S+/.exec(lines[0] ?? '') ?? []
  const examination = await diagnose(new URL(address))
  t.strictSame([named(examination, 'failed'), named(examination, 'warned')], [[], []])
})
