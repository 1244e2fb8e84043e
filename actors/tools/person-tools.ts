/** Owns `person`: what a worker knows of its caller, and notes about them. Both need caller identity. docs/contract/tools.md "Caller identity". */
import { z } from 'zod'
import type { Clock } from '../../model/clock.ts'
import type { Json } from '../../model/json.ts'
import { CallerChange, toPerson, type PersonFacts } from '../../model/person.ts'
import type { ToolResult } from '../../model/tool.ts'
import { withoutNulls } from '../../model/without-nulls.ts'
import { changePerson } from '../../store/persons.ts'
import type { Sql } from '../../store/sql.ts'
import { defineTool, failure, success, type CallerIdentity, type OfferContext, type WorkerTool } from './worker-tool.ts'

type Deps = { readonly sql: Sql; readonly clock: Clock }

export const personTools = ({ sql, clock }: Deps): WorkerTool[] => [
  defineTool({
    provider: 'person',
    name: 'get_caller',
    description: 'Tells who is on the line: name, contact details, language and notes, as far as they are known.',
    input: z.strictObject({}),
    refusal: identityRefusal,
    run: async ({ caller }) => callerResult(caller),
  }),
  defineTool({
    provider: 'person',
    name: 'update_caller',
    description: 'Notes what the caller told about themselves. What is not named stays; null takes a value away.',
    input: CallerChange,
    refusal: proofRefusal,
    async run({ accountId, caller }, change) {
      const personId = caller?.person?.id
      if (personId === undefined) return notStored()
      const person = await changePerson(sql, { accountId, personId, change, now: clock.now() })
      return person ? storedResult(person) : notStored()
    },
  }),
]

async function identityRefusal({ caller }: OfferContext): Promise<ToolResult | null> {
  if (caller) return null
  return failure('CALLER_IDENTITY_REQUIRED', 'Nobody knows who the caller is: give a phoneCallId or a customerPhone.')
}

/** Anybody can have any number shown: it is no leave to change what is kept about whom it belongs to, unless the worker says that it is enough. */
async function proofRefusal(context: OfferContext): Promise<ToolResult | null> {
  const isEnough = context.config.unverifiedCallerUpdatesEnabled ?? false
  if (isEnough || context.caller?.proof !== 'unverified') return identityRefusal(context)
  return failure(
    'CALLER_IDENTITY_REQUIRED',
    'The caller is known by their number only, which anybody can fake, so nothing about them is changed.',
  )
}

/** `identity` of who calls by telephone: does their number prove them? */
function callerResult(caller: CallerIdentity | null): ToolResult {
  const identity = withoutNulls({ identity: caller?.proof ?? null })
  if (caller?.person) return success({ caller: toPerson(caller.person) as Json, stored: true, ...identity })
  const told = { ...withoutNulls({ phoneNumber: caller?.number }), ...caller?.customer }
  return success({ caller: told as Record<string, Json>, stored: false, ...identity })
}

/** Whether the service keeps the caller, so that changes can be noted. */
const storedResult = (person: PersonFacts): ToolResult => success({ caller: toPerson(person) as Json, stored: true })

const notStored = (): ToolResult =>
  failure('NOT_AVAILABLE', 'The caller is not stored as a person, so nothing can be noted about them.')
