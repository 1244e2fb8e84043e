/**
 * Owns the birth of an outbound phone call: what it may be refused for, in one fixed order, and its row, its dial time and its first step, in
 * one transaction. docs/contract/rest.md "Refusals at creation".
 */
import type { Clock } from '../../../model/clock.ts'
import type { AccountId, CallId, DocumentId, NewId } from '../../../model/ids.ts'
import { msOf } from '../../../model/instant.ts'
import { toPhoneCall, type CreatePhoneCall, type PhoneCall, type PhoneCallRequest } from '../../../model/phone-call.ts'
import { Problem } from '../../../model/problem.ts'
import { withoutNulls } from '../../../model/without-nulls.ts'
import { canonicalNumber } from '../../../net/read-number.ts'
import { findCall } from '../../../store/calls.ts'
import { listOutboundCallScripts } from '../../../store/documents.ts'
import { answerOnce } from '../../../store/idempotency.ts'
import { insertJob } from '../../../store/jobs.ts'
import type { SecretBox } from '../../../store/secret-box.ts'
import type { Sql, Transaction } from '../../../store/sql.ts'
import { findWayOut } from '../../../store/telephony.ts'
import { hasNumber, type Worker } from '../../../store/workers.ts'
import { requireDestination } from '../../telephony/destination-policy.ts'
import { findCallableWorker } from './callable-worker.ts'
import { chooseEngine, type Engines } from '../engine-choice.ts'
import { allowsFallback } from '../fallback.ts'
import { findKnownPerson, linkCustomer, readCustomerNumber } from './known-person.ts'
import { writeBirth } from './write-birth.ts'

export type PhoneCallDeps = {
  readonly sql: Sql
  readonly clock: Clock
  readonly newId: NewId
  readonly box: SecretBox
  readonly engines: Engines
  readonly wakeDeliveries: () => void
  /** A call waits for its turn. */
  readonly wakeDispatcher: () => void
}

/** A time that is further away than a leap year is a mistake. */
const maxAhead = 366 * 24 * 3_600_000

export function createPhoneCallCreator(deps: PhoneCallDeps): CreatePhoneCall {
  return async (accountId, request, once) => {
    const now = deps.clock.now()
    const answer = await answerOnce(deps, { accountId, once, now, callOf: ({ id }: PhoneCall) => id }, (tx) =>
      insertPhoneCall(deps, tx, accountId, request, now),
    )
    deps.wakeDeliveries()
    deps.wakeDispatcher()
    return answer
  }
}

async function insertPhoneCall(
  { newId, engines }: PhoneCallDeps,
  tx: Transaction,
  accountId: AccountId,
  request: PhoneCallRequest,
  now: number,
): Promise<PhoneCall> {
  const scheduledAt = dialTimeOf(request, now)
  const worker = await findCallableWorker(tx, accountId, request.workerId)
  await requireWayOut(tx, worker)
  const scriptIds = await pinScripts(tx, worker, request.callScriptFileNames ?? [])
  const customerNumber = await readCustomerNumber(tx, accountId, request.customer)
  const toNumber = request.phoneNumber ?? customerNumber
  const path = request.phoneNumber === undefined ? 'customer.phoneNumber' : 'phoneNumber'
  const fromNumber = request.from ?? worker.outboundPhoneNumber
  await requireDestination(tx, accountId, { fromNumber, toNumber, path })
  await requireOwnNumber(tx, accountId, request.from)
  const engine = chooseEngine(engines, { workerConfig: worker.config, request: {}, hookAnswer: {} })
  if (!engine && !(await allowsFallback(tx, accountId)))
    throw new Problem('TELEPHONY_SERVICE_PROVIDER_UNAVAILABLE', 'the voice provider is not available now; retry later')

  const id: CallId = newId<'call'>()
  const named = request.customer && { accountId, customer: request.customer, phoneNumber: customerNumber, newId, now }
  const known = named
    ? await linkCustomer(tx, { ...named, dialed: toNumber && canonicalNumber(toNumber) })
    : await findKnownPerson(tx, accountId, toNumber)
  const call = {
    id,
    accountId,
    workerId: worker.id,
    sessionId: newId(),
    fromNumber,
    toNumber,
    ...known,
    context: request.context ?? null,
    scriptIds,
    metadata: request.metadata ?? null,
    request: withoutNulls({ headers: request.headers, instructions: request.instructions }),
    externalTools: [],
  }
  const birth = { direction: 'outbound', transport: 'sip_trunk', scheduledAt } as const
  await writeBirth(tx, { birth, call, now, newId })
  if (scheduledAt !== null)
    await insertJob(tx, { id: newId(), accountId, callId: id, kind: 'dial_time', runAt: scheduledAt })
  return answerOf(tx, accountId, id)
}

/** Null means now. A past time is no earlier place in the queue. */
function dialTimeOf({ scheduledAt }: PhoneCallRequest, now: number): number | null {
  const at = scheduledAt === undefined ? now : msOf(scheduledAt)
  if (at > now + maxAhead) {
    const message = 'must be at most 366 days ahead'
    throw new Problem('VALIDATION_FAILED', `scheduledAt ${message}`, [{ path: 'scheduledAt', message }])
  }
  return at > now ? at : null
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

/** The documents behind the names: of one name the newest. */
async function pinScripts(tx: Transaction, worker: Worker, fileNames: readonly string[]): Promise<DocumentId[]> {
  const scripts = await listOutboundCallScripts(tx, worker.accountId, worker.id)
  if (scripts.length === 0)
    throw new Problem('CALL_SCRIPT_NOT_CONFIGURED', 'the worker has no call script for outbound calls')
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
