/** Owns how an actor speaks with the leg of its call over the bus. */
import { subjectsOf, BusAway, BusNoResponders, BusTimeout, type Bus } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import { LegEvent, LegReply, type LegCommand } from '../../model/leg.ts'

const replyTimeout = 2_000
/** Ms for which a leg that cannot be reached because the bus is away is asked again. */
const patience = 30_000

/** No subscriber answers: the leg is gone, or was never made. */
export type NoLeg = { readonly type: 'gone' }
/** The leg is subscribed and does not answer in time. */
export type SilentLeg = { readonly type: 'silent' }
/** Nothing is known of the leg: the bus is away. */
export type FarLeg = { readonly type: 'away' }
type Reached = LegReply | NoLeg | SilentLeg | FarLeg

/** What a leg may be told twice. */
const isRepeatable = ({ type }: LegCommand): boolean => type !== 'send_dtmf' && type !== 'transfer'

/** Waits for a bus that is away, for half a minute, where the command can be given again, or was not yet. */
export async function reachLeg(
  bus: Bus,
  callId: CallId,
  command: LegCommand,
  timeout: number = replyTimeout,
): Promise<Reached> {
  for (let tried = 1; ; tried++) {
    const reached = await askLeg(bus, callId, command, timeout)
    if (!(reached instanceof BusAway)) return reached
    if (tried * timeout >= patience || (reached.wasSent && !isRepeatable(command))) return { type: 'away' }
  }
}

async function askLeg(bus: Bus, callId: CallId, command: LegCommand, timeout: number): Promise<Reached | BusAway> {
  try {
    const reply = await bus.request(subjectsOf(callId).legCommand, toBytes(command), { timeout })
    return LegReply.parse(fromBytes(reply))
  } catch (error) {
    if (error instanceof BusNoResponders) return { type: 'gone' }
    if (error instanceof BusAway) return error
    if (error instanceof BusTimeout) return { type: 'silent' }
    throw error
  }
}

/** The process that the leg is in; null: it has not told so by then. */
export async function nodeOfLeg(bus: Bus, callId: CallId, epoch: number, timeout: number): Promise<NodeId | null> {
  const reply = await askLeg(bus, callId, { type: 'ping', epoch }, timeout).catch(() => null)
  return reply !== null && 'node' in reply && reply.node !== undefined ? (reply.node as NodeId) : null
}

/** Null when no leg answers: it is gone, its process is, or the bus has been away for too long. */
export async function commandLeg(
  bus: Bus,
  callId: CallId,
  command: LegCommand,
  timeout: number = replyTimeout,
): Promise<LegReply | null> {
  const reply = await reachLeg(bus, callId, command, timeout)
  return reply.type === 'gone' || reply.type === 'silent' || reply.type === 'away' ? null : reply
}

/** Null for what is no event of a leg. */
export function toLegEvent(payload: Uint8Array): LegEvent | null {
  const parsed = LegEvent.safeParse(fromBytes(payload))
  return parsed.success ? parsed.data : null
}
