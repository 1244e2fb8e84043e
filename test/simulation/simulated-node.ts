/**
 * Owns one process of the service in a simulated world: everything that acts by itself, wired as app/call-side.ts wires it, on the world's database,
 * bus and clock. Only what lies behind a port is the world's own: the engine, the toolbox, the way out for webhooks.
 */
import { createSecretKey } from 'node:crypto'
import { createPostProcessing } from '../../actors/after-call/post-processing.ts'
import { createAdmission } from '../../actors/call/birth/admission.ts'
import { createPhoneCallCreator } from '../../actors/call/birth/create-phone-call.ts'
import { createWebCallCreator } from '../../actors/call/birth/create-web-call.ts'
import { dialTimeWork, dialWork } from '../../actors/call/birth/dial-jobs.ts'
import { expireTokenWork } from '../../actors/call/birth/expire-token.ts'
import { createEndCall } from '../../actors/call/life/end-call.ts'
import { createNodeBeats, takesOver } from '../../actors/node/node-beats.ts'
import { createSwitchboard } from '../../actors/node/switchboard.ts'
import { createDispatcher } from '../../actors/rounds/dispatcher.ts'
import { createDueWatch } from '../../actors/rounds/due-watch.ts'
import { createScheduler, type Work } from '../../actors/rounds/scheduler.ts'
import { createDestinationPolicy } from '../../actors/telephony/destination-policy.ts'
import { createTelephony } from '../../actors/telephony/telephony.ts'
import { createDeliveryLoop } from '../../actors/webhooks/delivery-loop.ts'
import type { WebhookSender } from '../../actors/webhooks/sender.ts'
import { createAskWorkerRequest } from '../../actors/webhooks/worker-request.ts'
import type { Bus } from '../../model/bus.ts'
import type { NewId, NodeId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import type { Toolbox } from '../../model/tool.ts'
import type { VoiceEngine } from '../../model/voice-engine.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import type { JournalFolder } from '../../store/journal-folder.ts'
import type { Job } from '../../store/jobs.ts'
import type { Sql } from '../../store/sql.ts'
import { createEmbeddedExtractor } from '../../voice/extraction/embedded-extractor.ts'
import type { Process } from './loop.ts'

export const box = createSecretBox(createSecretKey(Buffer.alloc(32, 7)))

const recordings: RecordingStore = {
  create: () => {
    throw new Error('the leg records, not the actor')
  },
  read: () => Promise.resolve(null),
  remove: () => Promise.resolve('absent'),
}

export type SimulatedNode = Awaited<ReturnType<typeof openSimulatedNode>>

/** To be called in the process. */
export function openSimulatedNode(world: {
  readonly process: Process
  readonly sql: Sql
  readonly bus: Bus
  readonly log: Log
  readonly newId: NewId
  readonly engine: VoiceEngine
  readonly tools: Toolbox
  readonly sender: WebhookSender
  readonly journal: JournalFolder
  /** It tells the others that it lives, and hears them. */
  readonly hasBeats: boolean
  /** Ms that never jump. */
  now(): number
  random(): number
  /** A job is done. */
  didJob(job: Job): void
}) {
  const { process, newId, sender } = world
  const { clock } = process
  const nodeId: NodeId = newId<'node'>()
  const dueWatch = createDueWatch({ ...world, clock })
  const core = { ...world, clock, nodeId, box, dueWatch, engines: new Map([['embedded' as const, world.engine]]) }
  const deliveries = createDeliveryLoop({ ...core, random: world.random })
  const wakeDeliveries = (written?: number): void => {
    if (written !== 0) deliveries.wake()
  }
  const refusalOf = createDestinationPolicy(core)
  const dispatcher = createDispatcher({ ...core, wakeJobs: () => scheduler.wake() })
  let isClosing = false
  const beats = world.hasBeats ? createNodeBeats({ ...core, now: world.now }) : null
  const switchboard = createSwitchboard({
    ...core,
    ...(beats && { peers: beats }),
    askWorkerRequest: createAskWorkerRequest({ ...core, now: clock.now }),
    wakeDeliveries,
    wakeJobs: () => processing.wake(),
    wakeDispatcher: () => dispatcher.wake(),
    refusalOf,
  })
  const told =
    (work: Work): Work =>
    async (job) => {
      await work(job)
      world.didJob(job)
    }
  const routed = { ...core, router: switchboard }
  const scheduler = createScheduler({
    ...core,
    work: {
      expire_token: told(expireTokenWork(routed)),
      dial_time: told(dialTimeWork({ ...routed, wakeDispatcher: () => dispatcher.wake() })),
      dial: told(dialWork(routed)),
    },
  })
  const extractors = { embedded: createEmbeddedExtractor(), model: null }
  const processing = createScheduler({
    ...core,
    work: { post_process: told(createPostProcessing({ ...routed, recordings, extractors })) },
  })
  const telephony = createTelephony({ ...core, router: switchboard, refusalOf, wakeDeliveries })
  beats?.tell(() => ({
    roles: ['actors'],
    running: switchboard.running(),
    room: 1_000,
    draining: isClosing,
    holds: switchboard.holds(),
  }))
  const creating = { ...core, wakeDeliveries, wakeDispatcher: () => dispatcher.wake() }
  const handOverWithin = async (ms: number): Promise<void> => {
    await scheduler.close()
    const over = new AbortController()
    const cancel = clock.after(ms, () => over.abort())
    if (beats?.heard().some(takesOver)) await switchboard.handOver(over.signal)
    cancel()
  }
  return {
    process,
    nodeId,
    switchboard,
    telephony,
    admission: createAdmission({ ...core, router: switchboard }),
    createWebCall: createWebCallCreator(creating),
    createPhoneCall: createPhoneCallCreator(creating),
    endCall: createEndCall(routed),
    async start(): Promise<void> {
      await switchboard.start()
      deliveries.start()
      scheduler.wake()
      processing.wake()
      dispatcher.wake()
    },
    /** Ms that calls may go to other nodes, and that those which are left may end by themselves. */
    async close(handOver: number, grace: number): Promise<void> {
      isClosing = true
      await dispatcher.close()
      if (beats && handOver > 0) await handOverWithin(handOver)
      await switchboard.close(grace)
      await telephony.close()
      await scheduler.close()
      await processing.close()
      await deliveries.close()
      await sender.close()
      await beats?.close()
      await dueWatch.close()
    },
  }
}
