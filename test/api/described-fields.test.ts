/** The OpenAPI document tells of every field what it is, and of every operation which errors it may answer. */
import { test } from 'tap'
import { problemStatus, type ProblemType } from '../../model/problem.ts'
import type { Document, Operation, Schema } from '../scenes/api-operations.ts'
import { listedErrors } from '../scenes/listed-errors.ts'
import { openWholeApi } from '../scenes/whole-api.ts'

type Told = Schema & { readonly description?: string; readonly default?: unknown; readonly anyOf?: readonly Schema[] }
type Field = { readonly way: string; readonly schema: Told }

/** Of a schema every field inside it, with the way to it. */
function fieldsOf(given: Schema, at: string): Field[] {
  const { properties = {}, items, ...others } = given as Told & Record<string, unknown>
  const own = Object.entries(properties).flatMap(([name, field]) => {
    const way = `${at}.${name}`
    return [{ way, schema: field as Told }, ...fieldsOf(field, way)]
  })
  const parts = ['anyOf', 'oneOf', 'allOf'].flatMap((kind) => (others[kind] ?? []) as Schema[])
  return [...own, ...[...(items ? [items] : []), ...parts].flatMap((part) => fieldsOf(part, at))]
}

/** Of components, and of what stands in operations and webhooks themselves. */
function allFields({ components, paths, webhooks }: Document): Field[] {
  const operations = [...Object.values(paths), ...Object.values(webhooks)].flatMap((item) => Object.values(item))
  const inline = operations.flatMap(({ operationId, requestBody, responses }) =>
    [requestBody, ...Object.values(responses)].flatMap((part) =>
      Object.values(part?.content ?? {}).flatMap(({ schema }) => fieldsOf(schema, operationId)),
    ),
  )
  return [...Object.entries(components.schemas).flatMap(([name, schema]) => fieldsOf(schema, name)), ...inline]
}

test('the document tells what each field is', async (t) => {
  const { document } = await openWholeApi(t)
  const fields = allFields(document)

  await t.test('every field of every schema has a description', (t) => {
    t.ok(fields.length > 400, `${fields.length} fields`)
    t.same(
      fields.flatMap(({ way, schema }) => (/^\S.{3,}\.$/s.test(schema.description ?? '') ? [] : [way])),
      [],
    )
    t.end()
  })

  await t.test('so has every parameter of a path, a query or a header', (t) => {
    const operations = [...Object.values(document.paths), ...Object.values(document.webhooks)].flatMap((item) =>
      Object.values(item),
    )
    const untold = operations.flatMap(({ operationId, parameters = [] }) =>
      parameters.flatMap((given) =>
        (given as { description?: string }).description?.endsWith('.') ? [] : [`${operationId} ${given.name}`],
      ),
    )
    t.same(untold, [])
    t.end()
  })

  await t.test('what is measured has its unit, and what is a time its form', (t) => {
    const unitOf = (way: string): RegExp | null => {
      if (way.endsWith('Ms')) return /millisecond/i
      if (/\.(duration|ringTimeout|firstSpeechTimeout|registerExpires)$/.test(way)) return /second/i
      return /(At|Since|Until)$|\.ts$/.test(way) && !way.endsWith('Change.scheduledAt') ? /ISO 8601/ : null
    }
    t.same(
      fields.flatMap(({ way, schema }) => (unitOf(way)?.test(schema.description ?? '') === false ? [way] : [])),
      [],
    )
    t.end()
  })

  await t.test('a default is named in words and as such; a change has none', (t) => {
    const defaults = fields.filter(({ schema }) => schema.default !== undefined)
    t.ok(defaults.length > 20)
    for (const { way, schema } of defaults) {
      t.match(schema.description, `Default: ${JSON.stringify(schema.default)}.`, way)
      t.notMatch(way, /^(\w+Change|WorkerRequestAnswer\.config)\.\w+$/, 'what is not named stays')
    }
    const told = Object.fromEntries(defaults.map(({ way, schema }) => [way, schema.default]))
    t.match(told, {
      'WorkerConfiguration.ringTimeout': 30,
      'WorkerConfiguration.firstSpeechTimeout': 4,
      'WorkerConfiguration.recordingChannelMode': 'mixed',
      'WebhookSubscriptionRequest.timeoutMs': 5000,
      'WebhookSubscriptionRequest.required': false,
      'TrunkRequest.registerExpires': 600,
    })
    t.end()
  })
})

const always = ['INTERNAL', 'RATE_LIMITED', 'SERVICE_UNAVAILABLE']

/** As docs/contract/rest.md "Errors" says it for every operation of this shape. */
const shapedErrors = ({ open, body, path, parameters }: Operation): string[] => [
  ...(body || parameters.some((parameter) => parameter.in !== 'path') ? ['VALIDATION_FAILED'] : []),
  ...(body ? ['INVALID_JSON', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'] : []),
  ...(open ? [] : ['UNAUTHORIZED', 'INSUFFICIENT_SCOPE']),
  ...(path.includes('{') ? ['NOT_FOUND'] : []),
]

/** Where the state of something, or something else, may be in the way. */
const conflicting =
  'cancelPhoneCall hangUpPhoneCall deletePhoneCall processPhoneCall pausePhoneCallRecording resumePhoneCallRecording capturePhoneCall resendWebhookDelivery createPerson createPersons changePerson erasePerson createWorker changeWorker ' +
  'changeUser removeUser createInvitation deleteWorker createDocument createTrunk createApiKey createWebhookSubscription'

/** What no shape tells. */
const ownErrors: Readonly<Record<string, readonly ProblemType[]>> = {
  createPhoneCall: [
    'WORKER_INACTIVE',
    'TELEPHONY_INTEGRATION_NOT_SETUP',
    'TELEPHONY_INTEGRATION_NOT_ADDED_TO_WORKER',
    'TELEPHONY_TRANSPORT_NOT_SUPPORTED',
    'TELEPHONY_SERVICE_PROVIDER_UNAVAILABLE',
    'CALL_SCRIPT_NOT_CONFIGURED',
    'IDEMPOTENCY_KEY_REUSED',
  ],
  createWebCall: ['WORKER_INACTIVE', 'WEB_CALL_CAPACITY_EXCEEDED', 'IDEMPOTENCY_KEY_REUSED'],
  callWorkerTool: ['INVALID_TOOL'],
  downloadRecording: ['UNAUTHORIZED', 'PRECONDITION_FAILED', 'RANGE_NOT_SATISFIABLE'],
  openSignaling: ['UNAUTHORIZED', 'ORIGIN_NOT_ALLOWED', 'UPGRADE_REQUIRED'],
  ...Object.fromEntries(conflicting.split(' ').map((id): [string, ProblemType[]] => [id, ['CONFLICT']])),
}

test('the document lists for each operation the errors that it may answer, by status and type', async (t) => {
  const { operations } = await openWholeApi(t)
  t.same(
    Object.keys(ownErrors).filter((id) => !operations.some((operation) => operation.id === id)),
    [],
  )
  for (const operation of operations) {
    const listed = listedErrors(operation)
    const expected = [...new Set([...always, ...shapedErrors(operation), ...(ownErrors[operation.id] ?? [])])]
    // A full account is the client's affair, a node under load is not.
    if (['createWebCall', 'openSignaling'].includes(operation.id)) expected.push('WEB_CALL_CAPACITY_EXCEEDED')
    t.same(Object.values(listed).flat().toSorted(), expected.toSorted(), operation.id)
    for (const [status, types] of Object.entries(listed))
      for (const type of types) {
        const usual = problemStatus[type as ProblemType]
        const isLoad = type === 'WEB_CALL_CAPACITY_EXCEEDED' && status === '503'
        t.equal(isLoad ? 503 : usual, Number(status), `${operation.id} ${type}`)
      }
  }
})
