/** Owns nodes that hear of each other: everything that acts for calls, on one database, one bus and a clock by hand. */
import type { Test } from 'tap'
import { createNodeBeats, type NodeBeats } from '../../actors/node/node-beats.ts'
import type { Bus } from '../../model/bus.ts'
import type { NodeId } from '../../model/ids.ts'
import { nodeSubjectsOf } from '../../model/node-beat.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { listen, openCallNode, status, type CallNode, type Shared } from './call-node.ts'
import { until } from './in-time.ts'
import { createTenant, newId } from './tenant.ts'

export const awake = { roles: ['actors'], running: 0, room: 9, draining: false, holds: false }

export function openBeats(t: Test, { bus, clock }: Pick<Shared, 'bus' | 'clock'>, nodeId: NodeId): NodeBeats {
  const beats = createNodeBeats({ bus, clock, now: clock.now, nodeId, log: createQuietLog() })
  beats.tell(() => awake)
  t.teardown(() => beats.close())
  return beats
}

/** So many ms pass; the bus answers meanwhile. */
export async function pass({ bus, clock }: Pick<Shared, 'bus' | 'clock'>, ms: number): Promise<void> {
  for (let at = 0; at < ms; at += 50) {
    clock.advance(50)
    await bus.flush()
    await new Promise(setImmediate)
  }
}

/**
 * A node that others hear, until it sleeps: then its bus carries nothing either way, and the server knows that nobody listens there. While it stands still
 * the server does not know. One that is cut off knows that it is.
 */
export async function openNode(t: Test, shared: Shared, over: { readonly dataDir?: string } = {}) {
  let isAsleep = false
  let back: Promise<void> | null = null
  const nodeId = newId<'node'>()
  const { alive } = nodeSubjectsOf(nodeId)
  const connection = new Set<(isThere: boolean) => void>()
  const subscribe: Bus['subscribe'] = (pattern, handler, options) => {
    const listen = () => shared.bus.subscribe(pattern, (message) => void (isAsleep || handler(message)), options)
    let listening = listen()
    const set = (isThere: boolean): void => {
      listening.close()
      if (isThere) listening = listen()
    }
    if (pattern === alive) connection.add(set)
    return {
      close() {
        connection.delete(set)
        listening.close()
      },
    }
  }
  const bus: Bus = {
    ...shared.bus,
    publish: (...given) => isAsleep || shared.bus.publish(...given),
    subscribe,
    flush: () => back ?? shared.bus.flush(),
  }
  const beats = openBeats(t, { ...shared, bus }, nodeId)
  const node = await openCallNode({ ...shared, bus }, undefined, { ...over, nodeId, peers: beats })
  t.teardown(() => node.close())
  const standsStill = (still: boolean): void => void (isAsleep = still)
  const sleeps = (asleep: boolean): void => {
    isAsleep = asleep
    for (const set of connection) set(!asleep)
  }
  const cutOff = (): (() => void) => {
    const reached = Promise.withResolvers<void>()
    back = reached.promise
    sleeps(true)
    return reached.resolve
  }
  return { node, beats, sleeps, standsStill, cutOff }
}

export async function talk(shared: Shared, node: CallNode) {
  const { accountId, workerId } = await createTenant(shared.sql, { slug: newId() })
  const { callId, token } = await node.createWebCall(accountId, { workerId })
  const leg = createScriptedLeg(shared.bus, callId)
  const sessions = node.engine.configs.length
  const browser = listen(shared.bus, callId)
  await node.admission.admit(token, null)
  leg.event({ type: 'connected', providerStatus: 'connected' })
  await browser.until(status('in_progress'))
  await until(() => node.engine.configs.length > sessions)
  return { accountId, callId, leg, browser }
}
