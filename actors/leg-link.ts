/** Owns how an actor speaks with the leg of its call over the bus. */
import { subjectsOf, BusNoResponders, BusTimeout, type Bus } from '../model/bus.ts'
import { fromBytes, toBytes } from '../model/bus-json.ts'
import type { CallId } from '../model/ids.ts'
import { LegEvent, LegReply, type LegCommand } from '../model/leg.ts'

const replyTimeout = 2_000

/** Null when no leg is there to answer: it is gone, or its process is. */
export async function commandLeg(
  bus: Bus,
  callId: CallId,
  command: LegCommand,
  timeout: number = replyTimeout,
): Promise<LegReply | null> {
  try {
    const reply = await bus.request(subjectsOf(callId).legCommand, toBytes(command), { timeout })
    return LegReply.parse(fromBytes(reply))
  } catch (error) {
    if (error instanceof BusNoResponders || error instanceof BusTimeout) return null
    throw error
  }
}

/** Null for what is no event of a leg. */
export function toLegEvent(payload: Uint8Array): LegEvent | null {
  const parsed = LegEvent.safeParse(fromBytes(payload))
  return parsed.success ? parsed.data : null
}
