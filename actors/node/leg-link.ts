/** Owns how an actor speaks with the leg of its call over the bus. */
import { subjectsOf, BusNoResponders, BusTimeout, type Bus } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import type { CallId } from '../../model/ids.ts'
import { LegEvent, LegReply, type LegCommand } from '../../model/leg.ts'

const replyTimeout = 2_000

/** No subscriber answers: the leg is gone, or was never made. */
export type NoLeg = { readonly type: 'gone' }
/** The leg is subscribed and does not answer in time. */
export type SilentLeg = { readonly type: 'silent' }

export async function reachLeg(
  bus: Bus,
  callId: CallId,
  command: LegCommand,
  timeout: number = replyTimeout,
): Promise<LegReply | NoLeg | SilentLeg> {
  try {
    const reply = await bus.request(subjectsOf(callId).legCommand, toBytes(command), { timeout })
    return LegReply.parse(fromBytes(reply))
  } catch (error) {
    if (error instanceof BusNoResponders) return { type: 'gone' }
    if (error instanceof BusTimeout) return { type: 'silent' }
    throw error
  }
}

/** Null when no leg answers: it is gone, or its process is. */
export async function commandLeg(
  bus: Bus,
  callId: CallId,
  command: LegCommand,
  timeout: number = replyTimeout,
): Promise<LegReply | null> {
  const reply = await reachLeg(bus, callId, command, timeout)
  return reply.type === 'gone' || reply.type === 'silent' ? null : reply
}

/** Null for what is no event of a leg. */
export function toLegEvent(payload: Uint8Array): LegEvent | null {
  const parsed = LegEvent.safeParse(fromBytes(payload))
  return parsed.success ? parsed.data : null
}
