/** The pure half of webhooks: signatures, headers and the retry schedule. */
import { createHmac } from 'node:crypto'
import { test } from 'tap'
import { verdictOf, type Attempted } from '../../actors/webhooks/verdict.ts'
import { retryAfterOf } from '../../actors/webhooks/sender.ts'
import {
  createSigningKeys,
  headersOf,
  signatureOf,
  standardSignatureOf,
  toSigningKey,
  verifySignature,
} from '../../actors/webhooks/sign.ts'

const now = Date.parse('2026-03-01T12:00:00.500Z')
const event = {
  type: 'call.transcript',
  eventId: '0195a000-0000-7000-8000-000000000001',
  eventAt: now - 1000,
  delivery: 'async',
  accountId: '0195a000-0000-7000-8000-000000000002',
  attempt: 3,
  sentAt: now,
  body: '{"type":"call.transcript","data":{"text":"Grüß Gott"}}',
  customHeaders: { Authorization: 'Bearer abc' },
} as const

test('X-Service-Signature is the hex HMAC-SHA256 of the raw body', async (t) => {
  // RFC 4231, test case 2.
  t.equal(
    signatureOf(toSigningKey('Jefe'), 'what do ya want for nothing?'),
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  )
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw_-MfKQ9r8GKY'
  const expected = createHmac('sha256', Buffer.from(secret)).update(Buffer.from(event.body)).digest('hex')
  t.equal(signatureOf(toSigningKey(secret), event.body), expected)
  t.equal(signatureOf(toSigningKey(secret), Buffer.from(event.body)), expected)
})

test('webhook-signature is v1 and the base64 HMAC-SHA256 of id, timestamp and body with the same secret', async (t) => {
  const expected = createHmac('sha256', 'secret-text').update(`msg_1.1614265330.{"a":1}`).digest('base64')
  t.equal(standardSignatureOf(toSigningKey('secret-text'), 'msg_1', 1614265330, '{"a":1}'), `v1,${expected}`)
})

test('a receiver accepts the right signature only', async (t) => {
  const key = toSigningKey('secret-text')
  const signature = signatureOf(key, event.body)
  t.ok(verifySignature(key, event.body, signature))
  t.notOk(verifySignature(key, `${event.body} `, signature), 'another body')
  t.notOk(verifySignature(toSigningKey('secret-texts'), event.body, signature), 'another secret')
  t.notOk(verifySignature(key, event.body, signature.slice(0, 63)), 'too short')
  t.notOk(verifySignature(key, event.body, `${signature}0`), 'too long')
  t.notOk(verifySignature(key, event.body, 'ü'.repeat(32)), 'of the right number of bytes, and no hex')
  t.notOk(verifySignature(key, event.body, null))
})

test('a delivery has exactly the documented headers, the additive ones and those of the subscription', async (t) => {
  const key = toSigningKey('secret-text')
  t.strictSame(headersOf(event, key), {
    'User-Agent': 'Parley-Webhooks',
    Authorization: 'Bearer abc',
    'Content-Type': 'application/json',
    'X-Service-Event': 'call.transcript',
    'X-Service-Event-Id': event.eventId,
    'X-Service-Timestamp': '2026-03-01T11:59:59.500Z',
    'X-Service-Delivery': 'async',
    'X-Service-Account-Id': event.accountId,
    'X-Service-Signature': signatureOf(key, event.body),
    'X-Service-Attempt': '3',
    'X-Request-Id': event.eventId,
    'webhook-id': event.eventId,
    'webhook-timestamp': '1772366400',
    'webhook-signature': standardSignatureOf(key, event.eventId, 1772366400, event.body),
  })
  t.equal(
    headersOf({ ...event, requestId: 'checkout-17' }, key)['X-Request-Id'],
    'checkout-17',
    'of who asked for the call',
  )
  t.equal(headersOf({ ...event, requestId: null }, key)['X-Request-Id'], event.eventId, 'nobody did by REST')
  const customHeaders = { 'x-service-signature': 'forged', 'Webhook-Id': 'forged', 'user-agent': 'mine' }
  const names = Object.keys(headersOf({ ...event, customHeaders }, key)).map((name) => name.toLowerCase())
  t.equal(names.length, new Set(names).size, 'no name twice')
  t.notOk(Object.values(headersOf({ ...event, customHeaders }, key)).includes('forged'))
  t.equal(headersOf({ ...event, customHeaders }, key)['user-agent'], 'mine')
  const theirs = { 'x-request-id': 'theirs', Traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
  const sent = headersOf({ ...event, requestId: 'checkout-17', traceparent: 'ours', customHeaders: theirs }, key)
  t.match(sent, theirs, 'what the account has sent along goes as it is')
  t.notOk('X-Request-Id' in sent || 'traceparent' in sent, 'and once')
})

test('the cache of signing keys keeps a bounded number of them', async (t) => {
  const keyOf = createSigningKeys((sealed) => sealed.slice('sealed '.length), 2)
  const first = keyOf('sealed a')
  t.equal(keyOf('sealed a'), first)
  keyOf('sealed b')
  keyOf('sealed c')
  t.not(keyOf('sealed a'), first, 'the oldest was forgotten')
  t.equal(signatureOf(keyOf('sealed a'), 'x'), signatureOf(toSigningKey('a'), 'x'))
})

const failure = { kind: 'failed', reason: 'transport', details: 'ECONNRESET' } as const
const answered = (status: number, retryAfter: number | null = null) =>
  ({ kind: 'answered', status, body: '', retryAfter }) as const
const attempted = (over: Partial<Attempted>): Attempted => ({
  eventType: 'call.ended',
  eventAt: now,
  attempt: 1,
  result: failure,
  now,
  random: 0.5,
  ...over,
})

test('a delivery succeeds with 2xx only; a redirect is a failure; 410 disables the subscription', async (t) => {
  for (const status of [200, 201, 202, 204, 299])
    t.strictSame(verdictOf(attempted({ result: answered(status) })), { kind: 'delivered' }, `${status}`)
  for (const status of [199, 300, 301, 302, 307, 400, 401, 404, 429, 500, 503])
    t.equal(verdictOf(attempted({ result: answered(status) })).kind, 'retry', `${status}`)
  t.strictSame(verdictOf(attempted({ result: answered(410) })), { kind: 'disable' })
  t.strictSame(verdictOf(attempted({ eventType: 'call.transcript', result: answered(410) })), { kind: 'disable' })
})

test('call.ended is tried ten times: at once, then after 5 s, 1 min, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h and 24 h, give or take 20 %', async (t) => {
  const seconds = [5, 60, 300, 1800, 7200, 18_000, 36_000, 36_000, 86_400]
  for (const [index, wait] of seconds.entries()) {
    const at = (random: number) => verdictOf(attempted({ attempt: index + 1, random, eventAt: now - 1e9 }))
    t.strictSame(at(0), { kind: 'retry', at: now + wait * 800 })
    t.strictSame(at(0.5), { kind: 'retry', at: now + wait * 1000 })
    const latest = at(0.999999)
    t.ok(latest.kind === 'retry' && latest.at > now + wait * 1190 && latest.at <= now + wait * 1200)
  }
  t.strictSame(verdictOf(attempted({ attempt: 10 })), { kind: 'exhausted' })
  t.strictSame(verdictOf(attempted({ attempt: 11 })), { kind: 'exhausted' })
})

test('call.transcript and call.status_update are tried four times within 60 s, even when every attempt times out', async (t) => {
  for (const eventType of ['call.transcript', 'call.status_update'] as const)
    for (const random of [0, 0.5, 0.999999]) {
      let time = now
      let attempt = 0
      let verdict = { kind: 'retry', at: now } as ReturnType<typeof verdictOf>
      while (verdict.kind === 'retry') {
        attempt += 1
        time = verdict.at + 10_000
        verdict = verdictOf(attempted({ eventType, attempt, random, now: time }))
      }
      t.equal(verdict.kind, 'exhausted')
      t.equal(attempt, 4)
      t.ok(time - now <= 60_000, `given up after ${time - now} ms`)
    }
  const late = attempted({ eventType: 'call.transcript', eventAt: now - 59_000 })
  t.strictSame(verdictOf(late), { kind: 'exhausted' }, 'no second attempt after its time')
})

test('Retry-After is honoured, 24 h at most, and never beyond the life of a transcript', async (t) => {
  t.strictSame(verdictOf(attempted({ result: answered(429, 120_000) })), { kind: 'retry', at: now + 120_000 })
  t.strictSame(verdictOf(attempted({ result: answered(503, 1) })), { kind: 'retry', at: now + 5_000 }, 'no sooner')
  const capped = { kind: 'retry', at: now + 86_400_000 }
  t.strictSame(verdictOf(attempted({ result: answered(503, 1e12) })), capped)
  const news = { eventType: 'call.transcript' } as const
  t.strictSame(verdictOf(attempted({ ...news, result: answered(429, 30_000) })), { kind: 'retry', at: now + 30_000 })
  t.strictSame(verdictOf(attempted({ ...news, result: answered(429, 90_000) })), { kind: 'exhausted' })
})

test('Retry-After reads as seconds or as a date, and anything else as nothing', async (t) => {
  t.equal(retryAfterOf('120', now), 120_000)
  t.equal(retryAfterOf(['7', '9'], now), 7_000)
  t.equal(retryAfterOf('Sun, 01 Mar 2026 12:01:00 GMT', now), 59_500)
  t.equal(retryAfterOf('Sun, 01 Mar 2020 12:01:00 GMT', now), 0)
  for (const text of [undefined, '', 'soon', '-5', '1.5', '99999999999999999999'])
    t.equal(retryAfterOf(text, now), null)
})
