/**
 * Owns what is left of JSON that told of a person: its structure, its numbers, and the few texts that say how a call went and never with whom.
 * Every other text is emptied, also one of a field that nobody here knows. The same text is emptied in a fact and in the effect that it had, so
 * that the log of an erased call replays alike. Pure. docs/security.md
 */
import { spokenFor } from '../call/machine/supervision.ts'
import type { Json, JsonObject } from '../../model/json.ts'

/** Fields with words of ours: states, kinds, who, times, ids; `key` is of a dimension or a next action, which are configured. */
const keptFields = new Set([
  'type',
  'status',
  'outcome',
  'reason',
  'failedReason',
  'cause',
  'deadline',
  'role',
  'speaker',
  'direction',
  'transport',
  'progress',
  'postProcessingStatus',
  'endedBy',
  'by',
  'source',
  'engine',
  'model',
  'codec',
  'signs',
  'warned',
  'key',
  'state',
  'recording',
  'parts',
  'id',
  // Of a listening, and of nobody: who it is is `userId`.
  'supervisors',
  'voice',
  'callId',
  'accountId',
  'workerId',
  'sessionId',
  'trunkId',
  'toolCallId',
  'ts',
  'startedAt',
  'endedAt',
  'scheduledAt',
  'createdAt',
  'expiresAt',
])

/** Fields that may hold anything, under any name. */
const openFields = new Set([
  'arguments',
  'memory',
  'memoryChange',
  'value',
  'values',
  'notes',
  'dimensions',
  'data',
  'metadata',
  'config',
  'tools',
  'request',
  'instructions',
  'context',
  'customer',
  'sip',
  'headers',
  'transcript',
  'externalTools',
  'hookAnswer',
])

/** Fields that name somebody. */
const namingFields = new Set(['fromNumber', 'toNumber', 'number', 'phoneNumber', 'personId', 'externalId', 'email'])

/** Of what the other side of a line wrote only what a standard has words for. */
const wordsOf: Readonly<Record<string, RegExp>> = {
  providerStatus: /^(?:[1-6]\d\d\b|[a-z_-]{1,24}$)/,
  endCause: /^(?:Q\.850|SIP) \d{1,3}$/,
}

/** Of facts and effects, as call_events keeps them. */
export const blankedLog = (json: Json): Json => blanked(json, '')

/** Of a call that is over: what the machine is restored from. */
export function blankedSnapshot(snapshot: Json): Json {
  const { context = {}, ...machine } = asObject(snapshot)
  const { value = null, status = null, historyValue = null } = machine
  return {
    ...('value' in machine && { value }),
    ...('status' in machine && { status }),
    ...('historyValue' in machine && { historyValue }),
    children: {},
    context: blanked(context, ''),
  }
}

/** Of a webhook: it can still be sent, and says which call ended, and how. What is no JSON is emptied. */
export function blankedBody(body: string): string {
  const { type = null, data = {} } = asObject(parsed(body))
  return JSON.stringify({ type, data: withoutEmpty(blanked(data, ''), { recordingAvailable: false }) })
}

/** Of a request that created a call: it names the call, and keeps the same request from creating another. */
export const blankedAnswer = (answer: Json): Json => withoutEmpty(blanked(answer, ''), {})

function blanked(json: Json, field: string): Json {
  if (openFields.has(field)) return emptied(json)
  if (namingFields.has(field)) return null
  if (typeof json === 'string') return blankedText(json, field)
  if (Array.isArray(json)) return json.map((item: Json) => blanked(item, field))
  if (json === null || typeof json !== 'object') return json
  const isConfigured = 'key' in json || 'arguments' in json
  return Object.fromEntries(
    Object.entries(json).map(([name, value]) => [name, name === 'name' && isConfigured ? value : blanked(value, name)]),
  )
}

function blankedText(text: string, field: string): string {
  // Words of ours, which the machine says again.
  if (field === 'whispers' && text === spokenFor) return text
  if (keptFields.has(field)) return text
  return wordsOf[field]?.exec(text)?.[0] ?? ''
}

/** Of what was there that it was there. */
function emptied(json: Json): Json {
  if (Array.isArray(json)) return []
  return json !== null && typeof json === 'object' ? {} : null
}

/** Nothing that is read from outside has a null or an empty object in place of what it may leave out. */
function withoutEmpty(json: Json, fixed: JsonObject): Json {
  const fields = Object.entries(asObject(json)).map(([name, value]): [string, Json] => [name, fixed[name] ?? value])
  return Object.fromEntries(fields.filter(([name, value]) => !(mayBeAbsent(name) && isEmpty(value))))
}

const mayBeAbsent = (name: string): boolean => name !== 'arguments' && (openFields.has(name) || namingFields.has(name))
const isEmpty = (value: Json): boolean =>
  value === null || (typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length === 0)

const asObject = (json: Json): JsonObject =>
  json !== null && typeof json === 'object' && !Array.isArray(json) ? (json as JsonObject) : {}

function parsed(body: string): Json {
  try {
    return JSON.parse(body) as Json
  } catch {
    return null
  }
}
