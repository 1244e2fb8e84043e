/**
 * Owns what a process has in place of that which acts by itself, where other processes do that: facts go to those that have the calls, and who
 * would be woken here is told over the bus. Nothing here looks for work.
 */
import type { NodePeers } from '../actors/node/node-beats.ts'
import { createFarRouter } from '../actors/node/far-router.ts'
import { createPlacement } from '../actors/node/placement.ts'
import { tellWaits, type Work } from '../actors/node/wakes.ts'
import { createRounds } from '../actors/rounds/rounds.ts'
import type { DestinationPolicy } from '../actors/telephony/destination-policy.ts'
import { createEmail } from '../actors/tools/email.ts'
import { createToolbox } from '../actors/tools/toolbox.ts'
import { createWebhookSender } from '../actors/webhooks/sender.ts'
import { createSubscriptions } from '../actors/webhooks/subscriptions.ts'
import type { NodeId } from '../model/ids.ts'
import { endLease, leaseLength, renewLease } from '../store/nodes.ts'
import type { Config } from './config.ts'
import type { Core } from './core.ts'
import type { KnowledgeSide } from './knowledge-side.ts'
import type { Load } from './load.ts'
import type { Outgoing } from './outgoing.ts'

/** Questions that somebody waits for are asked from here; what is delivered is others' to send. */
export function openFarOutgoing(core: Core, config: Config, closing: AsyncDisposableStack): Outgoing {
  const { clock, log, bus } = core
  const sender = createWebhookSender({ allowHosts: config.webhookAllowHosts, log, clock })
  closing.defer(() => sender.close())
  const email = config.email && createEmail({ ...config.email, log })
  if (email) closing.defer(() => email.close())
  const wakeDeliveries = (written?: number): void => {
    if (written !== 0) tellWaits(bus, 'deliveries')
  }
  const subscriptions = createSubscriptions({ ...core, sender, wakeDeliveries })
  return {
    sender,
    subscriptions,
    email,
    wakeDeliveries,
    start: nothing,
    drained: nothingToWaitFor,
    wake: nothing,
  }
}

type FarActing = {
  readonly outgoing: Outgoing
  readonly knowledge: KnowledgeSide['knowledge']
  readonly refusalOf: DestinationPolicy
  readonly peers: NodePeers
  readonly load: Pick<Load, 'commits'>
}

/** Ms. */
const heartbeat = 1_000

/** Who carries lines of calls is known to live as those who run them are: else its lines would be taken for left behind. */
function createLease({ sql, clock, log, nodeId }: Core, { peers, load }: Pick<FarActing, 'peers' | 'load'>) {
  const renew = async (): Promise<boolean> => {
    await load.commits.lease(() => renewLease(sql, nodeId, leaseLength, peers.isOffBus()))
    return false
  }
  const heartbeats = createRounds({ clock, log, every: heartbeat, look: renew })
  const watching = peers.watch({ silence: nothing, link: heartbeats.wake })
  const end = async (): Promise<void> => {
    watching.close()
    await heartbeats.close()
    await endLease(sql, nodeId).catch((error: unknown) => log.error('the lease could not be given back', { error }))
  }
  let ending: Promise<void> | null = null
  return { start: () => heartbeats.idle(), close: () => (ending ??= end()) }
}

export function openFarActing(core: Core, deps: FarActing, closing: AsyncDisposableStack) {
  const { outgoing, knowledge, refusalOf, peers } = deps
  const lease = createLease(core, deps)
  closing.defer(() => lease.close())
  const placement = createPlacement({ ...core, peers })
  const { route } = createFarRouter({ ...core, peers, placement })
  const birthplace = (): NodeId | null => placement.choose()
  const switchboard = {
    route,
    birthplace,
    running: () => 0,
    holds: () => false,
    start: lease.start,
    handOver: async () => 0,
    // Its lines may last longer than this: the lease ends with the process.
    close: nothingToWaitFor,
  }
  const far = (work: Work) => ({
    wake: () => tellWaits(core.bus, work),
    idle: nothingToWaitFor,
    close: nothingToWaitFor,
  })
  const { sender, email, wakeDeliveries } = outgoing
  const tools = createToolbox({ ...core, sender, router: switchboard, email, knowledge, wakeDeliveries, refusalOf })
  return {
    switchboard,
    scheduler: far('scheduler'),
    processing: far('processing'),
    dispatcher: far('dispatcher'),
    tools,
    extractors: { close: nothingToWaitFor },
  }
}

function nothing(): void {
  // Others do it.
}

const nothingToWaitFor = async (): Promise<void> => undefined
