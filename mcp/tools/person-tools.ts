/** Owns the tools of persons: leads, customers and the contacts of workers. docs/contract/mcp.md "Person". */
import { z } from 'zod'
import type { Clock } from '../../model/clock.ts'
import type { NewId } from '../../model/ids.ts'
import { FilterText } from '../../model/paging.ts'
import {
  PersonQuery,
  PersonRequest,
  PersonType,
  toPerson,
  type PersonChange,
  type PersonFacts,
} from '../../model/person.ts'
import {
  changePerson,
  createPerson,
  createPersons,
  deletePerson,
  findPerson,
  listPersons,
} from '../../store/persons.ts'
import { removalWithin } from '../../store/removals.ts'
import type { Sql } from '../../store/sql.ts'
import { camelFields, snakeFields } from '../snake-case.ts'
import { idGiven, noSuch } from './reach.ts'
import { mostOf, SearchLimit } from './search-limit.ts'
import { adminPrefix, defineMcpTool, hints, type McpTool } from './tool.ts'

export type PersonToolDeps = {
  readonly sql: Sql
  readonly clock: Pick<Clock, 'now'>
  readonly newId: NewId
}

const { shape } = PersonRequest
type Field = keyof typeof shape
const fieldNames = Object.keys(shape) as Field[]
const maxOffset = 1_000_000

/** What a new person may be without is left out, or null, which says the same. */
const newFields = snakeFields(Object.fromEntries(fieldNames.map((name) => [name, plain(shape[name])]))) as Record<
  string,
  z.ZodType
>
/** Null takes a value away. */
const changedFields = snakeFields(PersonRequest.partial().shape) as Record<string, z.ZodType>

function plain(field: z.ZodType): z.ZodType {
  if (field instanceof z.ZodOptional) return plain(field.unwrap() as z.ZodType).optional()
  return field instanceof z.ZodNullable ? (field.unwrap() as z.ZodType) : field
}

const required: readonly string[] = ['type', 'first_name', 'last_name', 'tags']
const toldFields = ['person_id', ...Object.keys(newFields), 'created_at', 'updated_at']
/** What is not known of a person is not told. */
const Person = z.object({
  ...Object.fromEntries(
    toldFields.map((name) => [
      name,
      /^person_id$|_at$/.test(name) || required.includes(name) ? z.string() : z.string().optional(),
    ]),
  ),
  type: PersonType,
  tags: z.array(z.string()),
})
const Persons = z.object({
  persons: z.array(Person),
  has_more: z.boolean().describe('There are more: name an offset, or search for less.'),
})

const PersonId = z.string().describe('The id of the person, as list_persons and search_persons tell it.')
const newPerson = z.strictObject(newFields)
const limit = z.number().int().min(1).max(100).default(20)

const reading = ({ sql }: PersonToolDeps): McpTool[] => [
  defineMcpTool({
    name: `${adminPrefix}list_persons`,
    title: 'List persons',
    description: 'Lists leads, customers and telephone contacts, newest first.',
    annotations: hints.reads,
    scopes: ['account_admin'],
    input: z.strictObject({
      type: PersonType.optional(),
      worker_id: FilterText.optional().describe('Only those attached to this worker.'),
      limit,
      offset: z.number().int().min(0).max(maxOffset).default(0).describe('So many of the newest are left out.'),
    }),
    output: Persons,
    run: async ({ type, worker_id: workerId, limit, offset }, { access }) =>
      pageOf(await listPersons(sql, access.accountId, { type, workerId, limit, offset }), limit),
  }),
  defineMcpTool({
    name: `${adminPrefix}search_persons`,
    title: 'Search persons',
    description:
      'Finds persons by words of their name, e-mail address, telephone number or company, or by one of them exactly. Search before create_person to avoid duplicates.',
    annotations: hints.reads,
    scopes: ['account_admin'],
    input: z.strictObject({
      query: PersonQuery.shape.query.describe('All of its words must occur, in any accents and case.'),
      phone_number: PersonQuery.shape.phoneNumber.describe('Exactly, in any spelling.'),
      email: PersonQuery.shape.email.describe('Exactly, in any case.'),
      external_id: PersonQuery.shape.externalId.describe('Exactly.'),
      type: PersonType.optional(),
      limit: SearchLimit,
    }),
    output: Persons,
    async run(asked, { access }) {
      const limit = mostOf(asked.limit)
      return pageOf(await listPersons(sql, access.accountId, camelFields({ ...asked, limit }) as PersonQuery), limit)
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}get_person_details`,
    title: 'Get a person',
    description: 'The full profile of a person: contact details, address, tags and notes.',
    annotations: hints.reads,
    scopes: ['account_admin'],
    input: z.strictObject({ person_id: PersonId }),
    output: Person,
    async run({ person_id }, { access }) {
      const person = await findPerson(sql, access.accountId, personGiven(person_id))
      if (!person) throw noSuch('person_id', 'person')
      return { content: toContent(person) }
    },
  }),
]

const writing = ({ sql, clock, newId }: PersonToolDeps): McpTool[] => [
  defineMcpTool({
    name: `${adminPrefix}create_person`,
    title: 'Create a person',
    description:
      'Creates a lead, a customer or a telephone contact. Search before, to avoid duplicates. A phone_contact needs worker_id, so that the worker can pass callers on to it.',
    annotations: hints.creates,
    scopes: ['account_admin'],
    input: newPerson,
    output: Person,
    async run(given, { access: { accountId } }) {
      const request = camelFields(given) as PersonRequest
      return { content: toContent(await createPerson(sql, { accountId, request, newId, now: clock.now() })) }
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}create_persons_batch`,
    title: 'Create persons',
    description: 'Creates up to 100 persons: all of them, or none when one entry is not valid.',
    annotations: hints.creates,
    scopes: ['account_admin'],
    input: z.strictObject({ persons: z.array(newPerson).min(1).max(100) }),
    output: z.object({ persons: z.array(Person) }),
    async run({ persons }, { access: { accountId } }) {
      const requests = persons.map((person) => camelFields(person) as PersonRequest)
      const created = await createPersons(sql, { accountId, requests, newId, now: clock.now() })
      return { content: { persons: created.map(toContent) } }
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}update_person`,
    title: 'Change a person',
    description:
      'Changes a person; only what is named changes, and null takes a value away. tags replaces the whole set.',
    annotations: hints.changes,
    scopes: ['account_admin'],
    input: z.strictObject({ ...changedFields, person_id: PersonId }),
    output: Person,
    async run({ person_id, ...named }, { access: { accountId } }) {
      const change = camelFields(named) as PersonChange
      const changed = { accountId, personId: personGiven(person_id), change, now: clock.now() }
      const person = await changePerson(sql, changed)
      if (!person) throw noSuch('person_id', 'person')
      return { content: toContent(person) }
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}delete_person`,
    title: 'Delete a person',
    description: 'Deletes a person for good. Their calls are kept, and lose the link.',
    annotations: hints.destroys,
    scopes: ['account_admin'],
    input: z.strictObject({ person_id: PersonId }),
    output: z.object({ person_id: z.string(), deleted: z.boolean() }),
    async run({ person_id }, { access: { accountId } }) {
      const id = personGiven(person_id)
      if (!(await deletePerson(sql, accountId, id, removalWithin))) throw noSuch('person_id', 'person')
      return { content: { person_id: id, deleted: true } }
    },
  }),
]

/** In the order of the contract. */
export const personTools = (deps: PersonToolDeps): McpTool[] => [...reading(deps), ...writing(deps)]

const personGiven = (given: string) => idGiven<'person'>(given, 'person_id', 'person')

/** `rows` are one more than `limit` when there is more. */
const pageOf = (rows: readonly PersonFacts[], limit: number) => ({
  content: { persons: rows.slice(0, limit).map(toContent), has_more: rows.length > limit },
})

function toContent(person: PersonFacts): z.infer<typeof Person> {
  const { id, accountId: _, ...rest } = toPerson(person)
  return { person_id: id, ...snakeFields(rest) } as unknown as z.infer<typeof Person>
}
