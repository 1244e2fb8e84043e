/**
 * Owns the birth of an outbound phone call: what it may be refused for, in one fixed order, and its row, its dial time and its first step, in
 * one transaction. docs/contract/rest.md "Refusals at creation".
 */
import type { AskedBy } from '../../../model/asked-by.ts'
import type { Clock } from '../../../model/clock.ts'
import type { CustomerInput } from '../../../model/customer.ts'
import type { AccountId, CallId, DocumentId, NewId, PersonId } from '../../../model/ids.ts'
import { msOf } from '../../../model/instant.ts'
import { toPhoneCall, type CreatePhoneCall, type PhoneCall, type PhoneCallRequest } from '../../../model/phone-call.ts'
import { Problem } from '../../../model/problem.ts'
import { withoutNulls } from '../../../model/without-nulls.ts'
import type { LlmProvider } from '../../../model/worker.ts'
import type { OutboundCallScript } from '../../../model/worker-resource.ts'
import { canonicalNumber } from '../../../net/read-number.ts'
import { findCall } from '../../../store/calls.ts'
import { listOutboundCallScripts } from '../../../store/documents.ts'
import { answerOnce } from '../../../store/idempotency.ts'
import { insertJob } from '../../../store/jobs.ts'
import type { SecretBox } from '../../../store/secret-box.ts'
import type { Sql, Transaction } from '../../../store/sql.ts'
import { findWayOut } from '../../../store/telephony.ts'
import { holdCustomers } from '../../../store/upsert-customer.ts'
import { hasNumber, type Worker } from '../../../store/workers.ts'
import { requireDestination } from '../../telephony/destination-policy.ts'
import { findCallableWorker } from './callable-worker.ts'
import { chooseEngine } from '../engine-choice.ts'
import { allowsFallback } from '../fallback.ts'
import { findKnownPerson, knownPersonOf, linkCustomer, readCustomerNumber, type KnownPerson } from './known-person.ts'
import { writeBirth } from './write-birth.ts'

export type PhoneCallDeps = {
  readonly sql: Sql
  readonly clock: Clock
  readonly newId: NewId
  readonly box: SecretBox
  /** Those that whoever runs the call has, by their names. */
  readonly engines: ReadonlyMap<LlmProvider, unknown>
  readonly wakeDeliveries: () => void
  /** A call waits for its turn. */
  readonly wakeDispatcher: () => void
}

/** A time that is further away than a leap year is a mistake. */
const maxAhead = 366 * 24 * 3_600_000

export function createPhoneCallCreator(deps: PhoneCallDeps): CreatePhoneCall {
  return async (accountId, request, once, asked) => {
    const now = deps.clock.now()
    const answer = await answerOnce(deps, { accountId, once, now, callOf: ({ id }: PhoneCall) => id }, (tx) =>
      insertPhoneCall(deps, tx, { accountId, now }, { ...request, asked }),
    )
    deps.wakeDeliveries()
    deps.wakeDispatcher()
    return answer
  }
}

/** A call as somebody asks for it, whatever of. */
export type PhoneCallWish = Omit<PhoneCallRequest, 'callScriptFileNames' | 'scheduledAt'> & {
  /** Ms since the epoch; null means now. */
  readonly scheduledAt: number | null
  /** Whom to link the call with; absent: who has the number, or whom the customer names. */
  readonly personId?: PersonId
  /** By a request of REST; absent: by no such one. */
  readonly asked?: AskedBy | undefined
  /** Which of the worker's scripts the call follows; throws Problem. None: all of them. */
  pinScripts(scripts: readonly OutboundCallScript[]): DocumentId[]
}

/** Nothing stands against it at this moment. */
export type CheckedPhoneCall = {
  readonly wish: PhoneCallWish
  readonly worker: Worker
  readonly scriptIds: readonly DocumentId[]
  readonly fromNumber: string | null
  readonly toNumber: string | null
  readonly customerNumber: string | null
}

type Place = { readonly accountId: AccountId; readonly now: number }

/** Writes nothing. Throws Problem. */
export async function checkPhoneCall(
  { engines }: Pick<PhoneCallDeps, 'engines'>,
  tx: Transaction,
  accountId: AccountId,
  wish: PhoneCallWish,
): Promise<CheckedPhoneCall> {
  const worker = await findCallableWorker(tx, accountId, wish.workerId)
  await requireWayOut(tx, worker)
  const scriptIds = await pinScripts(tx, worker, wish)
  const customerNumber = await readCustomerNumber(tx, accountId, wish.customer)
  const toNumber = wish.phoneNumber ?? customerNumber
  const path = wish.phoneNumber === undefined ? 'customer.phoneNumber' : 'phoneNumber'
  const fromNumber = wish.from ?? worker.outboundPhoneNumber
  await requireDestination(tx, accountId, { fromNumber, toNumber, path })
  await requireOwnNumber(tx, accountId, wish.from)
  const engine = chooseEngine(engines, { workerConfig: worker.config, request: {}, hookAnswer: {} })
  if (engine === null && !(await allowsFallback(tx, accountId)))
    throw new Problem('TELEPHONY_SERVICE_PROVIDER_UNAVAILABLE', 'the voice provider is not available now; retry later')
  return { wish, worker, scriptIds, fromNumber, toNumber, customerNumber }
}

export async function writePhoneCall(
  { newId }: Pick<PhoneCallDeps, 'newId'>,
  tx: Transaction,
  { accountId, now }: Place,
  checked: CheckedPhoneCall,
): Promise<PhoneCall> {
  const { wish, worker, scriptIds, fromNumber, toNumber } = checked
  const { scheduledAt, asked } = wish
  const id: CallId = newId<'call'>()
  const call = {
    id,
    accountId,
    workerId: worker.id,
    sessionId: newId(),
    fromNumber,
    toNumber,
    ...(await linkedPerson(tx, { accountId, newId, now }, checked)),
    context: wish.context ?? null,
    scriptIds,
    metadata: wish.metadata ?? null,
    request: withoutNulls({ headers: wish.headers, instructions: wish.instructions }),
    externalTools: [],
    requestId: asked?.requestId ?? null,
  }
  const trace = asked?.trace
  const birth = { direction: 'outbound', transport: 'sip_trunk', scheduledAt, ...(trace && { trace }) } as const
  await writeBirth(tx, { birth, call, now, newId })
  if (scheduledAt !== null)
    await insertJob(tx, { id: newId(), accountId, callId: id, kind: 'dial_time', runAt: scheduledAt })
  return answerOf(tx, accountId, id)
}

async function linkedPerson(
  tx: Transaction,
  place: Place & Pick<PhoneCallDeps, 'newId'>,
  { wish: { customer, personId }, toNumber, customerNumber }: CheckedPhoneCall,
): Promise<KnownPerson> {
  const { accountId } = place
  if (personId !== undefined) return knownPersonOf(tx, { accountId, personId, customer })
  if (!customer) return findKnownPerson(tx, accountId, toNumber)
  return linkCustomer(tx, { ...place, ...namedCustomer(accountId, { customer, customerNumber, toNumber }) })
}

const namedCustomer = (
  accountId: AccountId,
  {
    customer,
    customerNumber,
    toNumber,
  }: Pick<CheckedPhoneCall, 'customerNumber' | 'toNumber'> & { readonly customer: CustomerInput },
) => ({ accountId, customer, phoneNumber: customerNumber, dialed: toNumber && canonicalNumber(toNumber) })

/** Before several calls are written in one transaction. */
export async function holdCustomersOf(
  tx: Transaction,
  accountId: AccountId,
  calls: readonly CheckedPhoneCall[],
): Promise<void> {
  const named = calls.flatMap(({ wish: { customer, personId }, customerNumber, toNumber }) =>
    customer && personId === undefined ? [namedCustomer(accountId, { customer, customerNumber, toNumber })] : [],
  )
  if (named.length > 1) await holdCustomers(tx, named)
}

async function insertPhoneCall(
  deps: PhoneCallDeps,
  tx: Transaction,
  place: Place,
  { callScriptFileNames = [], ...request }: PhoneCallRequest & Pick<PhoneCallWish, 'asked'>,
): Promise<PhoneCall> {
  const scheduledAt = dialTimeOf(request, place.now)
  const wish = { ...request, scheduledAt, pinScripts: pinNamed(callScriptFileNames) }
  return writePhoneCall(deps, tx, place, await checkPhoneCall(deps, tx, place.accountId, wish))
}

/** Null means now. A past time is no earlier place in the queue. */
function dialTimeOf({ scheduledAt }: Pick<PhoneCallRequest, 'scheduledAt'>, now: number): number | null {
  const at = scheduledAt === undefined ? now : msOf(scheduledAt)
  requireSoonEnough(at, now)
  return at > now ? at : null
}

export function requireSoonEnough(scheduledAt: number, now: number): void {
  if (scheduledAt <= now + maxAhead) return
  const message = 'must be at most 366 days ahead'
  throw new Problem('VALIDATION_FAILED', `scheduledAt ${message}`, [{ path: 'scheduledAt', message }])
}

async function requireWayOut(tx: Transaction, worker: Worker): Promise<void> {
  const { trunks, ofWorker, dialing } = await findWayOut(tx, worker.accountId, worker.id)
  if (trunks === 0) throw new Problem('TELEPHONY_INTEGRATION_NOT_SETUP', 'the account has no active trunk')
  if (ofWorker === 0)
    throw new Problem('TELEPHONY_INTEGRATION_NOT_ADDED_TO_WORKER', 'no active trunk of the account has the worker')
  if (dialing === 0)
    throw new Problem('TELEPHONY_TRANSPORT_NOT_SUPPORTED', 'no trunk of the worker can carry an outbound call')
}

/** Who is called sees it, and may call it back. */
async function requireOwnNumber(tx: Transaction, accountId: AccountId, from: string | undefined): Promise<void> {
  if (from === undefined || (await hasNumber(tx, accountId, from))) return
  const message = 'must be a number of one of the workers of the account'
  throw new Problem('VALIDATION_FAILED', `from ${message}`, [{ path: 'from', message }])
}

async function pinScripts(tx: Transaction, worker: Worker, wish: PhoneCallWish): Promise<DocumentId[]> {
  const scripts = await listOutboundCallScripts(tx, worker.accountId, worker.id)
  if (scripts.length === 0)
    throw new Problem('CALL_SCRIPT_NOT_CONFIGURED', 'the worker has no call script for outbound calls')
  return wish.pinScripts(scripts)
}

/** The documents behind the names: of one name the newest. */
const pinNamed =
  (fileNames: readonly string[]): PhoneCallWish['pinScripts'] =>
  (scripts) => {
    const pinned = fileNames.map(
      (name) => scripts.find(({ fileName }) => fileName === name)?.id as DocumentId | undefined,
    )
    const issues = fileNames.flatMap((name, index) =>
      pinned[index]
        ? []
        : [{ path: `callScriptFileNames.${index}`, message: `must be a call script of the worker; it has no ${name}` }],
    )
    if (issues.length > 0)
      throw new Problem('VALIDATION_FAILED', 'the worker has not got all of the call scripts', issues)
    return [...new Set(pinned.filter((id) => id !== undefined))]
  }

async function answerOf(tx: Transaction, accountId: AccountId, callId: CallId): Promise<PhoneCall> {
  const call = await findCall(tx, accountId, callId)
  if (!call) throw new Error('a call that was just born has no row')
  return toPhoneCall(call)
}
