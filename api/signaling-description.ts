/**
 * Owns how the OpenAPI document tells of the signaling socket: who may open it, every message in both directions, how it is closed. The socket
 * itself is the gateway's. docs/contract/signaling.md "Joining".
 */
import { z } from '@hono/zod-openapi'
import { ClientMessage, maxSignalingFrameBytes, ServerMessage } from '../model/signaling.ts'
import type { Api } from './deps.ts'
import { named, refusing } from './openapi.ts'

type Told = { readonly description: string; readonly example: Readonly<Record<string, unknown>> }

const sdp = 'v=0\r\no=- 4611731400430051336 2 IN IP4 127.0.0.1\r\n…'
const ts = '2026-01-01T12:00:05.000Z'

const ofClient: Readonly<Record<ClientMessage['type'], Told>> = {
  offer: {
    description:
      'Begins the sound of the call, and is answered by one `answer`. A further one with new ICE credentials restarts ICE; any other one is an `error` of the type CONFLICT.',
    example: { type: 'offer', sdp },
  },
  candidate: {
    description:
      'A candidate of the browser, as it finds it; null when there are no more. It may come before the answer.',
    example: {
      type: 'candidate',
      candidate: { candidate: 'candidate:1 1 udp 2113937151 192.0.2.7 54321 typ host', sdpMid: '0' },
    },
  },
  dtmf: {
    description: 'Presses keys, one after the other. Before there is sound they press nothing.',
    example: { type: 'dtmf', digits: '42#' },
  },
  text: {
    description:
      'Types to the agent, which answers as if it had been said: its turn in the transcript is what was typed. At most one a second, five after a pause.',
    example: { type: 'text', text: 'A table outside, please.' },
  },
  bye: {
    description: 'Hangs up. The service answers with its own `bye` and closes the socket.',
    example: { type: 'bye' },
  },
  ping: { description: 'Is answered with one `pong`.', example: { type: 'ping' } },
}

const ofService: Readonly<Record<ServerMessage['type'], Told>> = {
  ready: {
    description: 'The first message on every socket, also on one that was resumed.',
    example: {
      type: 'ready',
      callId: '01980a5e-9b02-7c3f-8a21-3c4d5e6f7081',
      sessionId: '01980a5e-9b02-7c3f-8a21-3c4d5e6f7082',
      resumeToken: 'Zk1QbXh0c2Z6a2VwbHF3b3J0eXVpb3Bhc2RmZ2hqa2w',
    },
  },
  answer: {
    description:
      'To the last offer; all candidates of the service are in it. Comes again after a resume while the client has not used it.',
    example: { type: 'answer', sdp },
  },
  candidate: {
    description: 'Reserved: all candidates of the service are in its answer.',
    example: { type: 'candidate', candidate: null },
  },
  status: {
    description: 'The status of the call has changed, as call.status_update tells it.',
    example: { type: 'status', status: 'in_progress', ts },
  },
  transcript: {
    description:
      'A turn as it is understood. While isFinal is false a later message with the same turnIndex takes its place.',
    example: { type: 'transcript', role: 'agent', text: 'Good morning.', isFinal: true, turnIndex: 0, ts },
  },
  interrupted: {
    description: 'The caller spoke over the agent, which is silent now: what it was saying is not said.',
    example: { type: 'interrupted' },
  },
  error: {
    description:
      'Something could not be done, or a message was not understood; the call goes on. SERVICE_UNAVAILABLE right before `bye`: no voice session could be created.',
    example: {
      type: 'error',
      error: {
        statusCode: 400,
        type: 'VALIDATION_FAILED',
        localizedKey: 'errors.validationFailed',
        details: 'The message is not understood.',
        requestId: '01980a5e-9b02-7c3f-8a21-3c4d5e6f7083',
        issues: [{ path: 'digits', message: 'is missing' }],
      },
    },
  },
  warning: {
    description: 'The call was asked for something that it does not do; it goes on. Told once.',
    example: {
      type: 'warning',
      warning: {
        type: 'INSTRUCTIONS_NOT_FOLLOWED',
        message: 'The embedded voice engine follows the call script and cannot follow instructions.',
      },
      ts,
    },
  },
  bye: {
    description: 'The call is over; the service closes the socket next.',
    example: { type: 'bye', reason: 'completed' },
  },
  pong: { description: 'Answers a ping.', example: { type: 'pong' } },
}

type Messages = typeof ClientMessage | typeof ServerMessage

/** Each is a component of its own: `SignalingClientOffer`. */
const messagesOf = (side: 'Client' | 'Server', messages: Messages, told: Readonly<Record<string, Told>>) =>
  messages.options.map((message) => {
    const { value } = message.shape.type
    const name = `Signaling${side}${value.slice(0, 1).toUpperCase()}${value.slice(1)}`
    return named(name, message, told[value])
  })

const oneOf = (name: string, messages: readonly z.ZodType[]) => named(name, z.union(messages))

const clientMessage = oneOf('SignalingClientMessage', messagesOf('Client', ClientMessage, ofClient))
const serverMessage = oneOf('SignalingServerMessage', messagesOf('Server', ServerMessage, ofService))

/** By the code of RFC 6455 section 7.4.1. */
const closeCodes = {
  1000: 'The call is over, or another socket of the same client took the place of this one.',
  1001: 'The service stops. The call is over.',
  1003: 'A binary frame.',
  1008: 'Over 100 messages in a second, 20 that were not understood, or none within 20 seconds of joining.',
  1009: `A frame of over ${maxSignalingFrameBytes} bytes.`,
  1013: 'Over 1 MiB that the client has not read.',
} as const

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })

export function describeSignaling({ openAPIRegistry: registry }: Api): void {
  registry.register('SignalingClientMessage', clientMessage)
  registry.registerPath({
    method: 'get',
    path: '/v1/signaling',
    security: [],
    tags: ['Signaling'],
    operationId: 'openSignaling',
    summary: 'Open the signaling socket of a web call',
    description:
      'A WebSocket (RFC 6455), at the signalingUrl of the call. Each text frame is one JSON object: the client sends SignalingClientMessage, the service SignalingServerMessage. A refused client gets an HTTP answer in place of the upgrade. A lost socket does not end the call: within 30 seconds the client comes back with resume. The header Origin must be one of allowedOrigins, where the call names some.',
    request: {
      query: z.object({
        token: z.string().optional(),
        resume: z.string().optional(),
        received: z.string().optional(),
      }),
    },
    ...refusing('UNAUTHORIZED', 'ORIGIN_NOT_ALLOWED', 'UPGRADE_REQUIRED', ['WEB_CALL_CAPACITY_EXCEEDED', 503]),
    responses: {
      101: {
        description: 'The socket is open: these are its messages from the service.',
        content: { 'application/json': { schema: serverMessage } },
      },
    },
    'x-websocket': {
      clientMessage: reference('SignalingClientMessage'),
      serverMessage: reference('SignalingServerMessage'),
      maxFrameBytes: maxSignalingFrameBytes,
      closeCodes,
    },
  })
}
