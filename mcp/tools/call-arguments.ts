/** Owns what a tool that places calls takes, and how what is wrong with it is named. docs/contract/mcp.md "Calls and confirmations". */
import { z } from 'zod'
import { CustomerInput } from '../../model/customer.ts'
import { Instant, msOf, utcOffsetOf } from '../../model/instant.ts'
import { JsonObject } from '../../model/json.ts'
import { maxCallsAtOnce, type WantedCall } from '../../model/outbound-calls.ts'
import { PhoneNumber } from '../../model/phone-number.ts'
import { Problem } from '../../model/problem.ts'
import { withoutNulls } from '../../model/without-nulls.ts'
import { camelFields, snakePath } from '../snake-case.ts'
import { WorkerId } from './worker-tools.ts'

const maxText = 100_000

const Context = JsonObject.refine(
  (context) => JSON.stringify(context).length <= maxText,
  `must be at most ${maxText} characters of JSON`,
)

/** Both spellings of its fields are understood, and null of either as what is not there. */
const Customer = z.preprocess(
  (given) =>
    typeof given === 'object' && given !== null && !Array.isArray(given) ? withoutNulls(camelFields(given)) : given,
  CustomerInput,
)

const fields = {
  worker_id: WorkerId,
  phone_number: PhoneNumber.optional().describe(
    'E.164, like +4930123456. May be left out when person_id names a person with a number; it goes before that number.',
  ),
  person_id: z.string().optional().describe('Whom to call, as the tools of persons tell it.'),
  context: Context.optional().describe('Facts for this call, as an object; scripts name them {{context.key}}.'),
  call_script_document_ids: z
    .array(z.string())
    .max(50)
    .optional()
    .describe(
      'Documents tagged outbound_call_script that are linked to the worker. Left out: all of them. Not together with custom_instructions.',
    ),
  custom_instructions: z
    .string()
    .max(maxText)
    .optional()
    .describe('What the worker is to do in this call. Not together with call_script_document_ids.'),
  customer: Customer.optional().describe(
    'Who is called, when that is no stored person: fields as the REST API has them.',
  ),
  scheduled_at: Instant.optional().describe(
    'ISO 8601 with a time zone, in the future, like 2026-12-01T09:30:00+01:00. Left out: at once.',
  ),
}

export const CallArguments = z
  .strictObject(fields)
  .superRefine(({ call_script_document_ids, custom_instructions }, { addIssue }) => {
    const isTold = custom_instructions !== undefined && custom_instructions.trim() !== ''
    if (isTold && call_script_document_ids !== undefined && call_script_document_ids.length > 0)
      addIssue({
        code: 'custom',
        path: ['custom_instructions'],
        message: 'must not be given together with call_script_document_ids',
      })
  })
export type CallArguments = z.infer<typeof CallArguments>

export const CallBatchArguments = z.strictObject({
  calls: z
    .array(CallArguments)
    .min(1)
    .max(maxCallsAtOnce)
    .describe('Up to 100 calls, each like those of initiate_phone_call.'),
})

export function toWantedCall(given: CallArguments): WantedCall {
  const { custom_instructions, call_script_document_ids, scheduled_at, context } = given
  return {
    workerId: given.worker_id,
    phoneNumber: given.phone_number,
    personId: given.person_id,
    customer: given.customer,
    context: context && JSON.stringify(context),
    ...(call_script_document_ids && call_script_document_ids.length > 0 && { scriptIds: call_script_document_ids }),
    ...(custom_instructions !== undefined &&
      custom_instructions.trim() !== '' && { instructions: custom_instructions }),
    ...(scheduled_at !== undefined && { scheduledAt: msOf(scheduled_at), utcOffset: utcOffsetOf(scheduled_at) }),
  }
}

const argumentNames: Readonly<Record<string, string>> = {
  scriptIds: 'call_script_document_ids',
  instructions: 'custom_instructions',
}

/** Runs it, and names the arguments where a Problem names fields of WantedCall: `3.phoneNumber` is `calls.3.phone_number` of a batch. */
export async function namingArguments<Answer>(isBatch: boolean, act: () => Promise<Answer>): Promise<Answer> {
  try {
    return await act()
  } catch (error) {
    if (!(error instanceof Problem) || error.issues === null) throw error
    const issues = error.issues.map(({ path, message }) => ({ path: argumentPath(path, isBatch), message }))
    throw new Problem(error.type, error.message, issues)
  }
}

function argumentPath(path: string, isBatch: boolean): string {
  const [index = '', field = '', ...rest] = path.split('.')
  if (!/^\d+$/.test(index)) return path
  const named = snakePath([argumentNames[field] ?? field, ...rest].join('.'))
  return isBatch ? `calls.${index}.${named}` : named
}
