/** Lookups that share a query: who is told what, and that nobody is told anything old. docs/contract/rest.md "Keys and accounts". */
import { test } from 'tap'
import type { CallId } from '../../model/ids.ts'
import { createApiKey, createKeyLookup, revokeApiKey } from '../../store/api-keys.ts'
import { createKeyAndCallLookup } from '../../store/key-and-call.ts'
import { createOneQuery } from '../../store/one-query.ts'
import { connect } from '../../store/sql.ts'
import { createAsk, newId, openSeededApi, start } from '../scenes/seeded-api.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createRandom } from '../fake/random.ts'
import { openNetwork } from '../scenes/postgres-network.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A table whose queries end when the test says so, and read it when they are sent, as a snapshot does. */
function createTable(rows: ReadonlyMap<string, string>) {
  const sent: { readonly questions: readonly string[]; end(): void; fail(error: Error): void }[] = []
  const query = (questions: readonly string[]): Promise<ReadonlyMap<string, string>> => {
    const { promise, resolve, reject } = Promise.withResolvers<ReadonlyMap<string, string>>()
    const found = new Map([...rows].filter(([key]) => questions.includes(key)))
    sent.push({ questions, end: () => resolve(found), fail: reject })
    return promise
  }
  return { query, sent }
}

const rows = new Map([
  ['a', 'the a'],
  ['b', 'the b'],
  ['c', 'the c'],
])
const keyOf = (asked: string): string => asked
const letters = ['a', 'b', 'c', 'd']

test('lookups of one turn share a query', async (t) => {
  await t.test('each gets its own answer, and null for what there is not', async (t) => {
    const { query, sent } = createTable(rows)
    const find = createOneQuery<string, string>({ keyOf, query })
    const answers = Promise.all(['c', 'nothing', 'a', 'b'].map(find))
    await turn()
    sent[0]?.end()
    t.same(await answers, ['the c', null, 'the a', 'the b'])
    t.same(
      sent.map(({ questions }) => questions),
      [['c', 'nothing', 'a', 'b']],
      'in the order they were asked',
    )
  })

  await t.test('what is asked several times is one question, and everybody is answered', async (t) => {
    const { query, sent } = createTable(rows)
    const find = createOneQuery<string, string>({ keyOf, query })
    const answers = Promise.all(['a', 'a', 'b', 'a'].map(find))
    await turn()
    sent[0]?.end()
    t.same(await answers, ['the a', 'the a', 'the b', 'the a'])
    t.same(sent[0]?.questions, ['a', 'b'])
  })

  await t.test(
    'a query is sent when all who ask in the turn have asked, also those who ask a little later',
    async (t) => {
      const { query, sent } = createTable(rows)
      const find = createOneQuery<string, string>({ keyOf, query })
      const first = find('a')
      await Promise.resolve()
      const second = Promise.resolve().then(() => find('b'))
      t.equal(sent.length, 0)
      await turn()
      sent[0]?.end()
      t.same([await first, await second, sent.length], ['the a', 'the b', 1])
    },
  )

  await t.test('who asks while a query is under way is not in it, and does not wait for it', async (t) => {
    const { query, sent } = createTable(rows)
    const find = createOneQuery<string, string>({ keyOf, query })
    const slow = find('a')
    await turn()
    const quick = find('a')
    await turn()
    sent[1]?.end()
    t.equal(await quick, 'the a')
    sent[0]?.end()
    t.equal(await slow, 'the a')
  })

  await t.test('a query has so many questions at most; the others of the turn have another one', async (t) => {
    const { query, sent } = createTable(rows)
    const find = createOneQuery<string, string>({ keyOf, query, maxQuestions: 100 })
    const answers = Promise.all(Array.from({ length: 250 }, (_, index) => find(`${index}`)))
    await turn()
    t.same(
      sent.map(({ questions }) => questions.length),
      [100, 100, 50],
    )
    for (const { end } of sent) end()
    t.equal((await answers).length, 250)
  })
})

const coded = (code: string): Error => Object.assign(new Error(`failed with ${code}`), { code })
const failuresOf = (settled: readonly PromiseSettledResult<unknown>[]): unknown[] =>
  settled.map((one) => (one.status === 'rejected' ? one.reason : 'answered'))

test('a database that is away is the answer to all members of the query and to nobody else', async (t) => {
  const { query, sent } = createTable(rows)
  const find = createOneQuery<string, string>({ keyOf, query })
  const failing = Promise.allSettled([find('a'), find('b'), find('b')])
  await turn()
  const other = find('a')
  await turn()
  const error = coded('ECONNREFUSED')
  sent[0]?.fail(error)
  sent[1]?.end()
  t.same(failuresOf(await failing), [error, error, error])
  t.equal(await other, 'the a')
  t.equal(sent.length, 2, 'nobody is asked about alone')
  const later = find('c')
  await turn()
  sent[2]?.end()
  t.equal(await later, 'the c', 'the next one is as good as ever')
})

test('a connection that was lost under a query fails nobody: it is asked once over another, and at once', async (t) => {
  for (const code of ['CONNECTION_CLOSED', 'ECONNRESET', '57P01', '08006']) {
    const { query, sent } = createTable(rows)
    const find = createOneQuery<string, string>({ keyOf, query })
    const answers = Promise.all(['a', 'b', 'nothing'].map(find))
    await turn()
    sent[0]?.fail(coded(code))
    await turn()
    sent[1]?.fail(coded(code))
    await turn()
    sent[2]?.end()
    t.same(await answers, ['the a', 'the b', null], code)
    t.same(
      sent.map(({ questions }) => questions.length),
      [3, 3, 3],
    )
  }
  const { query, sent } = createTable(rows)
  const find = createOneQuery<string, string>({ keyOf, query })
  const lost = find('a')
  lost.catch(() => {})
  for (let loss = 0; loss < 3; loss++) {
    await turn()
    sent[loss]?.fail(coded('CONNECTION_CLOSED'))
  }
  await t.rejects(lost, { code: 'CONNECTION_CLOSED' }, 'not for ever')
})

test('who waits rather than fails is answered when the database is back, and told when it stays away', async (t) => {
  const clock = createHandClock()
  const { query, sent } = createTable(rows)
  const find = createOneQuery<string, string>({ keyOf, query, clock })
  const failAll = async (code: string, waits: readonly number[]): Promise<void> => {
    for (const ms of waits) {
      sent.at(-1)?.fail(coded(code))
      await turn()
      clock.advance(ms)
      await turn()
    }
  }
  const answers = Promise.all(['a', 'b'].map(find))
  await turn()
  await failAll('ECONNREFUSED', [20, 100])
  sent.at(-1)?.end()
  t.same(await answers, ['the a', 'the b'])
  t.equal(sent.length, 3)

  const away = find('a')
  away.catch(() => {})
  await turn()
  await failAll('ECONNREFUSED', [20, 100, 500, 2_000])
  sent.at(-1)?.fail(coded('ECONNREFUSED'))
  await t.rejects(away, { code: 'ECONNREFUSED' })
  for (const code of ['QUERY_DEADLINE', '57014', 'CONNECTION_ENDED']) {
    const late = find('a')
    await turn()
    sent.at(-1)?.fail(coded(code))
    await t.rejects(late, { code }, 'that had its time')
  }
  t.equal(clock.pending(), 0)
})

test('a member that cannot be asked about costs the others nothing but a few queries', async (t) => {
  const asked: number[] = []
  const find = createOneQuery<string, string>({
    keyOf,
    async query(questions) {
      asked.push(questions.length)
      if (questions.includes('bad')) throw coded('22021')
      return new Map(questions.map((question) => [question, `the ${question}`]))
    },
  })
  const questions = Array.from({ length: 40 }, (_, index) => (index === 17 ? 'bad' : `${index}`))
  const settled = await Promise.allSettled(questions.map(find))
  t.same(
    settled.map((one) => (one.status === 'fulfilled' ? one.value : (one.reason as { code: string }).code)),
    questions.map((question) => (question === 'bad' ? '22021' : `the ${question}`)),
  )
  t.ok(asked.length <= 13, `${asked.join()} in one query after another`)
})

test('a real connection that is cut under gathered reads fails none of them', async (t) => {
  const { sql, server } = await openTestDatabase(t)
  const network = await openNetwork(t, server)
  const cut = connect({ server: network.server, applicationName: 'parley test', maxConnections: 3 })
  t.teardown(() => cut.end({ timeout: 1 }))
  await sql`create table letters as select * from unnest(array['a', 'b', 'c']) as letter`
  await cut`select 1`
  const left = network.cutAt('from letters', 2)
  const find = createOneQuery<string, string>({
    keyOf,
    async query(questions) {
      const found = await cut<
        { letter: string }[]
      >`select letter from letters where letter = any(${[...questions]}::text[])`
      return new Map(found.map(({ letter }) => [letter, `the ${letter}`]))
    },
  })
  t.same(await Promise.all(['a', 'nothing', 'c'].map(find)), ['the a', null, 'the c'])
  t.equal(left(), 0, 'two were lost')
})

test('a query that throws instead of rejecting is an error like any other', async (t) => {
  const find = createOneQuery<string, string>({
    keyOf,
    query() {
      throw new Error('not even sent')
    },
  })
  await t.rejects(find('a'), { message: 'not even sent' })
})

test('nobody is told what was true before his question, whatever the order of changes, questions and answers', async (t) => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = createRandom(seed)
    const versions = new Map(letters.map((key) => [key, 0]))
    const ends: (() => void)[] = []
    const find = createOneQuery<string, number>({
      keyOf,
      maxQuestions: 1 + random.below(4),
      query(questions) {
        const found = new Map(questions.map((key) => [key, versions.get(key) ?? -1]))
        return new Promise((resolve) => ends.push(() => resolve(found)))
      },
    })
    const asking: Promise<boolean>[] = []
    for (let step = 0; step < 60; step++) {
      const key = random.pick(letters)
      const choice = random.below(4)
      if (choice === 0) versions.set(key, (versions.get(key) ?? 0) + 1)
      if (choice === 1) {
        const known = versions.get(key) ?? 0
        asking.push(find(key).then((found) => found !== null && found >= known))
      }
      if (choice === 2) await turn()
      if (choice === 3) ends.splice(random.below(ends.length), 1)[0]?.()
    }
    await turn()
    for (const end of ends) end()
    if (!(await Promise.all(asking)).every(Boolean)) t.fail(`an old answer with seed ${seed}`)
  }
  t.pass()
})

test('keys and calls of several accounts asked for in one turn', async (t) => {
  const { sql, own, other } = await openSeededApi(t)

  await t.test('a call is found only with a key of its account, also beside the one who may', async (t) => {
    const find = createKeyAndCallLookup(sql, () => start)
    const unknown = `vk_${'0'.repeat(43)}`
    const questions = [
      [own.key, own.callId],
      [other.key, own.callId],
      [own.key, other.callId],
      [other.key, other.callId],
      [own.key, newId<'call'>()],
      [own.key, "' or true --" as CallId],
      [unknown, own.callId],
      ['vk_', own.callId],
      [own.key, own.callId],
    ] as const
    const found = await Promise.all(questions.map(([key, callId]) => find(key, callId)))
    t.same(
      found.map((it) => it && [it.owner.accountId, it.call && [it.call.accountId, it.call.id]]),
      [
        [own.id, [own.id, own.callId]],
        [other.id, null],
        [own.id, null],
        [other.id, [other.id, other.callId]],
        [own.id, null],
        [own.id, null],
        null,
        null,
        [own.id, [own.id, own.callId]],
      ],
    )
  })

  await t.test('a key leads to its own account, and none that is wrong, expired or revoked to any', async (t) => {
    const fresh = { accountId: own.id, newId, name: 'more', now: start }
    const expired = await createApiKey(sql, { ...fresh, expiresAt: start })
    const expiring = await createApiKey(sql, { ...fresh, expiresAt: start + 1 })
    const revoked = await createApiKey(sql, fresh)
    await revokeApiKey(sql, own.id, revoked.id, start)
    const find = createKeyLookup(sql, () => start)
    const keys = [other.key, `vk_${'0'.repeat(43)}`, expired.key, own.key, revoked.key, 'vk_', expiring.key, own.key]
    t.same(
      (await Promise.all(keys.map(find))).map((owner) => owner?.accountId ?? null),
      [other.id, null, null, own.id, null, null, own.id, own.id],
    )
  })

  await t.test('many requests with one key write its row once', async (t) => {
    const find = createKeyLookup(sql, () => start + 600_000)
    const written = async () =>
      (await sql<{ count: number }[]>`select count(*)::int from api_keys where last_used_at = ${start + 600_000}`)[0]
        ?.count
    const withCall = createKeyAndCallLookup(sql, () => start + 600_000)
    await Promise.all(Array.from({ length: 30 }, () => [find(own.key), withCall(own.key, newId<'call'>())]).flat())
    while ((await written()) === 0) await turn()
    t.equal(await written(), 1)
  })
})

test('a revoked key is good for nothing, at once and on every node', async (t) => {
  const { deps, own, sql } = await openSeededApi(t)
  const call = `/v1/accounts/${own.id}/phone-calls/${own.callId}`
  const nodes = [createAsk(deps, own.key), createAsk(deps, own.key)]
  for (let round = 0; round < 10; round++) {
    const { id, key } = await createApiKey(sql, { accountId: own.id, name: 'short', newId, now: start })
    const ask = (): Promise<number>[] => nodes.map(async (node) => (await node(call, { key })).status)
    t.same(await Promise.all(ask()), [200, 200])
    // These are under way while the key is revoked, and may be answered either way.
    const before = [...ask(), ...ask()]
    await revokeApiKey(sql, own.id, id, start)
    t.same(await Promise.all(ask()), [401, 401], 'the very next request')
    t.ok((await Promise.all(before)).every((status) => status === 200 || status === 401))
  }
})

test('answers of one turn go to who asked: own, foreign, unknown and without a key', async (t) => {
  const { ask, own, other } = await openSeededApi(t)
  const path = (account: string, call: string): string => `/v1/accounts/${account}/phone-calls/${call}`
  const requests: [string, string | null, number][] = [
    [path(own.id, own.callId), own.key, 200],
    [path(other.id, other.callId), own.key, 404],
    [path(own.id, other.callId), own.key, 404],
    [path(other.id, other.callId), other.key, 200],
    [path(own.id, newId()), own.key, 404],
    [path(own.id, own.callId), null, 401],
    [path(own.id, own.callId), `vk_${'0'.repeat(43)}`, 401],
    [path(own.id.toUpperCase(), own.callId.toUpperCase()), own.key, 200],
  ]
  const answers = await Promise.all(requests.map(([target, key]) => ask(target, { key })))
  t.same(
    answers.map(({ status }) => status),
    requests.map(([, , status]) => status),
  )
  t.same([answers[0]?.json.id, answers[3]?.json.id, answers[7]?.json.id], [own.callId, other.callId, own.callId])
  const [foreign, nested, unknown] = [1, 2, 4].map((index) => {
    const { requestId: _, ...body } = answers[index]?.json ?? {}
    return body
  })
  t.same([foreign, nested], [unknown, unknown], 'what is foreign reads like what is not there')
})

test('when the database is closed every lookup is refused, and none waits', async (t) => {
  const { server } = await openTestDatabase(t)
  const sql = connect({ server, applicationName: 'parley test', maxConnections: 2 })
  const find = createKeyAndCallLookup(sql, () => start)
  const key = `vk_${'0'.repeat(43)}`
  t.equal(await find(key, newId<'call'>()), null)
  await sql.end({ timeout: 1 })
  const asked = Array.from({ length: 5 }, () => find(key, newId<'call'>()))
  for (const settled of await Promise.allSettled(asked))
    t.match(settled, { status: 'rejected', reason: { code: 'CONNECTION_ENDED' } })
})
