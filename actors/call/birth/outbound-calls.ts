/**
 * Owns outbound calls that are planned first and placed when they are confirmed: what is checked of them, and that a confirmation and its calls are written
 * together or not at all. docs/contract/mcp.md "Calls and confirmations".
 */
import type { AccountId, CallId, DocumentId } from '../../../model/ids.ts'
import { toId } from '../../../model/ids.ts'
import type { CallLimits, OutboundCalls, PlannedCall, PlannedCalls, WantedCall } from '../../../model/outbound-calls.ts'
import type { PersonFacts } from '../../../model/person.ts'
import type { PhoneCall } from '../../../model/phone-call.ts'
import { invalidFields, Problem, type Issue } from '../../../model/problem.ts'
import { readNumber } from '../../../net/read-number.ts'
import { findAccount } from '../../../store/accounts.ts'
import { defaultLimit } from '../../../store/call-capacity.ts'
import { notePlacedCalls, takeConfirmation } from '../../../store/confirmations.ts'
import { listTitles } from '../../../store/documents.ts'
import { findPerson, findPersonByPhone } from '../../../store/persons.ts'
import type { Transaction } from '../../../store/sql.ts'
import {
  checkPhoneCall,
  holdCustomersOf,
  requireSoonEnough,
  writePhoneCall,
  type CheckedPhoneCall,
  type PhoneCallDeps,
  type PhoneCallWish,
} from './create-phone-call.ts'
import { noSuchPerson, readCustomerNumber } from './known-person.ts'

type Within = Pick<PhoneCallDeps, 'engines' | 'newId'> & {
  readonly tx: Transaction
  readonly accountId: AccountId
  readonly now: number
}

export function createOutboundCalls(deps: PhoneCallDeps): OutboundCalls {
  const { sql, clock } = deps
  const within = <Answer>(accountId: AccountId, act: (within: Within) => Promise<Answer>): Promise<Answer> =>
    sql.begin((tx) => act({ ...deps, tx, accountId, now: clock.now() })) as Promise<Answer>
  const wake = (): void => {
    deps.wakeDeliveries()
    deps.wakeDispatcher()
  }
  return {
    plan: (accountId, wanted) => within(accountId, (parts) => planAll(parts, wanted)),
    async place(accountId, wanted) {
      const call = await within(accountId, async (parts) => {
        const { calls } = await planAll(parts, [wanted])
        return (await placeAll(parts, calls))[0] as PhoneCall
      })
      wake()
      return call
    },
    async confirm(confirming) {
      const placed = await within(confirming.holder.accountId, async (parts) => {
        const { id, calls } = await takeConfirmation(parts.tx, confirming, parts.now)
        const isBatch = confirming.kind === 'batch'
        const timed = calls.map((call) => ({ ...call, isScheduled: isBatch }))
        const written = await placeAll(parts, timed)
        await notePlacedCalls(
          parts.tx,
          id,
          written.map((call) => call.id as CallId),
        )
        return written
      })
      wake()
      return placed
    },
  }
}

async function planAll(parts: Within, wanted: readonly WantedCall[]): Promise<PlannedCalls> {
  const found = await each(wanted, (one) => planCall(parts, one))
  const limits = await limitsOf(
    parts,
    found.map(({ checked }) => checked),
  )
  return { calls: found.map(({ planned }) => planned), limits }
}

/** Checked as it was when it was planned, because what it was checked against may have changed. */
async function placeAll(
  parts: Within,
  calls: readonly (PlannedCall & { readonly isScheduled?: boolean })[],
): Promise<PhoneCall[]> {
  const checked = await each(calls, async (call) => {
    requireFuture(call.scheduledAt, parts.now)
    return checkPhoneCall(parts, parts.tx, parts.accountId, wishOf(call, parts.now))
  })
  await holdCustomersOf(parts.tx, parts.accountId, checked)
  const placed: PhoneCall[] = []
  for (const [index, one] of checked.entries())
    placed.push(
      await writePhoneCall(parts, parts.tx, parts, one).catch((error: unknown) => {
        throw error instanceof Problem ? new Problem(error.type, error.message, issuesAt(index, error)) : error
      }),
    )
  return placed
}

const wishOf = (call: PlannedCall & { readonly isScheduled?: boolean }, now: number): PhoneCallWish => ({
  workerId: call.workerId,
  phoneNumber: call.toNumber,
  from: call.fromNumber,
  customer: call.customer ?? undefined,
  context: call.context ?? undefined,
  instructions: call.instructions ?? undefined,
  // The next moment: what is due at once would be no scheduled call.
  scheduledAt: call.scheduledAt ?? (call.isScheduled ? now + 1 : null),
  ...(call.personId !== null && { personId: call.personId }),
  pinScripts: pinThese(call.scripts.map(({ id }) => id)),
})

async function planCall(parts: Within, wanted: WantedCall) {
  const { tx, accountId, now } = parts
  const { scheduledAt = null, customer, context, instructions } = wanted
  requireFuture(scheduledAt, now)
  const person = await personOf(parts, wanted)
  const customerNumber = await readCustomerNumber(tx, accountId, customer)
  const toNumber = wanted.phoneNumber ?? numberOf(person) ?? customerNumber
  if (toNumber === null) throw noNumber(wanted)
  const checked = await checkPhoneCall(parts, tx, accountId, {
    workerId: wanted.workerId,
    phoneNumber: toNumber,
    customer,
    context,
    instructions,
    scheduledAt,
    ...(person && { personId: person.id }),
    pinScripts: pinWanted(wanted),
  }).catch((error: unknown) => {
    throw namingSource(error, wanted)
  })
  const { worker, fromNumber, scriptIds } = checked
  if (fromNumber === null) throw fault('workerId', 'must have an outbound phone number to place calls')
  const callee = person ?? (customer ? null : await findPersonByPhone(tx, accountId, toNumber))
  const planned: PlannedCall = {
    workerId: worker.id,
    workerName: worker.name,
    fromNumber,
    toNumber,
    personId: person?.id ?? null,
    calleeName: nameOf(callee ?? customer),
    customer: customer ?? null,
    context: context ?? null,
    scripts: await listTitles(tx, accountId, scriptIds),
    instructions: instructions ?? null,
    scheduledAt,
    utcOffset: wanted.utcOffset ?? '+00:00',
  }
  return { planned, checked }
}

async function personOf({ tx, accountId }: Within, { personId }: WantedCall): Promise<PersonFacts | null> {
  if (personId === undefined) return null
  const id = toId<'person'>(personId)
  const person = id && (await findPerson(tx, accountId, id))
  if (!person) throw noSuchPerson()
  return person
}

const numberOf = (person: PersonFacts | null): string | null =>
  person?.phoneNumber == null ? null : readNumber(person.phoneNumber)

function nameOf(named: { firstName?: string | null | undefined; lastName?: string | null | undefined } | undefined) {
  const name = [named?.firstName, named?.lastName].filter(Boolean).join(' ').trim()
  return name === '' ? null : name
}

function requireFuture(scheduledAt: number | null, now: number): void {
  if (scheduledAt === null) return
  if (scheduledAt <= now) throw fault('scheduledAt', 'must be in the future')
  requireSoonEnough(scheduledAt, now)
}

/** With instructions none is pinned: the worker's own stand behind them, whatever they are when the call begins. */
function pinWanted({ scriptIds, instructions }: WantedCall): PhoneCallWish['pinScripts'] {
  if (instructions !== undefined) return () => []
  if (scriptIds !== undefined && scriptIds.length > 0) return pinThese(scriptIds)
  return (scripts) => {
    const newest = new Map(scripts.toReversed().map(({ id, fileName }) => [fileName, id as DocumentId]))
    return [...newest.values()].toReversed()
  }
}

const pinThese =
  (ids: readonly string[]): PhoneCallWish['pinScripts'] =>
  (scripts) => {
    const known = new Set(scripts.map(({ id }) => id))
    const issues = ids.flatMap((id, index) =>
      known.has(toId<'document'>(id) ?? '')
        ? []
        : [
            {
              path: `scriptIds.${index}`,
              message: 'must be an outbound call script of the worker, active and completed',
            },
          ],
    )
    if (issues.length > 0)
      throw new Problem('VALIDATION_FAILED', 'Some call scripts cannot be used; see issues.', issues)
    return [...new Set(ids.map((id) => id.toLowerCase() as DocumentId))]
  }

const fault = (path: string, message: string): Problem => invalidFields([{ path, message }])

function noNumber({ personId, customer }: WantedCall): Problem {
  if (personId === undefined && customer === undefined) return fault('phoneNumber', 'is missing')
  return fault('phoneNumber', `is missing, and the ${personId === undefined ? 'customer' : 'person'} has no number`)
}

/** A number that was not sent is that of somebody. */
function namingSource(error: unknown, { phoneNumber, personId }: WantedCall): unknown {
  if (!(error instanceof Problem) || phoneNumber !== undefined) return error
  const source = personId === undefined ? 'customer.phoneNumber' : 'personId'
  const issues = error.issues?.map((issue) => (issue.path === 'phoneNumber' ? { ...issue, path: source } : issue))
  return new Problem(error.type, error.message, issues ?? null)
}

/** What names no field is about the worker. */
function issuesAt(index: number, { issues, message: told }: Problem): Issue[] {
  const named = issues ?? [{ path: 'workerId', message: told }]
  return named.map(({ path, message }) => ({ path: `${index}.${path === 'from' ? 'workerId' : path}`, message }))
}

/** All of them, or a Problem that names every bad one by its index. */
async function each<Given, Found>(given: readonly Given[], act: (one: Given) => Promise<Found>): Promise<Found[]> {
  const found: Found[] = []
  const faults: { readonly problem: Problem; readonly issues: readonly Issue[] }[] = []
  for (const [index, one] of given.entries())
    try {
      found.push(await act(one))
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      faults.push({ problem: error, issues: issuesAt(index, error) })
    }
  const [first] = faults
  if (!first) return found
  const isOneKind = faults.every(({ problem }) => problem.type === first.problem.type)
  throw new Problem(
    isOneKind ? first.problem.type : 'VALIDATION_FAILED',
    faults.length === 1 ? first.problem.message : `${faults.length} calls cannot be placed; see issues.`,
    faults.flatMap(({ issues }) => issues),
  )
}

async function limitsOf({ tx, accountId }: Within, checked: readonly CheckedPhoneCall[]): Promise<CallLimits> {
  const config = (await findAccount(tx, accountId))?.config ?? {}
  const ofWorkers = checked.flatMap(({ worker }) => worker.maxConcurrentCalls ?? [])
  return {
    dailyMinutes: config.dailyMinutes ?? null,
    maxConcurrentCalls: Math.min(config.maxConcurrentCalls ?? defaultLimit, ...ofWorkers),
    maxCallsPerSecond: config.maxCallsPerSecond ?? null,
    homeCountryOnly: config.homeCountryOnly === true && config.allowedDestinations === undefined,
  }
}
