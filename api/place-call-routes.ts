/** Owns the routes that place calls, end them, delete them and have them processed again. docs/contract/rest.md "Phone calls", "Cancel and hang up", "Deletion" and "Process again". */
import { notFound } from '../model/problem.ts'
import { createRoute, z } from '@hono/zod-openapi'
import { PhoneCall, PhoneCallRequest } from '../model/phone-call.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { OnceHeaders, onceOf } from './once.ts'
import { answerOf, bodyOf, named, needs, noContentOf, refusing, security } from './openapi.ts'
import { phoneCallExample } from './phone-call-routes.ts'
import { readJson } from './read-json.ts'
import { askedBy } from './standard-headers.ts'

const phoneCalls = '/v1/accounts/{accountId}/phone-calls'
const namedCall = named('PhoneCall', PhoneCall)
const callParams = z.object({ accountId: z.string(), phoneCallId: z.string() })

const shared = { security, tags: ['Phone calls'] }

const create = createRoute({
  ...shared,
  method: 'post',
  path: phoneCalls,
  operationId: 'createPhoneCall',
  ...needs('calls'),
  summary: 'Place a call now or at a given time',
  description:
    "Without scheduledAt, or with a past one, the call is queued now. The number is phoneNumber, else the customer's when it is one. The worker's outboundPhoneNumber is shown to the callee; a call without both numbers ends as missing_phone_numbers. A 400 names the one thing to mend first in type.",
  middleware: [readJson],
  request: {
    params: z.object({ accountId: z.string() }),
    headers: OnceHeaders,
    body: bodyOf(named('PhoneCallRequest', PhoneCallRequest), {
      workerId: phoneCallExample.workerId,
      phoneNumber: '+4930123456',
      context: 'Asked for a call back about the order of last week.',
      customer: { type: 'customer', firstName: 'Ada', externalId: 'crm-7' },
      scheduledAt: '2026-12-01T09:30:00+01:00',
    }),
  },
  ...refusing(
    'WORKER_INACTIVE',
    'TELEPHONY_INTEGRATION_NOT_SETUP',
    'TELEPHONY_INTEGRATION_NOT_ADDED_TO_WORKER',
    'TELEPHONY_TRANSPORT_NOT_SUPPORTED',
    'CALL_SCRIPT_NOT_CONFIGURED',
    'TELEPHONY_SERVICE_PROVIDER_UNAVAILABLE',
  ),
  responses: answerOf(namedCall, 'The call as it begins.', phoneCallExample),
})

const cancel = createRoute({
  ...shared,
  method: 'post',
  path: `${phoneCalls}/{phoneCallId}/cancel`,
  operationId: 'cancelPhoneCall',
  ...needs('calls'),
  summary: 'Cancel a call that has not been dialed yet',
  description:
    'Also a web call that nobody has joined. A canceled call sends no call.ended. 409 once it runs or is over.',
  request: { params: callParams },
  ...refusing('CONFLICT'),
  responses: answerOf(namedCall, 'The call, canceled.'),
})

const hangUp = createRoute({
  ...shared,
  method: 'post',
  path: `${phoneCalls}/{phoneCallId}/hangup`,
  operationId: 'hangUpPhoneCall',
  ...needs('calls'),
  summary: 'Hang up a call that is going on',
  description: '409 while it is not dialed or joined yet, and once it is over.',
  request: { params: callParams },
  ...refusing('CONFLICT'),
  responses: answerOf(namedCall, 'The call, ended or about to.'),
})

const processAgain = createRoute({
  ...shared,
  method: 'post',
  path: `${phoneCalls}/{phoneCallId}/post-processing`,
  operationId: 'processPhoneCall',
  ...needs('calls'),
  summary: 'Process a call that is over once more',
  description:
    'Dimensions, evidence, next action and summary are found anew, as the worker is configured by now, and replace those of before; what the call itself was given stays as it was. No event is sent. 409 while the call is not over or is being processed, and for a call without an answer or a transcript.',
  request: { params: callParams },
  ...refusing('CONFLICT'),
  responses: answerOf(namedCall, 'The call, with postProcessingStatus in_progress.'),
})

const remove = createRoute({
  ...shared,
  method: 'delete',
  path: `${phoneCalls}/{phoneCallId}`,
  operationId: 'deletePhoneCall',
  ...needs('manage'),
  summary: 'Delete a call that is over',
  description:
    'With its transcript, log, recording, and the deliveries that were not sent yet. 409 until it is over and processed.',
  request: { params: callParams },
  ...refusing('CONFLICT'),
  responses: noContentOf('It is gone.'),
})

export function addPlaceCallRoutes(app: Api, { createPhoneCall, endCall, deleteCall, ...deps }: ApiDeps): void {
  app.openapi(create, async (c) => {
    const once = await onceOf(c, create.operationId, c.req.valid('header')['Idempotency-Key'])
    const asked = askedBy(c.req.raw, c.env)
    return c.json(await createPhoneCall(c.get('accountId'), c.req.valid('json'), once, asked), 200)
  })
  app.openapi(cancel, async (c) =>
    c.json(await endCall.cancel(c.get('accountId'), idOf<'call'>(c.req.valid('param').phoneCallId)), 200),
  )
  app.openapi(hangUp, async (c) =>
    c.json(await endCall.hangUp(c.get('accountId'), idOf<'call'>(c.req.valid('param').phoneCallId)), 200),
  )
  app.openapi(processAgain, async (c) =>
    c.json(await deps.processAgain(c.get('accountId'), idOf<'call'>(c.req.valid('param').phoneCallId)), 200),
  )
  app.openapi(remove, async (c) => {
    if (!(await deleteCall(c.get('accountId'), idOf<'call'>(c.req.valid('param').phoneCallId)))) throw notFound()
    return c.body(null, 204)
  })
}
