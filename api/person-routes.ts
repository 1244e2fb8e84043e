/** Owns the routes of persons. docs/contract/rest.md "Persons". */
import { notFound } from '../model/problem.ts'
import { createRoute, z } from '@hono/zod-openapi'
import { toPage } from '../model/paging.ts'
import { Person, PersonBatch, PersonChange, PersonPage, PersonQuery, PersonRequest, toPerson } from '../model/person.ts'
import { changePerson, createPerson, createPersons, deletePerson, findPerson, listPersons } from '../store/persons.ts'
import { removalWithin } from '../store/removals.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, bodyOf, named, needs, noContentOf, refusing, security } from './openapi.ts'
import { readJson } from './read-json.ts'
import { withPlus } from './with-plus.ts'

const path = '/v1/accounts/{accountId}/persons'
const shared = { security, tags: ['Persons'] }
const withBody = { ...shared, middleware: [readJson] }
const accountParams = z.object({ accountId: z.string() })
const params = z.object({ accountId: z.string(), personId: z.string() })
const example = {
  type: 'lead',
  firstName: 'Ada',
  lastName: 'Lovelace',
  phoneNumber: '+4930123456',
  externalId: 'crm-7',
  tags: ['newsletter'],
}
const query = PersonQuery.extend({ phoneNumber: withPlus('number', PersonQuery.shape.phoneNumber) })
const namedPerson = named('Person', Person)

const list = createRoute({
  ...shared,
  method: 'get',
  path,
  operationId: 'listPersons',
  ...needs('read'),
  summary: 'List or search the persons of the account',
  request: { params: accountParams, query },
  responses: answerOf(named('PersonPage', PersonPage), 'Newest first; what all filters let through.'),
})

const create = createRoute({
  ...withBody,
  method: 'post',
  path,
  operationId: 'createPerson',
  ...needs('manage'),
  summary: 'Create a person',
  request: { params: accountParams, body: bodyOf(named('PersonRequest', PersonRequest), example) },
  ...refusing('CONFLICT'),
  responses: answerOf(namedPerson, 'The person.'),
})

const createBatch = createRoute({
  ...withBody,
  method: 'post',
  path: `${path}/batch`,
  operationId: 'createPersons',
  ...needs('manage'),
  summary: 'Create up to 100 persons, all or none',
  request: { params: accountParams, body: bodyOf(named('PersonBatch', PersonBatch), { persons: [example] }) },
  ...refusing('CONFLICT'),
  responses: answerOf(z.array(namedPerson), 'The persons in the order they were sent.'),
})

const get = createRoute({
  ...shared,
  method: 'get',
  path: `${path}/{personId}`,
  operationId: 'getPerson',
  ...needs('read'),
  summary: 'Get a person',
  request: { params },
  responses: answerOf(namedPerson, 'The person.'),
})

const change = createRoute({
  ...withBody,
  method: 'patch',
  path: `${path}/{personId}`,
  operationId: 'changePerson',
  ...needs('manage'),
  summary: 'Change a person',
  description: 'What is not named stays; null takes a value away; tags are replaced whole.',
  request: { params, body: bodyOf(named('PersonChange', PersonChange)) },
  ...refusing('CONFLICT'),
  responses: answerOf(namedPerson, 'The person as it is now.'),
})

const remove = createRoute({
  ...shared,
  method: 'delete',
  path: `${path}/{personId}`,
  operationId: 'deletePerson',
  ...needs('manage'),
  summary: 'Delete a person',
  description: 'Calls keep their history and lose the link.',
  request: { params },
  responses: noContentOf('It is gone.'),
})

export function addPersonRoutes(app: Api, { sql, clock, newId }: ApiDeps): void {
  app.openapi(list, async (c) => {
    const query = c.req.valid('query')
    const rows = await listPersons(sql, c.get('accountId'), query)
    return c.json(toPage(rows, query.limit, toPerson), 200)
  })
  app.openapi(create, async (c) => {
    const person = { accountId: c.get('accountId'), request: c.req.valid('json'), newId, now: clock.now() }
    return c.json(toPerson(await createPerson(sql, person)), 200)
  })
  app.openapi(createBatch, async (c) => {
    const { persons: requests } = c.req.valid('json')
    const persons = await createPersons(sql, { accountId: c.get('accountId'), requests, newId, now: clock.now() })
    return c.json(persons.map(toPerson), 200)
  })
  app.openapi(get, async (c) => {
    const person = existing(await findPerson(sql, c.get('accountId'), idOf<'person'>(c.req.valid('param').personId)))
    return c.json(toPerson(person), 200)
  })
  app.openapi(change, async (c) => {
    const personId = idOf<'person'>(c.req.valid('param').personId)
    const changed = { accountId: c.get('accountId'), personId, change: c.req.valid('json'), now: clock.now() }
    const person = existing(await changePerson(sql, changed))
    return c.json(toPerson(person), 200)
  })
  app.openapi(remove, async (c) => {
    const personId = idOf<'person'>(c.req.valid('param').personId)
    if (!(await deletePerson(sql, c.get('accountId'), personId, removalWithin))) throw notFound()
    return c.body(null, 204)
  })
}
