/** docs/contract/rest.md "Persons": rows of persons, who is found by a number, who is a worker's contact. */
import { test } from 'tap'
import { toId, type PersonId } from '../../model/ids.ts'
import { cursorOf, Paging } from '../../model/paging.ts'
import { PersonQuery, type PersonFacts, type PersonRequest } from '../../model/person.ts'
import {
  changePerson,
  createPerson,
  createPersons,
  deletePerson,
  findPerson,
  findPersonByPhone,
  listContacts,
  listPersons,
} from '../../store/persons.ts'
import { blockedQueries } from '../scenes/blocked-queries.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createRandom } from '../fake/random.ts'
import { refusalOf } from '../scenes/refusal.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const start = Date.UTC(2026, 0, 1)
const ada: PersonRequest = { type: 'lead', firstName: 'Ada', lastName: 'Lovelace' }

test('persons', async (t) => {
  const { sql } = await openTestDatabase(t)
  const own = await createTenant(sql)
  const other = await createTenant(sql, { slug: 'other' })
  const { accountId, workerId } = own
  const add = (request: Partial<PersonRequest>, now = start) =>
    createPerson(sql, { accountId, request: { ...ada, ...request }, newId, now })

  await t.test('a person comes back as it was sent, and what was not sent is null', async (t) => {
    const person = await add({ email: 'ada@example.com', tags: ['a', 'b'], workerId, notes: 'first' })
    t.match(person, { ...ada, accountId, email: 'ada@example.com', tags: ['a', 'b'], workerId, notes: 'first' })
    t.match(person, { externalId: null, phoneNumber: null, linkedInUrl: null, createdAt: start, updatedAt: start })
    t.same(await findPerson(sql, accountId, person.id), person)
    t.equal(await findPerson(sql, other.accountId, person.id), null)
  })

  await t.test('of several with a number the oldest is found, within the account only', async (t) => {
    const phoneNumber = '+4930111111'
    const younger = await add({ phoneNumber }, start + 5)
    const older = await add({ phoneNumber }, start + 4)
    t.equal((await findPersonByPhone(sql, accountId, phoneNumber))?.id, older.id)
    t.equal(await findPersonByPhone(sql, other.accountId, phoneNumber), null)
    await deletePerson(sql, accountId, older.id)
    t.equal((await findPersonByPhone(sql, accountId, phoneNumber))?.id, younger.id)
    t.equal(await findPersonByPhone(sql, accountId, '+4930'), null)
  })

  await t.test('contacts of a worker are its phone contacts, oldest first', async (t) => {
    const second = await add({ type: 'phone_contact', workerId }, start + 2)
    const first = await add({ type: 'phone_contact', workerId }, start + 1)
    await add({ type: 'customer', workerId })
    await add({ type: 'phone_contact' })
    t.same(
      (await listContacts(sql, accountId, workerId)).map(({ id }) => id),
      [first.id, second.id],
    )
    t.same(await listContacts(sql, other.accountId, workerId), [])
  })

  await t.test('a change leaves alone what it does not name, undefined is not named, null takes away', async (t) => {
    const person = await add({ email: 'a@example.com', city: 'Berlin', tags: ['x'], workerId, externalId: 'keep' })
    const change = (change: Parameters<typeof changePerson>[1]['change'], now: number) =>
      changePerson(sql, { accountId, personId: person.id, change, now })
    t.same(await change({}, start + 1), { ...person, updatedAt: start + 1 })
    t.same(await change({ email: undefined, firstName: undefined, workerId: undefined }, start + 2), {
      ...person,
      updatedAt: start + 2,
    })
    t.same(await change({ email: null, workerId: null, tags: [], lastName: 'King' }, start + 3), {
      ...person,
      email: null,
      workerId: null,
      tags: [],
      lastName: 'King',
      updatedAt: start + 3,
    })
    t.equal((await change({ workerId: workerId.toUpperCase() }, start + 4))?.workerId, workerId)
    const foreign = change({ workerId: other.workerId, lastName: 'Not' }, start + 5)
    t.same(await refusalOf(foreign), ['VALIDATION_FAILED', 'workerId'])
    t.equal((await findPerson(sql, accountId, person.id))?.lastName, 'King', 'and nothing is changed')
    const unknown = { accountId: other.accountId, personId: person.id, change: { lastName: 'Not' }, now: start }
    t.equal(await changePerson(sql, unknown), null)
  })

  await t.test('an external id is one person of the account, after races too', async (t) => {
    const attempts = await Promise.allSettled(Array.from({ length: 5 }, () => add({ externalId: 'race' })))
    t.equal(attempts.filter(({ status }) => status === 'fulfilled').length, 1)
    for (const attempt of attempts)
      if (attempt.status === 'rejected') t.match(attempt.reason, { type: 'CONFLICT', issues: [{ path: 'externalId' }] })
    const plain = await add({})
    const taken = changePerson(sql, { accountId, personId: plain.id, change: { externalId: 'race' }, now: start })
    t.same(await refusalOf(taken), ['CONFLICT', 'externalId'])
    const elsewhere = { accountId: other.accountId, request: { ...ada, externalId: 'race' }, newId, now: start }
    t.equal((await createPerson(sql, elsewhere)).externalId, 'race', 'another account has its own')
  })

  await t.test('batches that want the same external ids at once never wait for each other in a ring', async (t) => {
    const batch = (externalIds: string[]) => {
      const requests = externalIds.map((externalId) => ({ ...ada, externalId }))
      return createPersons(sql, { accountId, requests, newId, now: start })
    }
    const locked = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const row = { id: newId<'person'>(), accountId, ...ada, externalId: 'ring-1' }
    const holding = sql.begin(async (tx) => {
      await tx`insert into persons ${tx(row)}`
      locked.resolve()
      await release.promise
      throw new Error('taken back')
    })
    await locked.promise
    const ids = ['ring-0', 'ring-1', 'ring-2']
    const racing = Promise.all([batch(ids), batch(ids.toReversed())].map(refusalOf))
    await blockedQueries(sql, 2)
    release.resolve()
    await t.rejects(holding, { message: 'taken back' })
    const refusals = (await racing).filter((refusal) => refusal !== null)
    t.same(
      refusals.map(([type]) => type),
      ['CONFLICT'],
      'one wins, the other is told, and none is a deadlock',
    )
  })

  await t.test('calls keep their history and lose the link', async (t) => {
    const person = await add({})
    const link = { id: newId<'call'>(), sessionId: newId<'session'>(), personId: person.id }
    const call = { ...link, accountId, workerId, direction: 'inbound', transport: 'webrtc', progress: 'completed' }
    await sql`insert into calls ${sql({ ...call, customer: sql.json({ type: 'lead' }), snapshot: sql.json({}) })}`
    t.equal(await deletePerson(sql, other.accountId, person.id), false)
    t.equal(await deletePerson(sql, accountId, person.id), true)
    t.equal(await deletePerson(sql, accountId, person.id), false)
    t.same(await sql`select person_id, customer from calls where id = ${call.id}`, [
      { personId: null, customer: { type: 'lead' } },
    ])
  })
})

test('the search agrees with a plain reading of its filters, page by page', async (t) => {
  const { sql } = await openTestDatabase(t)
  const { accountId, workerId } = await createTenant(sql)
  const random = createRandom(7)
  const words = ['Ada', 'Grace', '100%', 'a_b', 'back\\slash', "O'Hara", 'Müller', 'hopper']
  const requests = Array.from({ length: 60 }, (_, index): PersonRequest => ({
    type: random.pick(['lead', 'customer', 'phone_contact'] as const),
    firstName: random.pick(words),
    lastName: random.pick(words),
    email: random.pick([null, 'Ada@Example.com', 'grace@example.com']),
    phoneNumber: random.pick([null, '+4930123456', '+4930654321']),
    companyName: random.pick([null, 'Acme', 'a_c']),
    externalId: `e${index}`,
    tags: random.pick([[], ['vip'], ['vip', 'new']]),
    workerId: random.pick([null, workerId]),
  }))
  const all = await createPersons(sql, { accountId, requests, newId, now: start })
  const lower = (text: string | null | undefined) => text?.toLowerCase()
  const expected = (query: PersonQuery): PersonId[] =>
    all
      .filter((person) => {
        const { firstName, lastName, email, phoneNumber, companyName } = person
        const text = [firstName, lastName, email, phoneNumber, companyName].filter((part) => part !== null).join(' ')
        const found = (query.query ?? '').split(' ').every((word) => lower(text)?.includes(word.toLowerCase()))
        const same = (key: 'type' | 'workerId' | 'phoneNumber' | 'externalId') =>
          query[key] === undefined || query[key] === person[key]
        return (
          found &&
          same('type') &&
          same('workerId') &&
          same('phoneNumber') &&
          same('externalId') &&
          (query.tag === undefined || person.tags.includes(query.tag)) &&
          (query.email === undefined || lower(query.email) === lower(person.email))
        )
      })
      .map(({ id }) => id)
      .toReversed()

  for (let round = 0; round < 40; round++) {
    const filters = {
      ...(random.below(3) === 0 && { type: random.pick(['lead', 'customer']) }),
      ...(random.below(4) === 0 && { workerId }),
      ...(random.below(4) === 0 && { phoneNumber: '+4930123456' }),
      ...(random.below(4) === 0 && { email: 'ADA@example.COM' }),
      ...(random.below(8) === 0 && { externalId: `e${random.below(60)}` }),
      ...(random.below(4) === 0 && { tag: random.pick(['vip', 'new', 'none']) }),
      ...(random.below(2) === 0 && {
        query: random.pick(['ada', 'ADA grace', '%', '_', '\\', "o'hara müller", '4930123', 'acme', 'a_c', '  ', '']),
      }),
    }
    const limit = 1 + random.below(30)
    const found: PersonFacts[] = []
    let query: PersonQuery | null = PersonQuery.parse({ ...filters, limit: String(limit) })
    while (query) {
      const rows: PersonFacts[] = await listPersons(sql, accountId, query)
      found.push(...rows.slice(0, limit))
      query = rows.length > limit ? { ...query, cursor: found.at(-1)?.id } : null
    }
    t.same(
      found.map(({ id }) => id),
      expected(PersonQuery.parse(filters)),
      JSON.stringify(filters),
    )
  }
  t.same(await listPersons(sql, accountId, PersonQuery.parse({ workerId: 'nobody' })), [], 'no id, nobody')
})

test('a cursor is an id, and nothing else is taken for one', (t) => {
  const id = newId<'person'>()
  t.equal(cursorOf(Paging.parse({ cursor: id })), toId(id))
  t.equal(cursorOf(Paging.parse({})), null)
  for (const cursor of ['', 'x', '1 or 1=1']) t.notOk(Paging.safeParse({ cursor }).success)
  t.end()
})
