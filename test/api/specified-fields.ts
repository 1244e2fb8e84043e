/**
 * Owns the field tables of the contract, written out by hand: what the contract says, whatever the code says. `additive` is what
 * this service tells besides; a client that knows only the contract never needs it.
 */

export type Kind =
  'string' | 'number' | 'boolean' | 'object' | 'string[]' | 'object[]' | 'string or null' | 'number or null' | 'any'

export type SpecifiedField = { readonly kind: Kind; readonly required: boolean; readonly values?: readonly string[] }

export type Table = {
  /** A schema of the document, and the way from there to the part that is meant; `[]` is an element of a list. */
  readonly schema: string
  readonly part?: readonly string[]
  /** Of a request: what the contract does not require must not be required. */
  readonly sent?: boolean
  readonly fields: Readonly<Record<string, SpecifiedField>>
  readonly additive?: readonly string[]
}

const must = (kind: Kind, values?: readonly string[]): SpecifiedField => ({
  kind,
  required: true,
  ...(values && { values }),
})
const may = (kind: Kind, values?: readonly string[]): SpecifiedField => ({
  kind,
  required: false,
  ...(values && { values }),
})
const allOf = (names: string, field: SpecifiedField) =>
  Object.fromEntries(names.split(' ').map((name) => [name, field]))

const eventTypes = [
  'call.worker_request',
  'call.tool_call',
  'call.transcript',
  'call.status_update',
  'call.ended',
  '*',
] as const

const customerFields = {
  ...allOf('externalId phoneNumber firstName lastName email streetAddress country postalCode', may('string')),
  ...allOf('stateOrProvince city language jobTitle facebookUrl websiteUrl linkedInUrl', may('string')),
}
const customerType = ['customer', 'lead'] as const

export const specifiedFields: Readonly<Record<string, Table>> = {
  Account: {
    schema: 'Account',
    fields: { id: must('string'), ...allOf('name slug createdAt updatedAt', may('string')) },
  },
  Worker: {
    schema: 'Worker',
    fields: {
      ...allOf('id accountId name language', must('string')),
      type: may('object'),
      ...allOf('inboundPhoneNumber outboundPhoneNumber', may('string')),
    },
    additive: ['isActive', 'maxConcurrentCalls'],
  },
  'Worker type': { schema: 'Worker', part: ['type'], fields: { id: may('string'), name: may('string') } },
  'Worker configuration': {
    schema: 'WorkerConfiguration',
    fields: {
      ...allOf('workerId accountId language', must('string')),
      ...allOf('voiceId llmProvider inboundStaticMessageText serviceDownRedirectNumber', may('string')),
      ...allOf('llmTemperature ringTimeout firstSpeechTimeout', may('number')),
      ...allOf('inboundStaticMessageEnabled serviceDownRedirectEnabled emailEnabled testModeEnabled', may('boolean')),
      recordingChannelMode: may('string', ['mixed', 'split']),
      ...allOf('dimensions nextActions', may('object[]')),
    },
    additive: [
      'transcriptEvents',
      'fallbackProviders',
      'recordingEnabled',
      'disclosureText',
      'unverifiedCallerUpdatesEnabled',
    ],
  },
  'Outbound call script entry': {
    schema: 'OutboundCallScript',
    fields: { id: may('string'), fileName: may('string') },
  },
  'Customer object of an answer': {
    schema: 'PhoneCall',
    part: ['customer'],
    // Of a customer who is no stored person it is null.
    fields: {
      id: may('string or null'),
      accountId: may('string'),
      type: may('string', customerType),
      ...customerFields,
    },
  },
  'Customer object of a phone call request': {
    schema: 'PhoneCallRequest',
    part: ['customer'],
    sent: true,
    fields: { type: must('string', customerType), ...customerFields },
  },
  'Customer object of a web call request': {
    schema: 'WebCallRequest',
    part: ['customer'],
    sent: true,
    fields: { type: must('string', customerType), ...customerFields },
  },
  'Phone call': {
    schema: 'PhoneCall',
    fields: {
      id: must('string'),
      status: must('string', ['scheduled', 'queued', 'in_progress', 'completed']),
      direction: must('string', ['inbound', 'outbound']),
      postProcessingStatus: must('string', ['none', 'in_progress', 'completed', 'failed']),
      ...allOf('fromNumber toNumber startedAt endedAt workerId scheduledAt', may('string')),
      nextAction: may('any'),
      dimensions: may('object'),
      duration: may('number'),
      customer: may('object'),
    },
    additive: [
      'progress',
      'transport',
      'metadata',
      'outcome',
      'failedReason',
      'endedBy',
      'endCause',
      'providerStatus',
      'trunkId',
      'quality',
      'warnings',
      'evidence',
      'nextActionData',
      'summary',
      'recordingState',
      'disclosure',
      'usage',
    ],
  },
  'Transcript segment': {
    schema: 'TranscriptSegment',
    fields: {
      timestamps: may('object'),
      speaker: may('string', ['user', 'agent']),
      text: may('string'),
      ...allOf('confidence source', may('any')),
    },
    additive: ['latency'],
  },
  'Timestamps of a segment': {
    schema: 'TranscriptSegment',
    part: ['timestamps'],
    fields: { from: may('string'), to: may('string') },
  },
  'Audio download': { schema: 'AudioDownload', fields: allOf('id url', must('string')), additive: ['format'] },
  'Web call session': {
    schema: 'WebCallSession',
    fields: {
      ...allOf('callId sessionId signalingUrl token expiresAt', must('string')),
      iceServers: must('object[]'),
    },
  },
  'ICE server': {
    schema: 'WebCallSession',
    part: ['iceServers', '[]'],
    fields: { urls: may('any'), ...allOf('username credential', may('string')) },
  },
  'External tool definition': {
    schema: 'WebCallRequest',
    part: ['externalTools', '[]'],
    fields: { ...allOf('name description deliveryUrl signingSecret', may('string')), inputSchema: may('object') },
  },
  'Webhook subscription': {
    schema: 'WebhookSubscription',
    fields: {
      ...allOf('id accountId url createdAt updatedAt', must('string')),
      ...allOf('workerId signingSecret', may('string or null')),
      eventType: must('string', eventTypes),
      deliveryMode: must('string', ['sync', 'async', 'both']),
      headers: may('object'),
      timeoutMs: may('number'),
      ...allOf('enabled required', must('boolean')),
    },
    additive: ['failingSince', 'disabledReason'],
  },
  'Tool descriptor': {
    schema: 'ToolDescriptor',
    fields: { ...allOf('name provider description capabilityKey', may('string')), inputSchema: may('object') },
  },
  'Input schema of a tool': {
    schema: 'ToolDescriptor',
    part: ['inputSchema'],
    fields: { type: may('string', ['object']), properties: may('object'), required: may('string[]') },
  },
  'Tool result': {
    schema: 'ToolResult',
    fields: { status: may('string'), data: may('object'), error: may('object') },
  },
  'Error of a tool': { schema: 'ToolResult', part: ['error'], fields: allOf('code message', may('string')) },
  'POST phone-calls body': {
    schema: 'PhoneCallRequest',
    sent: true,
    fields: {
      workerId: must('string'),
      ...allOf('phoneNumber context scheduledAt', may('string')),
      customer: may('object'),
      callScriptFileNames: may('string[]'),
    },
    additive: ['from', 'headers', 'instructions', 'metadata'],
  },
  'POST web-calls body': {
    schema: 'WebCallRequest',
    sent: true,
    fields: {
      workerId: must('string'),
      ...allOf('instructions context locale voiceId', may('string')),
      ...allOf('customer metadata', may('object')),
      temperature: may('number'),
      llmProvider: may('string', ['voice_provider_a', 'voice_provider_b']),
      externalTools: may('object[]'),
      allowedOrigins: may('string[]'),
    },
  },
  'POST webhook-subscriptions body': {
    schema: 'WebhookSubscriptionRequest',
    sent: true,
    fields: {
      workerId: may('string'),
      eventType: must('string', eventTypes),
      url: must('string'),
      headers: may('object'),
      timeoutMs: may('number'),
      ...allOf('enabled required', may('boolean')),
    },
  },
  'PATCH webhook-subscriptions body': {
    schema: 'WebhookSubscriptionChange',
    sent: true,
    fields: {
      ...allOf('url signingSecret', may('string')),
      headers: may('object'),
      timeoutMs: may('number'),
      ...allOf('enabled required', may('boolean')),
    },
  },
  'Test of a subscription': {
    schema: 'WebhookSubscriptionTest',
    fields: { delivered: must('boolean'), statusCode: may('number'), error: may('string') },
  },
  'Tool call body': {
    schema: 'ToolCallRequest',
    sent: true,
    fields: {
      ...allOf('toolName provider', must('string')),
      arguments: must('object'),
      ...allOf('customerPhone phoneCallId', may('string')),
    },
  },
  'call.worker_request data': {
    schema: 'WorkerRequestData',
    fields: {
      ...allOf('callId accountId workerId', must('string')),
      direction: must('string', ['inbound', 'outbound']),
      transport: may('string'),
      ...allOf('customer metadata', may('object')),
    },
    additive: ['sip'],
  },
  'customer of call.worker_request': {
    schema: 'WorkerRequestData',
    part: ['customer'],
    fields: { number: may('string'), ...allOf('name personId language', may('string or null')) },
  },
  'answer to call.worker_request': {
    schema: 'WorkerRequestAnswer',
    sent: true,
    fields: { ...allOf('config metadata', may('object')), instructions: may('string'), tools: may('object[]') },
  },
  'call.tool_call data': {
    schema: 'ToolCallData',
    fields: {
      ...allOf('callId accountId workerId toolCallId name', must('string')),
      arguments: must('object'),
      metadata: may('object'),
    },
  },
  'answer to call.tool_call': { schema: 'ToolCallAnswer', fields: { result: may('any') } },
  'call.transcript data': {
    schema: 'TranscriptData',
    fields: {
      ...allOf('callId text ts', must('string')),
      turnIndex: must('number'),
      role: must('string', ['user', 'agent']),
      isFinal: must('boolean'),
      confidence: may('number or null'),
      source: may('string or null'),
      metadata: may('object'),
    },
  },
  'call.status_update data': {
    schema: 'StatusUpdateData',
    fields: {
      ...allOf('callId status ts', must('string')),
      providerStatus: may('string or null'),
      metadata: may('object'),
    },
  },
  'call.ended data': {
    schema: 'EndedData',
    fields: {
      ...allOf('callId accountId workerId', must('string')),
      status: must('string', ['completed', 'voicemail', 'no_answer', 'busy', 'canceled', 'failed']),
      recordingAvailable: must('boolean'),
      direction: may('string', ['inbound', 'outbound']),
      ...allOf('failedReason fromNumber toNumber scheduledAt startedAt endedAt personId', may('string or null')),
      duration: may('number or null'),
      transcript: may('any'),
      ...allOf('nextAction metadata', may('object')),
    },
    additive: ['endedBy', 'endCause'],
  },
  'nextAction of call.ended': {
    schema: 'EndedData',
    part: ['nextAction'],
    fields: { ...allOf('key name', must('string')), data: may('object') },
  },
  '400 body': {
    schema: 'Error',
    fields: { statusCode: may('number'), ...allOf('type localizedKey details', may('string')) },
    additive: ['requestId', 'issues'],
  },
}

const account = '/v1/accounts/{accountId}'
const worker = `${account}/workers/{workerId}`
const phoneCall = `${account}/phone-calls/{phoneCallId}`
const subscriptions = `${account}/webhook-subscriptions`

/** Operation → what a good answer is: a schema, a list of it, or the fields of an object; null: nothing. */
export const specifiedEndpoints: Readonly<Record<string, string | Readonly<Record<string, string>> | null>> = {
  'get /v1/accounts/current': 'Account',
  [`get ${account}/workers`]: 'Worker[]',
  [`get ${worker}`]: 'Worker',
  [`get ${worker}/config`]: 'WorkerConfiguration',
  [`get ${worker}/documents/outbound-call-scripts`]: 'OutboundCallScript[]',
  [`post ${account}/phone-calls`]: 'PhoneCall',
  [`get ${phoneCall}`]: 'PhoneCall',
  [`get ${phoneCall}/transcript`]: 'TranscriptSegment[]',
  [`get ${phoneCall}/audio/url`]: 'AudioDownload',
  [`post ${account}/web-calls`]: 'WebCallSession',
  [`get ${subscriptions}`]: 'WebhookSubscription[]',
  [`post ${subscriptions}`]: 'WebhookSubscription',
  [`get ${subscriptions}/{subscriptionId}`]: 'WebhookSubscription',
  [`patch ${subscriptions}/{subscriptionId}`]: 'WebhookSubscription',
  [`delete ${subscriptions}/{subscriptionId}`]: null,
  [`post ${subscriptions}/{subscriptionId}/test`]: 'WebhookSubscriptionTest',
  [`get ${worker}/mcp/tools`]: { tools: 'ToolDescriptor[]' },
  [`post ${worker}/mcp/tools/call`]: { result: 'ToolResult' },
}

/** Event → its data, and its answer when that changes the call. */
export const specifiedEvents: Readonly<Record<string, readonly [string, string | null]>> = {
  'call.worker_request': ['WorkerRequestData', 'WorkerRequestAnswer'],
  'call.tool_call': ['ToolCallData', 'ToolCallAnswer'],
  'call.transcript': ['TranscriptData', null],
  'call.status_update': ['StatusUpdateData', null],
  'call.ended': ['EndedData', null],
}

/** Of every delivery, besides its Content-Type. */
export const specifiedHeaders = ['Event', 'Event-Id', 'Timestamp', 'Delivery', 'Account-Id', 'Signature'].map(
  (name) => `X-Service-${name}`,
)
export const additiveHeaders = [
  'X-Service-Attempt',
  'X-Request-Id',
  'traceparent',
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
]

/** The only parameters of the contract that are no part of a path; none is required. */
export const specifiedQueries: Readonly<Record<string, readonly string[]>> = {
  [`get ${subscriptions}`]: ['workerId'],
  [`get ${worker}/mcp/tools`]: ['phoneCallId', 'customerPhone'],
}

export const additiveQueries: Readonly<Record<string, readonly string[]>> = {
  [`get ${phoneCall}/audio/url`]: ['format'],
  [`get ${phoneCall}/transcript`]: ['fromTurn'],
}

/** What this service adds to the endpoints of the contract. */
export const additiveEndpoints: readonly string[] = [
  'get /health',
  'get /ready',
  'get /v1/signaling',
  'get /v1/recordings/{accountId}/{callId}.wav',
  `get ${account}/phone-calls`,
  `post ${phoneCall}/cancel`,
  `post ${phoneCall}/hangup`,
  `post ${phoneCall}/post-processing`,
  `get ${phoneCall}/audio/peaks`,
  `get ${phoneCall}/diagnostics`,
  `get ${phoneCall}/replay`,
  `get ${phoneCall}/capture`,
  `post ${phoneCall}/capture`,
  `post ${phoneCall}/recording/pause`,
  `post ${phoneCall}/recording/resume`,
  `delete ${phoneCall}`,
  `get ${subscriptions}/{subscriptionId}/deliveries`,
  `get ${subscriptions}/{subscriptionId}/deliveries/{deliveryId}`,
  `post ${subscriptions}/{subscriptionId}/deliveries/{deliveryId}/resend`,
  `post ${account}/workers`,
  `patch ${worker}`,
  `delete ${worker}`,
  `get ${account}/documents/{documentId}/versions`,
  `get ${account}/documents/{documentId}/versions/{version}`,
  `get ${account}/api-keys`,
  `post ${account}/api-keys`,
  `delete ${account}/api-keys/{keyId}`,
  `get ${account}/users`,
  `patch ${account}/users/{userId}`,
  `delete ${account}/users/{userId}`,
  `get ${account}/invitations`,
  `post ${account}/invitations`,
  `delete ${account}/invitations/{invitationId}`,
  ...['trunks/{trunkId}', 'persons/{personId}', 'documents/{documentId}'].flatMap((resource) => [
    `get ${account}/${resource.slice(0, resource.indexOf('/'))}`,
    `post ${account}/${resource.slice(0, resource.indexOf('/'))}`,
    `get ${account}/${resource}`,
    `patch ${account}/${resource}`,
    `delete ${account}/${resource}`,
  ]),
  `post ${account}/persons/batch`,
  `post ${account}/workers/{workerId}/knowledge/search`,
  `post ${account}/persons/{personId}/erase`,
  `get ${account}/trunks/{trunkId}/state`,
  `get ${account}/audit-log`,
  `get ${account}/call-refusals`,
  `get ${account}/simulations`,
  `post ${account}/simulations`,
  `get ${account}/simulations/{simulationId}`,
  `delete ${account}/simulations/{simulationId}`,
  `get ${account}/grants`,
  `delete ${account}/grants/{grantId}`,
  `get ${account}/limits`,
  `patch ${account}/limits`,
  `get ${account}/retention`,
  `patch ${account}/retention`,
]
