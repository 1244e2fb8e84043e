/** Owns what a call asks before it begins, call.worker_request, and the fact that comes of the answer. docs/contract/webhooks.md "call.worker_request". */
import { callerProofOf } from '../../../model/caller-proof.ts'
import type { WorkerRequestAnswer, WorkerRequestData } from '../../../model/events.ts'
import type { JsonObject } from '../../../model/json.ts'
import { PhoneNumber } from '../../../model/phone-number.ts'
import type { WorkerConfig } from '../../../model/worker.ts'
import type { CallFactsRow } from '../../../store/call-rows.ts'
import { sealedTool } from '../../../store/tool-calls.ts'
import type { CallEnd, PerformerDeps } from './performer-deps.ts'
import { readCall } from './read-call.ts'

export async function askWorkerRequest(deps: PerformerDeps, end: CallEnd): Promise<void> {
  const question = async () => questionOf(await readCall(deps, end.callId))
  const result = await deps.askWorkerRequest(end.callId, question)
  if (result.kind === 'failed')
    return end.post({ type: 'worker_request_failed', required: result.required, details: result.details })
  const answer: WorkerRequestAnswer = result.kind === 'answered' ? result.answer : {}
  const { config = null, tools } = answer
  const sealed = tools && (await sealedTools(deps, end, tools))
  end.post({
    type: 'worker_request_answered',
    config: config && withoutLanguage(config),
    locale: config?.language ?? null,
    instructions: answer.instructions ?? null,
    tools: sealed ?? null,
    metadata: answer.metadata ?? null,
  })
}

async function sealedTools(
  deps: PerformerDeps,
  end: CallEnd,
  tools: NonNullable<WorkerRequestAnswer['tools']>,
): Promise<JsonObject[]> {
  const { id: callId, accountId } = await readCall(deps, end.callId)
  return tools.map((tool) => sealedTool(deps.box, { accountId, callId }, tool) as JsonObject)
}

/** A call speaks its locale; the worker keeps its language. */
function withoutLanguage({ language: _, ...config }: NonNullable<WorkerRequestAnswer['config']>): WorkerConfig {
  return config
}

function questionOf(call: CallFactsRow): WorkerRequestData {
  const { customer } = call
  const number = [call.direction === 'inbound' ? call.fromNumber : call.toNumber, customer?.phoneNumber].find(
    (text) => PhoneNumber.safeParse(text).success,
  )
  const name = [customer?.firstName, customer?.lastName].filter(Boolean).join(' ')
  const identity = callerProofOf(call)
  return {
    callId: call.id,
    accountId: call.accountId,
    workerId: call.workerId,
    direction: call.direction,
    transport: call.transport,
    ...((customer || number) && {
      customer: {
        ...(number && { number }),
        name: name || null,
        personId: call.personId,
        language: customer?.language ?? null,
      },
    }),
    ...(call.sip && { sip: { ...call.sip, ...(identity && { identity }) } }),
    ...(call.metadata && { metadata: call.metadata }),
  }
}
