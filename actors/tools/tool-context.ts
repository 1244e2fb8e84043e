/** Owns for whom a tool works: the worker, the call when one is named, and who is on the line. Nothing of another account gets in. */
import { callerProofOf } from '../../model/caller-proof.ts'
import type { Clock } from '../../model/clock.ts'
import { toId, type AccountId, type WorkerId } from '../../model/ids.ts'
import type { PersonFacts } from '../../model/person.ts'
import { Problem } from '../../model/problem.ts'
import type { ToolCaller } from '../../model/tool.ts'
import { accountDefaultsOf, effectiveConfigOf, type WorkerConfig } from '../../model/worker.ts'
import { createOneQuery } from '../../store/one-query.ts'
import { findPerson, findPersonByPhone } from '../../store/persons.ts'
import type { Sql } from '../../store/sql.ts'
import type { CallAtHand } from '../../store/tool-calls.ts'
import { findToolFacts, keyOfToolQuestion, type ToolFacts, type ToolQuestion } from '../../store/tool-facts.ts'
import type { CallerIdentity, OfferContext, ToolContext } from './worker-tool.ts'

type Asked = { readonly accountId: AccountId; readonly workerId: WorkerId; readonly caller: ToolCaller }

/**
 * As things are when they are asked for; what is asked in the same moment is read together. Both throw Problem: NOT_FOUND without the worker,
 * VALIDATION_FAILED (`phoneCallId`) for what is no call of it.
 */
export type ToolContexts = {
  /** Who the caller is as a person is not read. */
  toOffer(asked: Asked): Promise<OfferContext>
  toRun(asked: Asked): Promise<ToolContext>
}

export function createToolContexts({ sql, clock }: { readonly sql: Sql; readonly clock: Clock }): ToolContexts {
  const find = createOneQuery<ToolQuestion, ToolFacts>({
    keyOf: keyOfToolQuestion,
    query: (questions) => findToolFacts(sql, questions),
    clock,
  })
  const read = async ({ accountId, workerId, caller }: Asked): Promise<Found> => {
    const callId = caller.phoneCallId === undefined ? null : toId<'call'>(caller.phoneCallId)
    const facts = await find({ accountId, workerId, callId })
    if (!facts) throw new Problem('NOT_FOUND', 'The worker does not exist.')
    const call = caller.phoneCallId === undefined ? null : required(facts.call)
    const { worker, accountConfig, isLinked, hasDocuments, canPassOn } = facts
    const context = {
      accountId,
      worker,
      config: effectiveConfigOf(accountDefaultsOf(accountConfig), worker.config, ...layersOf(call)),
      language: call?.hookAnswer.locale ?? call?.request.locale ?? worker.language,
      call,
      hasDocuments,
      canPassOn,
    }
    return { context, isLinked }
  }
  return {
    async toOffer(asked) {
      const { context, isLinked } = await read(asked)
      return { ...context, caller: callerOf(context.call, asked.caller, isLinked) }
    },
    async toRun(asked) {
      const { context, isLinked } = await read(asked)
      return { ...context, caller: await identify(sql, context, asked.caller, isLinked) }
    },
  }
}

type Found = { readonly context: Omit<OfferContext, 'caller'>; readonly isLinked: boolean }

const layersOf = (call: CallAtHand | null): WorkerConfig[] => [
  call?.request.config ?? {},
  call?.hookAnswer.config ?? {},
]

function required(call: CallAtHand | null): CallAtHand {
  if (call) return call
  throw new Problem('VALIDATION_FAILED', 'The call does not exist.', [
    { path: 'phoneCallId', message: 'must be a call of the worker' },
  ])
}

/** What the call knows goes before `customerPhone`. Null: nobody knows anything. */
function callerOf(
  call: CallAtHand | null,
  { customerPhone = null }: { readonly customerPhone?: string | null | undefined },
  isLinked: boolean,
): OfferContext['caller'] {
  const shown = call && numberOf(call)
  const number = shown ?? customerPhone
  const customer = call?.customer ?? null
  if (number === null && !isLinked && customer === null) return null
  // A number that the account names itself is its own word, also for a call that shows none.
  const isNamed = customerPhone !== null && shown === null && !isLinked
  return { number, customer, proof: call && !isNamed ? callerProofOf(call) : null }
}

async function identify(
  sql: Sql,
  { accountId, call }: Found['context'],
  asked: ToolCaller,
  isLinked: boolean,
): Promise<CallerIdentity | null> {
  const linked = isLinked && call?.personId ? await findPerson(sql, accountId, call.personId) : null
  const caller = callerOf(call, asked, linked !== null)
  if (!caller) return null
  const { number } = caller
  const person: PersonFacts | null =
    linked ?? (number === null ? null : await findPersonByPhone(sql, accountId, number))
  return { ...caller, person }
}

/** Of the other side. A browser has none, whatever its row says. */
function numberOf({ transport, direction, fromNumber, toNumber, customer }: CallAtHand): string | null {
  const dialed = direction === 'inbound' ? fromNumber : toNumber
  return (transport === 'webrtc' ? null : dialed) ?? customer?.phoneNumber ?? null
}
