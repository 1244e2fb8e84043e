/** Owns the calls of this edge: one line each, from the moment its leg exists until nothing of it is left. */
import type { Bus } from '../model/bus.ts'
import type { Clock } from '../model/clock.ts'
import { deadline, goOn } from '../model/deadline.ts'
import type { CallId } from '../model/ids.ts'
import type { Log } from '../model/log.ts'
import type { LegSignaling } from '../model/rtp-transport.ts'
import type { Telephony } from '../model/telephony.ts'
import type { Leg } from '../media/leg/leg.ts'
import type { MediaDeps, PhoneMedia } from './call/phone-media.ts'
import type { SipStack } from './stack.ts'

export type PhoneLeg = Pick<Leg, 'handlers' | 'attach' | 'dtmf' | 'close'>

/** `onClosed` comes once, when the leg and its transport are gone. */
export type CreatePhoneLeg = (wanted: {
  readonly callId: CallId
  readonly signaling: LegSignaling
  /** Ms from now until it must be answered. */
  readonly connectWithin: number
  readonly onClosed: () => void
}) => PhoneLeg

/** What every call of the edge needs. */
export type CallDeps = {
  readonly stack: SipStack
  readonly telephony: Telephony
  readonly bus: Bus
  readonly media: MediaDeps
  readonly createLeg: CreatePhoneLeg
  readonly lines: Lines
  readonly clock: Clock
  readonly log: Log
}

export type Line = {
  readonly callId: CallId
  readonly leg: PhoneLeg
  readonly media: PhoneMedia
}

type LineParts = {
  readonly callId: CallId
  readonly media: PhoneMedia
  readonly signaling: LegSignaling
  readonly connectWithin: number
  /** The leg is done with the call: by `reason` (RtpTransport.close). Idempotent. */
  readonly hangUp: (reason: string | undefined) => void
  /** The SIP server is gone, and the call with it. */
  readonly lost: (line: Line) => void
}

export type Lines = {
  /** The leg of a call, on the bus when it returns. */
  open(deps: Pick<CallDeps, 'createLeg' | 'stack'>, parts: LineParts): Line
  has(callId: CallId): boolean
  size(): number
  /** Resolves when there are none, or after `ms`. */
  drained(clock: Clock, ms: number): Promise<void>
  /** Hangs up what there is. Actors on other nodes are told, and have a moment to learn what was recorded. */
  close(clock: Clock): Promise<void>
}

/** Ms for actors to close the legs of calls that are hung up because the service stops. */
const farewellWithin = 1_500

export function createLines(): Lines {
  const lines = new Map<CallId, Line>()
  const waiting = new Set<() => void>()

  const drained = async (clock: Clock, ms: number): Promise<void> => {
    if (lines.size === 0 || ms <= 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.add(resolve)
    await deadline(clock, ms, promise, goOn)
    waiting.delete(resolve)
  }
  const gone = (callId: CallId) => {
    lines.delete(callId)
    if (lines.size === 0) for (const resolve of waiting) resolve()
  }

  return {
    open({ createLeg, stack }, { callId, media, signaling, connectWithin, hangUp, lost }) {
      const onClosed = () => {
        forget()
        gone(callId)
      }
      const leg = createLeg({ callId, signaling, connectWithin, onClosed })
      const line: Line = { callId, leg, media }
      const forget = stack.onLost(() => lost(line))
      lines.set(callId, line)
      media.tell(leg.handlers)
      leg.attach({
        send: media.transport.send,
        stats: media.transport.stats,
        close(reason) {
          hangUp(reason)
          return media.close(reason)
        },
      })
      return line
    },
    has: (callId) => lines.has(callId),
    size: () => lines.size,
    drained,
    async close(clock) {
      for (const { leg } of lines.values()) leg.handlers.disconnected('failed', 'the service is stopping')
      await drained(clock, farewellWithin)
      await Promise.all([...lines.values()].map(({ leg }) => leg.close('service_stopping')))
    },
  }
}
