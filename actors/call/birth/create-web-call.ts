/** Owns the birth of a web call: its row, its way in and its first step, in one transaction. docs/contract/rest.md "Web calls". */
import type { AskedBy } from '../../../model/asked-by.ts'
import { toIso, type Clock } from '../../../model/clock.ts'
import type { AccountId, CallId, NewId } from '../../../model/ids.ts'
import type { JsonObject } from '../../../model/json.ts'
import { Problem } from '../../../model/problem.ts'
import { tokenLifetime, type CreatedWebCall, type CreateWebCall, type WebCallRequest } from '../../../model/web-call.ts'
import type { WorkerConfig } from '../../../model/worker.ts'
import { countRunningCalls } from '../../../store/call-capacity.ts'
import type { CallOverrides } from '../../../store/call-rows.ts'
import { answerOnce } from '../../../store/idempotency.ts'
import { insertJob } from '../../../store/jobs.ts'
import type { SecretBox } from '../../../store/secret-box.ts'
import type { Sql, Transaction } from '../../../store/sql.ts'
import { sealedTool } from '../../../store/tool-calls.ts'
import { createToken, hashOfToken } from '../../../store/token.ts'
import { insertWebSession } from '../../../store/web-sessions.ts'
import type { Worker } from '../../../store/workers.ts'
import { findCallableWorker } from './callable-worker.ts'
import { linkCustomer, readCustomerNumber } from './known-person.ts'
import { writeBirth } from './write-birth.ts'

export type WebCallDeps = {
  readonly sql: Sql
  readonly clock: Clock
  readonly newId: NewId
  readonly box: SecretBox
  readonly wakeDeliveries: () => void
}

/** A client that took its token in the last moment is on its way to the call for so long. */
export const arrivalTime = 5_000

/** The visitor of a page calls the worker: a web call is inbound. */
const birth = { direction: 'inbound', transport: 'webrtc', scheduledAt: null } as const

export function createWebCallCreator(deps: WebCallDeps): CreateWebCall {
  return async (accountId, request, once, asked) => {
    const now = deps.clock.now()
    const answer = await answerOnce(
      deps,
      { accountId, once: once ?? null, now, callOf: ({ callId }: CreatedWebCall) => callId },
      (tx) => insertWebCall(deps, tx, { accountId, now, asked }, request),
    )
    deps.wakeDeliveries()
    return answer
  }
}

type Asking = { readonly accountId: AccountId; readonly now: number; readonly asked: AskedBy | undefined }

async function insertWebCall(
  { newId, box }: WebCallDeps,
  tx: Transaction,
  { accountId, now, asked }: Asking,
  request: WebCallRequest,
): Promise<CreatedWebCall> {
  const worker = await findCallableWorker(tx, accountId, request.workerId)
  await requirePlace(tx, worker)
  const callId: CallId = newId<'call'>()
  const { customer } = request
  const phoneNumber = await readCustomerNumber(tx, accountId, customer)
  const known = customer && (await linkCustomer(tx, { accountId, customer, phoneNumber, dialed: null, newId, now }))
  const sessionId = newId()
  const token = createToken()
  const expiresAt = now + tokenLifetime
  const call = {
    id: callId,
    accountId,
    workerId: worker.id,
    sessionId,
    fromNumber: null,
    toNumber: null,
    personId: known?.personId ?? null,
    customer: known?.customer ?? null,
    context: request.context ?? null,
    metadata: request.metadata ?? null,
    request: overridesOf(request),
    externalTools: (request.externalTools ?? []).map(
      (tool) => sealedTool(box, { accountId, callId }, tool) as JsonObject,
    ),
    scriptIds: [],
    requestId: asked?.requestId ?? null,
  }
  const trace = asked?.trace
  await writeBirth(tx, { birth: { ...birth, ...(trace && { trace }) }, call, now, newId })
  await insertWebSession(tx, {
    id: sessionId,
    accountId,
    callId,
    tokenHash: hashOfToken(token),
    tokenExpiresAt: expiresAt,
    allowedOrigins: request.allowedOrigins ?? null,
  })
  await insertJob(tx, { id: newId(), accountId, callId, kind: 'expire_token', runAt: expiresAt + arrivalTime })
  return { callId, sessionId, token, expiresAt: toIso(expiresAt) }
}

/** A browser does not queue: it gets its place now, or the request is refused. */
async function requirePlace(tx: Transaction, { accountId, id, maxConcurrentCalls }: Worker): Promise<void> {
  const { limit, running, runningOfWorker } = await countRunningCalls(tx, accountId, id)
  const full = (whose: string, count: number) =>
    new Problem('WEB_CALL_CAPACITY_EXCEEDED', `the ${whose} has ${count} calls running, as many as it may`)
  if (running >= limit) throw full('account', running)
  if (runningOfWorker >= (maxConcurrentCalls ?? Infinity)) throw full('worker', runningOfWorker)
}

function overridesOf(request: WebCallRequest): CallOverrides {
  const config: WorkerConfig = {
    ...(request.voiceId !== undefined && { voiceId: request.voiceId }),
    ...(request.temperature !== undefined && { llmTemperature: request.temperature }),
    ...(request.llmProvider !== undefined && { llmProvider: request.llmProvider }),
  }
  return { instructions: request.instructions, locale: request.locale, config }
}
