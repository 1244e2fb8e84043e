/**
 * Owns the wiring of everything that acts by itself: calls, their jobs, their webhooks. `end` is the orderly way out: no new calls, running
 * calls end, what they left behind is processed and delivered.
 */
import { createAdmission } from '../actors/call/admission.ts'
import { createWebCallCreator } from '../actors/call/create-web-call.ts'
import type { Engines } from '../actors/call/engine-choice.ts'
import { expireTokenWork } from '../actors/call/expire-token.ts'
import { createPostProcessing } from '../actors/post-processing.ts'
import { createScheduler } from '../actors/scheduler.ts'
import { createSwitchboard } from '../actors/switchboard.ts'
import { createDeliveryLoop } from '../actors/webhooks/delivery-loop.ts'
import { createWebhookSender } from '../actors/webhooks/sender.ts'
import { askWorkerRequest } from '../actors/webhooks/worker-request.ts'
import { Problem } from '../model/problem.ts'
import type { Admission, CreateWebCall } from '../model/web-call.ts'
import { setTimeout as pause } from 'node:timers/promises'
import { countPending } from '../store/deliveries.ts'
import type { Config } from './config.ts'
import type { Core } from './core.ts'

export type CallSide = {
  readonly createWebCall: CreateWebCall
  readonly admission: Admission
  /** Calls that have an actor in this process. */
  running(): number
  start(): Promise<void>
  /** Idempotent. */
  end(grace: number): Promise<void>
}

/** What is due when the service stops gets this long; the rest waits in the outbox for the next start. */
const drainTime = 3_000
const drainLook = 50

export function openCallSide(core: Core, config: Config, engines: Engines, closing: AsyncDisposableStack): CallSide {
  const { clock, log } = core
  const sender = createWebhookSender({ allowHosts: config.webhookAllowHosts, log, now: clock.now })
  closing.defer(() => sender.close())
  const deliveries = createDeliveryLoop({ ...core, sender, random: Math.random })
  closing.defer(() => deliveries.close())
  const wakeDeliveries = (): void => deliveries.wake()
  const hook = { ...core, sender, now: clock.now }
  const switchboard = createSwitchboard({
    ...core,
    engines,
    askWorkerRequest: (question) => askWorkerRequest(hook, question),
    wakeDeliveries,
    wakeJobs: () => scheduler.wake(),
  })
  closing.defer(() => switchboard.close(0))
  const scheduler = createScheduler({
    ...core,
    work: {
      expire_token: expireTokenWork({ ...core, switchboard }),
      post_process: createPostProcessing({ ...core, switchboard }),
    },
  })
  closing.defer(() => scheduler.close())

  let ending = false
  const stopping = new Problem('SERVICE_UNAVAILABLE', 'The service is stopping; try again in a moment.')
  const createWebCall = createWebCallCreator({ ...core, wakeDeliveries })
  const admission = createAdmission({ ...core, switchboard })
  return {
    createWebCall: async (accountId, request) => {
      if (ending) throw stopping
      return createWebCall(accountId, request)
    },
    admission: { ...admission, admit: async (token, origin) => (ending ? stopping : admission.admit(token, origin)) },
    running: () => switchboard.running(),
    async start() {
      await switchboard.start()
      deliveries.start()
      scheduler.wake()
    },
    async end(grace) {
      ending = true
      await switchboard.close(grace)
      await scheduler.idle()
      await drainDeliveries(core)
    },
  }
}

async function drainDeliveries({ sql, clock }: Core): Promise<void> {
  const until = clock.now() + drainTime
  while (clock.now() < until && (await countPending(sql, { callId: null, now: clock.now() })).due > 0)
    await pause(drainLook)
}
