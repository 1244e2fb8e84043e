/** Owns the birth of a web call: its row, its way in and its first step, in one transaction. rest-api-and-webhooks.md, Web calls. */
import { createHash, randomBytes } from 'node:crypto'
import { toIso, type Clock } from '../../model/clock.ts'
import type { AccountId, CallId, NewId, WorkerId } from '../../model/ids.ts'
import { toId } from '../../model/ids.ts'
import type { Json, JsonObject } from '../../model/json.ts'
import { Problem } from '../../model/problem.ts'
import { tokenLifetime, type CreatedWebCall, type CreateWebCall, type WebCallRequest } from '../../model/web-call.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { countRunningCalls } from '../../store/call-capacity.ts'
import type { CallOverrides } from '../../store/call-rows.ts'
import { insertCall } from '../../store/call-steps.ts'
import { insertJob } from '../../store/jobs.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql, Transaction } from '../../store/sql.ts'
import { insertWebSession } from '../../store/web-sessions.ts'
import { findWorker } from '../../store/workers.ts'
import { recordEffects } from './record-effects.ts'
import { beginCall } from './step.ts'

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
  return async (accountId, request) => {
    const workerId = toId<'worker'>(request.workerId)
    const worker = workerId && (await findWorker(deps.sql, accountId, workerId))
    if (!worker)
      throw new Problem('VALIDATION_FAILED', 'no such worker', [{ path: 'workerId', message: 'no such worker' }])
    if (!worker.isActive) throw new Problem('WORKER_INACTIVE', 'the worker is switched off')
    const created = await deps.sql.begin((tx) => insertWebCall(deps, tx, accountId, worker.id, request))
    deps.wakeDeliveries()
    return created
  }
}

async function insertWebCall(
  deps: WebCallDeps,
  tx: Transaction,
  accountId: AccountId,
  workerId: WorkerId,
  request: WebCallRequest,
): Promise<CreatedWebCall> {
  const { limit, running } = await countRunningCalls(tx, accountId)
  if (running >= limit)
    throw new Problem('WEB_CALL_CAPACITY_EXCEEDED', `the account has ${running} calls running, as many as it may`)
  const now = deps.clock.now()
  const first = beginCall(birth, now)
  const callId: CallId = deps.newId<'call'>()
  const sessionId = deps.newId()
  const token = randomBytes(32).toString('base64url')
  const expiresAt = now + tokenLifetime
  const call = {
    ...birth,
    id: callId,
    accountId,
    workerId,
    sessionId,
    progress: first.state.progress,
    customer: request.customer ?? null,
    context: request.context ?? null,
    metadata: request.metadata ?? null,
    request: overridesOf(request),
    externalTools: (request.externalTools ?? []).map((tool) => sealed(deps.box, tool) as JsonObject),
    snapshot: first.state.persisted,
  }
  await insertCall(tx, call, {
    event: { type: 'created', ...birth },
    effects: first.effects as Json,
    ignored: false,
    at: now,
  })
  await insertWebSession(tx, {
    id: sessionId,
    accountId,
    callId,
    tokenHash: hashToken(token),
    tokenExpiresAt: expiresAt,
    allowedOrigins: request.allowedOrigins ?? null,
  })
  await insertJob(tx, { id: deps.newId(), accountId, callId, kind: 'expire_token', runAt: expiresAt + arrivalTime })
  await recordEffects({ tx, callId, now, newId: deps.newId }, first.effects)
  return { callId, sessionId, token, expiresAt: toIso(expiresAt) }
}

/** Tokens are random, 256 bits: a plain hash keeps them as well as a slow one would. */
export const hashToken = (token: string): Buffer => createHash('sha256').update(token).digest()

function overridesOf(request: WebCallRequest): CallOverrides {
  const config: WorkerConfig = {
    ...(request.voiceId !== undefined && { voiceId: request.voiceId }),
    ...(request.temperature !== undefined && { llmTemperature: request.temperature }),
    ...(request.llmProvider !== undefined && { llmProvider: request.llmProvider }),
  }
  return { instructions: request.instructions, locale: request.locale, config }
}

const sealed = (box: SecretBox, tool: { readonly signingSecret: string }) => ({
  ...tool,
  signingSecret: box.seal(tool.signingSecret),
})
