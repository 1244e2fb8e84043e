/** docs/contract/rest.md "Customers": whom the creator of a call names is one person of the account, stored once, and linked to the call. */
import t, { test } from 'tap'
import type { CustomerInput } from '../../model/customer.ts'
import type { CallId } from '../../model/ids.ts'
import { PersonQuery, type PersonFacts, type PersonRequest } from '../../model/person.ts'
import { findCall } from '../../store/calls.ts'
import { createPerson, listPersons } from '../../store/persons.ts'
import { upsertCustomer } from '../../store/upsert-customer.ts'
import { blockedQueries } from '../scenes/blocked-queries.ts'
import { openCallNode, openShared } from '../scenes/call-node.ts'
import { createCallingTenant } from '../scenes/telephony.ts'
import { newId } from '../scenes/tenant.ts'

const opened = openShared(t)
const number = '+4930123456'

/** A tenant of the test's own, on the node of the file. */
async function open(t: { teardown(close: () => Promise<void>): unknown }) {
  const shared = await opened
  const { sql, clock } = shared
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const { accountId, workerId } = await createCallingTenant(sql)
  const scheduledAt = new Date(clock.now() + 3_600_000).toISOString()
  return {
    sql,
    accountId,
    phoneCall: async (customer: CustomerInput, over: { phoneNumber?: string } = {}) => {
      const call = await node.createPhoneCall(accountId, { workerId, customer, scheduledAt, ...over }, null)
      return { ...call, personId: (await findCall(sql, accountId, call.id as CallId))?.personId ?? null }
    },
    webCall: async (customer: CustomerInput) => {
      const { callId } = await node.createWebCall(accountId, { workerId, customer })
      const call = await findCall(sql, accountId, callId)
      return { customer: call?.customer ?? null, personId: call?.personId ?? null }
    },
    person: (request: Partial<PersonRequest> = {}, now = clock.now()) =>
      createPerson(sql, {
        accountId,
        request: { type: 'customer', firstName: 'Ada', lastName: 'Lovelace', ...request },
        newId,
        now,
      }),
    persons: (): Promise<PersonFacts[]> => listPersons(sql, accountId, PersonQuery.parse({ limit: 100 })),
  }
}

test('a new customer is stored with all that is told, and the call is linked to them', async (t) => {
  const { accountId, phoneCall, persons } = await open(t)
  const customer = {
    externalId: 'crm-7',
    type: 'lead',
    phoneNumber: '+49 (0)30 123456',
    firstName: 'Ada',
    email: 'ada@example.com',
    city: 'London',
    linkedInUrl: 'https://li.example/ada',
  } as const
  const call = await phoneCall(customer)
  const [person, ...others] = await persons()
  t.same(others, [])
  t.match(person, { ...customer, phoneNumber: number, lastName: '', accountId })
  t.equal(call.personId, person?.id)
  t.equal(call.toNumber, number, 'the number is read')
  t.same(call.customer, { ...customer, phoneNumber: number, accountId, id: person?.id })
  const again = await phoneCall(customer)
  t.equal(again.personId, person?.id)
  t.equal((await persons()).length, 1)
})

test('externalId goes before the number, and what is told is brought up to date, never by nothing', async (t) => {
  const { phoneCall, webCall, person, persons } = await open(t)
  const named = await person({
    externalId: 'crm-1',
    city: 'London',
    email: 'ada@example.com',
    phoneNumber: '+4930999999',
  })
  const numbered = await person({ phoneNumber: number, firstName: 'Bea' })
  const blank = { firstName: '', lastName: ' ', email: '', language: '' }
  const call = await webCall({ type: 'lead', externalId: 'crm-1', ...blank, city: 'Paris' })
  t.equal(call.personId, named.id)
  const known = { firstName: 'Ada', lastName: 'Lovelace', email: 'ada@example.com', city: 'Paris', type: 'lead' }
  t.match(call.customer, known, 'the call tells what is stored besides')
  t.match(
    (await persons()).find(({ id }) => id === named.id),
    { ...known, phoneNumber: '+4930999999' },
  )
  t.equal((await phoneCall({ type: 'customer' }, { phoneNumber: number })).personId, numbered.id, 'the dialed number')
  await phoneCall({ type: 'customer', externalId: 'crm-1' }, { phoneNumber: '+4930555555' })
  const ada = (await persons()).find(({ id }) => id === named.id)
  t.equal(ada?.phoneNumber, '+4930999999', 'another number that was dialed takes the place of none')
  const moved = await phoneCall({ type: 'customer', externalId: 'crm-1', phoneNumber: '+4930777777' })
  t.equal(moved.personId, named.id)
  t.equal((await persons()).find(({ id }) => id === named.id)?.phoneNumber, '+4930777777', 'what is told is')
  t.equal((await persons()).length, 2)
})

test('of two persons with one number the oldest is the customer, and a contact of a worker is none', async (t) => {
  const { webCall, person, persons } = await open(t)
  await person({ type: 'phone_contact', phoneNumber: number }, 1)
  const oldest = await person({ phoneNumber: number, externalId: 'crm-1' }, 2)
  const younger = await person({ phoneNumber: number }, 3)
  t.equal((await webCall({ type: 'customer', phoneNumber: '0049 30 123456' })).personId, oldest.id)
  const adopted = await webCall({ type: 'customer', phoneNumber: number, externalId: 'crm-2' })
  t.equal(adopted.personId, younger.id, 'another externalId is another person: one that has none yet')
  t.equal((await persons()).find(({ id }) => id === younger.id)?.externalId, 'crm-2')
  const third = await webCall({ type: 'customer', phoneNumber: number, externalId: 'crm-3' })
  t.notOk([oldest.id, younger.id].includes(third.personId as never))
  t.equal((await persons()).length, 4)
})

test('who could not be found again is not stored, and what is no number or address stays with the call', async (t) => {
  const { phoneCall, webCall, persons, accountId } = await open(t)
  const nobody = await webCall({ type: 'lead', firstName: 'Grace' })
  t.same(nobody, { customer: { type: 'lead', firstName: 'Grace' }, personId: null })
  const told = { type: 'lead', phoneNumber: 'extension 12, after nine' } as const
  t.match(await phoneCall(told), { customer: { ...told, id: null, accountId }, personId: null })
  t.same(await persons(), [])
  const call = await webCall({ type: 'lead', externalId: 'crm-9', email: 'at home', phoneNumber: 'none' })
  t.match(call.customer, { email: 'at home', phoneNumber: 'none' })
  t.match(await persons(), [{ externalId: 'crm-9', email: null, phoneNumber: null, firstName: '' }])
})

test('many calls at once with the same new customer make one person', async (t) => {
  const { webCall, phoneCall, persons } = await open(t)
  const byId = { type: 'lead', externalId: 'crm-race' } as const
  const byNumber = { type: 'lead', phoneNumber: number } as const
  const both = { type: 'lead', externalId: 'crm-both', phoneNumber: '+4930555555' } as const
  const calls = await Promise.all(
    [byId, byNumber, both].flatMap((customer) => [
      webCall(customer),
      phoneCall(customer, { phoneNumber: customer === byId ? '+4930777777' : number }),
      webCall(customer),
    ]),
  )
  const personIds = calls.map(({ personId }) => personId)
  for (const first of [0, 3, 6]) t.equal(new Set(personIds.slice(first, first + 3)).size, 1)
  t.equal((await persons()).length, 3)
})

test('whoever names a new customer waits for who is about to store the same one', async (t) => {
  const { sql, accountId, persons } = await open(t)
  const sent = { accountId, customer: { type: 'lead' }, phoneNumber: number, dialed: null, newId, now: 1 } as const
  const release = Promise.withResolvers<void>()
  const stored = Promise.withResolvers<string | undefined>()
  const first = sql.begin(async (tx) => {
    stored.resolve((await upsertCustomer(tx, sent))?.id)
    await release.promise
  })
  const personId = await stored.promise
  const second = sql.begin((tx) => upsertCustomer(tx, sent))
  await Promise.race([blockedQueries(sql, 1), second])
  release.resolve()
  await first
  t.equal((await second)?.id, personId)
  t.equal((await persons()).length, 1)
})

test('a number of one account is nobody in another', async (t) => {
  const [own, other] = [await open(t), await open(t)]
  const mine = await own.webCall({ type: 'lead', phoneNumber: number, externalId: 'crm-1' })
  const theirs = await other.webCall({ type: 'lead', phoneNumber: number, externalId: 'crm-1' })
  t.not(mine.personId, theirs.personId)
  t.same([(await own.persons()).length, (await other.persons()).length], [1, 1])
})
