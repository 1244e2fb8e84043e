/** Owns what a call does once it has asked its worker request, the same for browser and phone. Pure. docs/contract/webhooks.md "call.worker_request". */
import type { Outcome } from '../../../model/outcome.ts'
import type { CallFact } from '../call-event.ts'
import { endRules } from './call-end.ts'
import { failed, type CallContext } from './machine-actions.ts'

const storeWorkerRequest = {
  type: 'store_worker_request',
  params: ({ event }: { event: Extract<CallFact, { type: 'worker_request_answered' }> }) => ({
    config: event.config,
    // Logs of before it was there have none, and must replay alike.
    ...(event.locale !== undefined && { locale: event.locale }),
    instructions: event.instructions,
    tools: event.tools,
    metadata: event.metadata,
  }),
} as const

const hookLost = {
  type: 'end',
  params: ({ context }: { context: CallContext }): Outcome => ({
    status: 'failed',
    reason: context.rules === endRules ? 'internal_error' : null,
  }),
} as const

/** What a call does once it asks is the same for browser and phone: the answer changes the call, a required failure ends it. */
export const workerRequestAnswers = <Settled extends string>(settled: Settled) =>
  ({
    worker_request_answered: { target: settled, actions: storeWorkerRequest },
    worker_request_failed: [
      { guard: 'required', target: '#call.windingUp', actions: failed('worker_request_required_failed') },
      { target: settled },
    ],
    deadline_passed: {
      guard: { type: 'passed', params: 'hook' },
      target: '#call.windingUp',
      actions: hookLost,
    },
    taken_over: { actions: 'ask_worker_request' },
  }) as const
