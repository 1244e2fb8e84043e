/** docs/contract/rest.md "Persons" and "Customers" over REST: numbers in any spelling, searches, and the person that a call is linked to. */
import { test } from 'tap'
import { openWholeApi } from '../scenes/whole-api.ts'

test('numbers and searches of persons, and customers of calls', async (t) => {
  const { ask, own, other, sql } = await openWholeApi(t)
  const account = `/v1/accounts/${own.ids['accountId']}`
  const post = (path: string, json: object) => ask(`${account}/${path}`, { method: 'POST', json })
  const find = (query: string) => ask(`${account}/persons?${query}`)
  const namesOf = async (query: string) =>
    ((await find(query)).json.data as { firstName: string }[]).map(({ firstName }) => firstName)
  const refusalIn = ({ status, json }: Awaited<ReturnType<typeof ask>>) => [
    status,
    json.type,
    ...(json.issues ?? []).map(({ path }: { path: string }) => path),
  ]
  const person = { type: 'lead', firstName: 'Jürgen', lastName: 'Müller' }
  await sql`update accounts set config = config || '{"homeCountry": "DE"}' where id = ${own.ids['accountId'] ?? ''}`

  await t.test('a number in any spelling is kept as E.164, and found in any', async (t) => {
    const { status, json } = await post('persons', { ...person, phoneNumber: '030 / 777 666-5' })
    t.equal(status, 200)
    t.equal(json.phoneNumber, '+49307776665')
    const changed = await ask(`${account}/persons/${json.id}`, {
      method: 'PATCH',
      json: { phoneNumber: '(0170) 765 4321' },
    })
    t.equal(changed.json.phoneNumber, '+491707654321')
    for (const spelling of [
      '%2B491707654321',
      '+491707654321',
      '%2B49%20170-7654321',
      '0170%207654321',
      '0049%20170%207654321',
    ])
      t.same(await namesOf(`phoneNumber=${spelling}`), ['Jürgen'], spelling)
    for (const query of ['+49 170 7654321', '0170/7654321', '7654321', 'MULLER', 'jurgen müll', 'ürg'])
      t.same(await namesOf(`query=${encodeURIComponent(query)}`), ['Jürgen'], query)
  })

  await t.test('what is no number is a 400 that names its field, in a batch its place', async (t) => {
    for (const phoneNumber of ['hello', '110', '+999123456789', '+49 30 123456 ext. 7', '', '4930123456', '+49\u0000'])
      t.same(refusalIn(await post('persons', { ...person, phoneNumber })), [400, 'VALIDATION_FAILED', 'phoneNumber'])
    const persons = [person, { ...person, phoneNumber: '110' }]
    t.same(refusalIn(await post('persons/batch', { persons })), [400, 'VALIDATION_FAILED', 'persons.1.phoneNumber'])
    t.same(refusalIn(await find('phoneNumber=110')), [400, 'VALIDATION_FAILED', 'phoneNumber'])
  })

  await t.test('a query is text, and nothing else', async (t) => {
    t.same(refusalIn(await find('query=a%00b')), [400, 'VALIDATION_FAILED', 'query'])
    t.same(refusalIn(await find(`query=${'x'.repeat(10_000)}`)), [400, 'VALIDATION_FAILED', 'query'])
    for (const query of ['%', '_', '\\', "' or 1=1 --", '"', '(', '+', '\u0301', '\ud800', 'a '.repeat(250)])
      t.equal((await find(`query=${encodeURIComponent(query.toWellFormed())}`)).status, 200, query.slice(0, 20))
    t.same(await namesOf('query=%25'), [], 'a wildcard stands for itself')
    t.same(await namesOf('query=M%25ller'), [])
  })

  await t.test('the customer of a call is a person from then on, of this account alone', async (t) => {
    const customer = { type: 'lead', externalId: 'crm-81', firstName: 'Grace', phoneNumber: '0170 1111111' }
    const { json: session } = await post('web-calls', { workerId: own.ids['workerId'], customer })
    const { json: call } = await ask(`${account}/phone-calls/${session.callId}`)
    const { json: stored } = await ask(`${account}/persons/${call.customer.id}`)
    t.match(stored, { ...customer, phoneNumber: '+491701111111' })
    t.match(call.customer, { ...customer, phoneNumber: '+491701111111', accountId: own.ids['accountId'] })
    t.same(await namesOf('externalId=crm-81'), ['Grace'])
    const elsewhere = await ask(`/v1/accounts/${other.ids['accountId']}/persons?externalId=crm-81`, { key: other.key })
    t.same(elsewhere.json.data, [])
  })
})
