/** Owns the routes that pause the recording of a running call. docs/contract/rest.md "Pausing a recording". */
import { createRoute, z } from '@hono/zod-openapi'
import { PhoneCall } from '../model/phone-call.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { answerOf, named, needs, refusing, security } from './openapi.ts'

const recording = '/v1/accounts/{accountId}/phone-calls/{phoneCallId}/recording'
const shared = {
  security,
  tags: ['Phone calls'],
  request: { params: z.object({ accountId: z.string(), phoneCallId: z.string() }) },
  ...refusing('CONFLICT'),
  responses: answerOf(named('PhoneCall', PhoneCall), 'The call, with its recordingState.'),
}

const pause = createRoute({
  ...shared,
  method: 'post',
  path: `${recording}/pause`,
  operationId: 'pausePhoneCallRecording',
  ...needs('calls'),
  summary: 'Pause the recording of a call',
  description:
    'Until it is resumed the recording has silence in place of both sides, and keys that are pressed are for the voice engine alone. Again, it changes nothing. 409 for a call that is not answered yet, is over or is not recorded.',
})

const resume = createRoute({
  ...shared,
  method: 'post',
  path: `${recording}/resume`,
  operationId: 'resumePhoneCallRecording',
  ...needs('calls'),
  summary: 'Go on with the recording of a call',
  description:
    'Again, or without a pause, it changes nothing. 409 for a call that is not answered yet, is over or is not recorded.',
})

export function addPauseRecordingRoutes(app: Api, { pauseRecording }: ApiDeps): void {
  app.openapi(pause, async (c) =>
    c.json(await pauseRecording.pause(c.get('accountId'), idOf<'call'>(c.req.valid('param').phoneCallId)), 200),
  )
  app.openapi(resume, async (c) =>
    c.json(await pauseRecording.resume(c.get('accountId'), idOf<'call'>(c.req.valid('param').phoneCallId)), 200),
  )
}
