/** docs/contract/rest.md "Rate limits": 429 RATE_LIMITED, and the RateLimit headers on every answer (draft-ietf-httpapi-ratelimit-headers). */
import { test } from 'tap'
import { createRequestLimit } from '../../api/rate-limit.ts'
import { renderTooLarge } from '../../api/render.ts'
import type { AccountId } from '../../model/ids.ts'
import { Problem } from '../../model/problem.ts'
import { createApiKey, revokeApiKey } from '../../store/api-keys.ts'
import { createFailureGuard } from '../../net/failure-guard.ts'
import { connect } from '../../store/sql.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createRandom } from '../fake/random.ts'
import { createAsk, newId, openSeededApi, start } from '../scenes/seeded-api.ts'

const current = '/v1/accounts/current'
const policyOf = ({ headers }: { headers: Headers }) => headers.get('ratelimit-policy')
const limitOf = ({ headers }: { headers: Headers }) => headers.get('ratelimit')

test('an account', async (t) => {
  const { ask, own, other, hands } = await openSeededApi(t, { rateLimits: { perAccount: 6, perAddress: 1_000 } })

  await t.test('has as many requests as its limit says, and each answer tells how many are left', async (t) => {
    for (const left of [5, 4, 3, 2, 1, 0]) {
      const answer = await ask(current)
      t.equal(answer.status, 200)
      t.equal(policyOf(answer), '"default";q=6;w=60')
      t.equal(limitOf(answer), `"default";r=${left};t=10`)
    }
  })

  await t.test('then 429 RATE_LIMITED, with the time until there is one more', async (t) => {
    hands.turn(4_000)
    const answer = await ask(current)
    t.equal(answer.status, 429)
    t.match(answer.json, { statusCode: 429, type: 'RATE_LIMITED', localizedKey: 'errors.rateLimited' })
    t.equal(answer.headers.get('retry-after'), '6')
    t.equal(limitOf(answer), '"default";r=0;t=6')
    t.equal((await ask('/v1/nothing')).status, 429, 'whatever is asked')
  })

  await t.test('other accounts are not touched by it, and neither is another key of its own spared', async (t) => {
    t.equal((await ask(current, { key: other.key })).status, 200)
  })

  await t.test('after that time there is exactly one more', async (t) => {
    hands.turn(5_999)
    t.equal((await ask(current)).status, 429)
    hands.turn(1)
    t.equal((await ask(current)).status, 200)
    t.equal((await ask(current)).status, 429)
  })

  await t.test('after a minute all of it is there again, and never more than that', async (t) => {
    hands.turn(3_600_000)
    const answers = []
    for (let count = 0; count < 8; count++) answers.push((await ask(current)).status)
    t.same(answers, [200, 200, 200, 200, 200, 200, 429, 429])
  })

  await t.test('a second key of the account has no budget of its own', async (t) => {
    t.equal((await ask(`/v1/accounts/${own.id}/workers`)).status, 429)
  })
})

test('every answer tells, errors and open paths included', async (t) => {
  const { ask, own, deps } = await openSeededApi(t, { rateLimits: { perAccount: 1_000, perAddress: 500 } })
  const keyed = [
    { target: current, status: 200 },
    { target: current, method: 'HEAD', status: 200 },
    { target: current, method: 'PUT', status: 405 },
    { target: '/v1/nothing', status: 404 },
    { target: `/v1/accounts/${own.id}/web-calls`, method: 'POST', body: '{', status: 400 },
    { target: `/v1/accounts/${own.id}/web-calls`, method: 'POST', status: 415 },
    { target: `/v1/accounts/${own.id}/phone-calls?limit=0`, status: 400 },
  ]
  const open = [
    { target: current, status: 401 },
    { target: '/docs', method: 'POST', status: 405 },
    { target: '/openapi.json', status: 200 },
    { target: '/docs', status: 200 },
    { target: '/docs/nothing', status: 404 },
    { target: '/nothing', status: 404 },
    { target: '/', status: 404 },
    { target: `/v1/recordings/${own.id}/${newId()}.wav?expires=1&signature=x`, status: 401 },
  ]
  for (const { target, status, ...options } of keyed) {
    const answer = await ask(target, options)
    t.equal(answer.status, status, target)
    t.equal(policyOf(answer), '"default";q=1000;w=60', `${target} is charged to the account`)
    t.match(limitOf(answer), /^"default";r=9\d\d;t=1$/)
  }
  let left = 500
  const health = await ask('/health', { key: null })
  t.same([health.status, limitOf(health)], [200, '"default";r=499;t=1'])
  for (const { target, status, ...options } of open) {
    const answer = await ask(target, { ...options, key: null })
    t.equal(answer.status, status, target)
    t.equal(policyOf(answer), '"default";q=500;w=60', `${target} is charged to the address`)
    t.equal(limitOf(answer), `"default";r=${(left -= 1)};t=1`, `${target} is charged once`)
  }

  await t.test('a body that is too large too', (t) => {
    const limit = createRequestLimit({ perAccount: 0, perAddress: 1 }, deps.clock)
    const refuse = () =>
      renderTooLarge(new Request('http://calls.example/v1'), newId, { limit, info: { remoteAddress: '192.0.2.7' } })
    const [first, second] = [refuse(), refuse()]
    t.same([first.status, limitOf(first)], [413, '"default";r=0;t=60'])
    t.same([second.status, second.headers.get('retry-after')], [429, '60'])
    t.end()
  })

  await t.test('without limits nothing is told', async (t) => {
    const unlimited = createAsk({ ...deps, rateLimits: { perAccount: 0, perAddress: 0 } }, own.key)
    for (const options of [{}, { key: null }]) {
      const answer = await unlimited(current, options)
      t.same([policyOf(answer), limitOf(answer), answer.headers.get('retry-after')], [null, null, null])
    }
  })
})

test('an address', async (t) => {
  const { deps, own, other, sql, hands } = await openSeededApi(t)
  const rateLimits = { perAccount: 1_000, perAddress: 3 }
  const open = () => createAsk({ ...deps, rateLimits }, own.key)
  const wrong = (digit: string) => `vk_${digit.repeat(43)}`

  await t.test('without a good key has a limit, which no guess of keys gets around', async (t) => {
    const ask = open()
    const statuses = []
    for (const key of [null, wrong('1'), '', wrong('2'), wrong('3'), 'x'])
      statuses.push((await ask(current, { key })).status)
    t.same(statuses, [401, 401, 401, 429, 429, 429])
    t.equal((await ask('/openapi.json', { key: null })).status, 429)
    const health = []
    for (let count = 0; count < 4; count++) health.push((await ask('/health', { key: null })).status)
    t.same(health, [200, 200, 200, 429], 'which has a budget of its own, for load balancers')
    t.equal((await ask(current, { key: wrong('4'), remoteAddress: '192.0.2.8' })).status, 401, 'another address')
    hands.turn(20_000)
    t.equal((await ask(current, { key: wrong('4') })).status, 401, 'one more after 20 s')
  })

  await t.test('over its limit costs no question to the database', async (t) => {
    const server = { socket: '/nowhere/.s.PGSQL.5432', user: 'nobody', database: 'none' }
    const gone = connect({ server, applicationName: 'test', maxConnections: 1 })
    t.teardown(() => gone.end({ timeout: 1 }))
    const ask = createAsk({ ...deps, sql: gone, rateLimits }, own.key)
    const statuses = []
    for (const digit of ['1', '2', '3', '4', '5']) statuses.push((await ask(current, { key: wrong(digit) })).status)
    t.same(statuses, [503, 503, 503, 429, 429], 'three questions, then none')
    const atOnce = await Promise.all(
      Array.from({ length: 20 }, () => ask(current, { key: wrong('6'), remoteAddress: '192.0.2.9' })),
    )
    t.equal(atOnce.filter(({ status }) => status === 503).length, 3, 'also when they come at once')
  })

  await t.test('is not charged for what a good key asks', async (t) => {
    const ask = open()
    for (let count = 0; count < 10; count++) t.equal((await ask(current)).status, 200)
    t.equal((await ask(current, { key: null })).status, 401)
  })

  await t.test('over its limit still answers whose key was good before, and nobody else', async (t) => {
    const ask = open()
    t.equal((await ask(current)).status, 200)
    for (const digit of ['1', '2', '3', '4']) await ask(current, { key: wrong(digit) })
    t.equal((await ask(current)).status, 200, 'known to be good')
    t.equal((await ask(current, { key: other.key })).status, 429, 'not known yet')
    t.equal((await ask(current, { key: other.key, remoteAddress: '198.51.100.1' })).status, 200)
    t.equal((await ask(current, { key: other.key })).status, 200, 'known from another address')
  })

  await t.test('is charged for a key that is good no more', async (t) => {
    const ask = open()
    const { key, id } = await createApiKey(sql, { accountId: own.id, name: 'short', newId, now: start })
    t.equal((await ask(current, { key })).status, 200)
    await revokeApiKey(sql, own.id, id, start)
    const statuses = []
    for (let count = 0; count < 5; count++) statuses.push((await ask(current, { key })).status)
    t.same(statuses, [401, 401, 401, 429, 429])
  })
})

test('an address that sends wrong keys again and again', async (t) => {
  const guardOf = (clock: { now: () => number }) =>
    createFailureGuard({
      now: clock.now,
      banAfter: 10,
      banFor: 600_000,
      isExempt: () => false,
      banned: () => undefined,
    })
  const { deps, own, other, hands } = await openSeededApi(t)
  const limits = { perAccount: 0, perAddress: 0 }
  const open = () => {
    const guard = guardOf(deps.clock)
    return { guard, ask: createAsk(deps, own.key, createRequestLimit(limits, deps.clock, guard)) }
  }
  const wrong = (count: number) => `vk_${String(count).padStart(43, '0')}`
  const statusesOf = async (ask: ReturnType<typeof open>['ask'], count: number) => {
    const statuses = []
    for (let index = 0; index < count; index += 1) statuses.push((await ask(current, { key: wrong(index) })).status)
    return { unauthorized: statuses.filter((status) => status === 401).length, last: statuses.at(-1) }
  }

  await t.test('is told so 120 times in ten minutes, then 429 with the time until it is told again', async (t) => {
    const { ask, guard } = open()
    t.same(await statusesOf(ask, 200), { unauthorized: 120, last: 429 })
    t.same(guard.bans(), [], 'slowed, not banned yet')
    const refused = await ask(current, { key: wrong(1) })
    t.match(refused.json, { statusCode: 429, type: 'RATE_LIMITED' })
    t.ok(Number(refused.headers.get('retry-after')) > 60)
    t.equal((await ask(current, { key: wrong(1), remoteAddress: '198.51.100.1' })).status, 401, 'another address')
    t.equal((await ask('/v1/accounts/current', { key: null })).status, 401, 'no key is no guess')
  })

  await t.test('is banned when it goes on, and its right keys are answered all the time', async (t) => {
    const { ask, guard } = open()
    t.equal((await ask(current)).status, 200)
    await statusesOf(ask, 300)
    t.match(guard.bans(), [{ group: '192.0.2.7', isProven: true, failure: 'wrong_key' }])
    for (let count = 0; count < 50; count += 1) t.equal((await ask(current)).status, 200, 'known to be good')
    hands.turn(5_000)
    t.equal((await ask(current, { key: other.key })).status, 200, 'not known yet: a few are looked at')
    for (let count = 0; count < 10; count += 1) await ask(current, { key: wrong(count) })
    const looked = await ask(current, { key: wrong(1) })
    t.same([looked.status, looked.headers.get('retry-after')], [429, '1'])
    t.equal((await ask(current, { key: other.key })).status, 200, 'known now')
    hands.turn(600_000)
    t.equal((await ask(current, { key: wrong(1) })).status, 401, 'after the ban')
  })
})

test('a right key makes no SIP peer known: who has an account may still be a scanner', async (t) => {
  const { deps, own } = await openSeededApi(t)
  const unbanned = { isExempt: () => false, banned: () => undefined }
  const guard = createFailureGuard({ now: deps.clock.now, banAfter: 10, banFor: 600_000, ...unbanned })
  const limit = createRequestLimit({ perAccount: 0, perAddress: 600 }, deps.clock, guard)
  t.equal((await createAsk(deps, own.key, limit)(current)).status, 200)
  const scanner = { address: '192.0.2.7', isProven: false }
  t.equal(Array.from({ length: 20 }, () => guard.hears(scanner, true)).filter(Boolean).length, 5)
})

/** The bare limit of one address a minute: how often each of these is let through, one after the other. */
function passed(addresses: readonly string[]): boolean[] {
  const limit = createRequestLimit({ perAccount: 0, perAddress: 1 }, createHandClock())
  return addresses.map((remoteAddress) => passes(() => limit.chargeAddress({ info: { remoteAddress }, charged: null })))
}

function passes(charge: () => void): boolean {
  try {
    charge()
    return true
  } catch (error) {
    if (error instanceof Problem && error.type === 'RATE_LIMITED') return false
    throw error
  }
}

test('what counts as one address', async (t) => {
  await t.test('an IPv4 address, however it is written', (t) => {
    t.same(passed(['192.0.2.7', '192.0.2.8', '::ffff:192.0.2.7', '192.0.2.7']), [true, true, false, false])
    t.end()
  })

  await t.test('the first 64 bits of an IPv6 address', (t) => {
    t.same(passed(['2001:db8:1:2::1', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::']), [true, false, false])
    t.same(passed(['2001:db8::1', '2001:db8::2', '2001:db8:0:0:1::', '2001:db8:0:1::1']), [true, false, false, true])
    t.same(passed(['::1', '::2', '0:0:0:0:5::', '1::', '1:0:0:0:9::1']), [true, false, false, true, false])
    t.same(passed(['', '']), [true, false], 'and what is no address is one too')
    t.end()
  })
})

test('the memory', async (t) => {
  const charges = (limit: ReturnType<typeof createRequestLimit>) => (remoteAddress: string) =>
    passes(() => limit.chargeAddress({ info: { remoteAddress }, charged: null }))

  await t.test('holds the addresses in use and forgets the longest unused', (t) => {
    const charge = charges(createRequestLimit({ perAccount: 0, perAddress: 1 }, createHandClock()))
    t.ok(charge('used'))
    t.ok(charge('unused'))
    for (let index = 0; index < 25_000; index++) {
      charge(`flood ${index}`)
      if (index % 1_000 === 0) t.notOk(charge('used'), 'known all the time')
    }
    t.ok(charge('unused'), 'begins anew')
    t.notOk(charge('flood 24999'))
    t.end()
  })

  await t.test('stays small however many come', (t) => {
    const charge = charges(createRequestLimit({ perAccount: 0, perAddress: 1 }, createHandClock()))
    const before = process.memoryUsage().heapUsed
    for (let index = 0; index < 300_000; index++) charge(`192.0.2.7 ${index}`)
    const grown = (process.memoryUsage().heapUsed - before) / 1024 / 1024
    t.ok(grown < 60, `${grown.toFixed()} MiB for 300,000 addresses`)
    t.end()
  })
})

test('the bucket', async (t) => {
  await t.test('lets through in no span of time more than its size and what flowed in, and all of that', (t) => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = createRandom(seed)
      const clock = createHandClock(0)
      const perAccount = 1 + random.below(600)
      const limit = createRequestLimit({ perAccount, perAddress: 0 }, clock)
      const ask = () =>
        passes(() => limit.goodKey({ info: { remoteAddress: '' }, charged: null }, 'key', 'a' as AccountId))
      const times: number[] = []
      for (let step = 0; step < 400; step++) {
        clock.advance(random.below(2) * random.below(3_000))
        for (let burst = random.below(20); burst > 0; burst--) if (ask()) times.push(clock.now())
      }
      for (let from = 0; from < times.length; from += 7)
        for (let to = from; to < times.length; to += 13) {
          const span = (times[to] ?? 0) - (times[from] ?? 0)
          const most = perAccount + (span * perAccount) / 60_000
          if (to - from + 1 > most + 1e-6) t.fail(`seed ${seed}: ${to - from + 1} in ${span} ms`)
        }
      clock.advance(60_000)
      t.ok(Array.from({ length: perAccount }, ask).every(Boolean), 'a whole minute is given')
      t.notOk(ask())
    }
    t.end()
  })

  await t.test('keeps the time it promised, however often it is asked in between', (t) => {
    for (const perAccount of [1, 3, 6, 12, 60, 600]) {
      const clock = createHandClock(0)
      const limit = createRequestLimit({ perAccount, perAddress: 0 }, clock)
      const request = { info: { remoteAddress: '' }, charged: null }
      const ask = () => passes(() => limit.goodKey({ ...request }, 'key', 'a' as AccountId))
      while (ask());
      const interval = Math.ceil(60_000 / perAccount)
      for (let given = 0; given < 20; given++) {
        for (let step = 0; step < interval - 1; step += 100) {
          clock.advance(Math.min(100, interval - 1 - step))
          if (ask()) t.fail(`${perAccount} a minute: too early`)
        }
        clock.advance(1)
        t.ok(ask(), `${perAccount} a minute`)
      }
    }
    t.end()
  })

  await t.test('gives nothing for a clock that was set back, and takes nothing', (t) => {
    let now = 100_000
    const limit = createRequestLimit({ perAccount: 2, perAddress: 0 }, { now: () => now })
    const ask = () =>
      passes(() => limit.goodKey({ info: { remoteAddress: '' }, charged: null }, 'key', 'a' as AccountId))
    t.ok(ask())
    now = 0
    t.ok(ask())
    t.notOk(ask())
    now = 30_000
    t.ok(ask())
    t.notOk(ask())
    t.end()
  })
})
