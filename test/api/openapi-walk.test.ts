/** The OpenAPI document: that it is a good one, and that the API does what it says. Walks every operation, so that no new one is forgotten. */
import { Validator } from '@cfworker/json-schema'
import { Validator as DocumentValidator } from '@seriousme/openapi-schema-validator'
import { test } from 'tap'
import type { AccountId, CallId } from '../../model/ids.ts'
import { toPhoneCall } from '../../model/phone-call.ts'
import type { CallRow } from '../../store/call-rows.ts'
import { findCall } from '../../store/calls.ts'
import { follow, type Document, type Operation, type Schema } from '../scenes/api-operations.ts'
import { createAsk } from '../scenes/seeded-api.ts'
import { goodRequestOf, openWholeApi, pathOf, type SeededAccount } from '../scenes/whole-api.ts'

/** What reads comes first, what takes away last, and parts before their whole. */
const order = (a: Operation, b: Operation): number => {
  // Who is erased cannot be changed any more.
  const rank = ({ id, method }: Operation) =>
    id === 'erasePerson' ? 2.5 : ['get', 'post', 'patch', 'delete'].indexOf(method)
  return rank(a) - rank(b) || b.path.length - a.path.length
}

const complaintsAbout = (document: Document) => (schema: Schema, value: unknown) =>
  new Validator({ ...schema, components: document.components } as object, '2020-12', false).validate(value).errors

const goodStatusOf = ({ id, method }: Pick<Operation, 'id' | 'method'>): string => {
  if (id === 'openSignaling') return '101'
  return method === 'delete' ? '204' : '200'
}

test('the OpenAPI document', async (t) => {
  const whole = await openWholeApi(t)
  const { document, operations } = whole
  const complaintsOf = complaintsAbout(document)

  await t.test('is valid OpenAPI 3.1', async (t) => {
    const checked = await new DocumentValidator().validate(structuredClone(document) as never)
    t.same(checked.errors ?? [], [])
    t.ok(checked.valid)
  })

  await t.test('names every operation once, in camelCase, with a tag and a summary', (t) => {
    const ids = operations.map(({ id }) => id)
    t.ok(ids.length > 45)
    t.equal(new Set(ids).size, ids.length)
    for (const { id, described } of operations) {
      t.match(id, /^[a-z][A-Za-z]+$/)
      t.equal(described.tags?.length, 1, `${id} has one tag`)
      t.match(described.summary, /^[A-Z].+[^.]$/, `${id} has a summary`)
    }
    t.end()
  })

  await t.test('tells of each operation what it may answer', (t) => {
    for (const { id, method, path, open, body, parameters, described } of operations) {
      const answers = Object.keys(described.responses)
      const expected = [
        goodStatusOf({ id, method }),
        ...(body || parameters.some((parameter) => parameter.in !== 'path') ? ['400'] : []),
        ...(open ? [] : ['401']),
        ...(path.includes('{') ? ['404'] : []),
        ...(body ? ['413', '415'] : []),
        '429',
        '500',
        '503',
        'default',
      ]
      const missing = expected.filter((status) => !answers.includes(status))
      t.same(missing, [], id)
    }
    t.end()
  })

  await t.test('every example in it keeps its schema', (t) => {
    const contents = operations.flatMap(({ id, described }) =>
      [described.requestBody, ...Object.values(described.responses)].flatMap((part) =>
        Object.values(part?.content ?? {}).map((content) => ({ id, ...content })),
      ),
    )
    const examples = contents.filter(({ example }) => example !== undefined)
    t.ok(examples.length > 10)
    for (const { id, schema, example } of examples) t.same(complaintsOf(schema, example), [], `an example of ${id}`)
    t.end()
  })

  await t.test('only health, the signed links and the socket of a token ask for no key', (t) => {
    t.same(operations.flatMap(({ id, open }) => (open ? [id] : [])).toSorted(), [
      'downloadRecording',
      'getHealth',
      'getReadiness',
      'openSignaling',
    ])
    t.end()
  })

  await t.test('creations of calls take an Idempotency-Key', (t) => {
    const taking = operations.filter(({ parameters }) => parameters.some(({ name }) => name === 'Idempotency-Key'))
    t.same(taking.map(({ id }) => id).toSorted(), ['createPhoneCall', 'createWebCall'])
    t.end()
  })
})

const addPerson = async (ask: ReturnType<typeof createAsk>, { accountId }: SeededAccount['ids']) => {
  const json = { type: 'lead', firstName: 'Ada', lastName: 'Lovelace' }
  return (await ask(`/v1/accounts/${accountId}/persons`, { method: 'POST', json })).json as { id: string }
}

/** What answers with no JSON. */
const files = ['downloadRecording', 'getPhoneCallCapture']

const subscribing = (accountId: string) =>
  [
    `/v1/accounts/${accountId}/webhook-subscriptions`,
    { method: 'POST', json: { eventType: '*', url: 'https://hooks.example' } },
  ] as const

test('every operation of the document answers as the document says, and no log line tells a secret or what is personal', async (t) => {
  const { document, operations, own, sql, deps, lines } = await openWholeApi(t)
  // Nothing runs here that could be hung up or paused, and nothing is over that could be processed again.
  const hangUp = async (accountId: AccountId, callId: CallId) =>
    toPhoneCall((await findCall(sql, accountId, callId)) as CallRow)
  const ask = createAsk(
    {
      ...deps,
      endCall: { ...deps.endCall, hangUp },
      processAgain: hangUp,
      pauseRecording: { pause: hangUp, resume: hangUp },
      captureCall: async (_accountId, callId, { rtp }) => ({ callId, rtp, until: new Date(0).toISOString() }),
    },
    own.key,
  )
  const link = (await ask(`/v1/accounts/${own.ids['accountId']}/phone-calls/${own.ids['phoneCallId']}/audio/url`)).json
  const complaintsOf = complaintsAbout(document)

  // The socket is the gateway's: test/gateway/signaling.test.ts.
  for (const operation of operations.filter(({ id }) => id !== 'openSignaling').toSorted(order)) {
    const { id, method, path, described } = operation
    // Nobody deletes a call that is not over, or a worker that has calls to come, or erases a person who has.
    if (['deletePhoneCall', 'deleteWorker', 'erasePerson'].includes(id))
      await sql`update calls set outcome = 'canceled', progress = 'canceled', finished = true where outcome is null`
    // Who is erased is there no more.
    const personId = id === 'deletePerson' ? (await addPerson(ask, own.ids)).id : own.ids['personId']
    const target =
      id === 'downloadRecording'
        ? new URL(link.url).pathname + new URL(link.url).search
        : pathOf(operation, { ...own.ids, personId: personId ?? '' })
    const answer = await ask(target, goodRequestOf(document, operation, own))
    t.equal(answer.status, method === 'delete' ? 204 : 200, `${method} ${path}: ${answer.text.slice(0, 200)}`)
    const content = described.responses[answer.status]?.content?.['application/json']
    if (!content) {
      t.ok(method === 'delete' || files.includes(id), `${id} has an answer`)
      continue
    }
    t.match(answer.headers.get('content-type'), /^application\/json/)
    t.same(complaintsOf(content.schema, answer.json), [], `${id} answers what the document says`)
    t.same(unknownFields(answer.json, content.schema), [], `${id} answers nothing else`)
  }
  const { signingSecret } = (await ask(...subscribing(own.ids['accountId'] ?? ''))).json
  t.ok(lines.length > operations.length && signingSecret.startsWith('whsec_'))
  for (const { message, fields } of lines) {
    const told = JSON.stringify([message, { ...fields, personal: null }])
    for (const secret of [own.key, signingSecret, 'whsec_', '4930123456', '203.0.113.5', '192.0.2.7'])
      t.notOk(told.includes(secret), `${message} tells ${secret}`)
  }

  /** Paths of what an answer has and its schema does not know. */
  function unknownFields(value: unknown, given: Schema, at = ''): string[] {
    const schema = follow(document, given)
    if (Array.isArray(value))
      return value.flatMap((item, index) => unknownFields(item, schema.items ?? {}, `${at}.${index}`))
    if (typeof value !== 'object' || value === null || !schema.properties || schema.additionalProperties) return []
    return Object.entries(value).flatMap(([name, field]) => {
      const known = schema.properties?.[name]
      return known ? unknownFields(field, known, `${at}.${name}`) : [`${at}.${name}`]
    })
  }
})
