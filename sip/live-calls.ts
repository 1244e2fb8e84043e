/** Owns the calls of this edge, each from the moment that its leg exists until nothing of it is left. */
import type { Bus } from '../model/bus.ts'
import type { Clock } from '../model/clock.ts'
import { deadline, goOn } from '../model/deadline.ts'
import type { CallId } from '../model/ids.ts'
import type { Log } from '../model/log.ts'
import type { LegSignaling } from '../model/rtp-transport.ts'
import type { Telephony } from '../model/telephony.ts'
import type { Leg } from '../media/leg/leg.ts'
import type { MediaDeps, PhoneMedia } from './call/phone-media.ts'
import type { RealmPins } from './realm-pins.ts'
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
  readonly liveCalls: LiveCalls
  readonly pins?: RealmPins
  readonly clock: Clock
  readonly log: Log
}

export type LiveCall = {
  readonly callId: CallId
  readonly leg: PhoneLeg
  readonly media: PhoneMedia
}

type LiveCallParts = {
  readonly callId: CallId
  readonly media: PhoneMedia
  readonly signaling: LegSignaling
  readonly connectWithin: number
  /** The leg is done with the call: by `reason` (RtpTransport.close). Idempotent. */
  readonly hangUp: (reason: string | undefined) => void
  /** The SIP server is gone, and the call with it. */
  readonly lost: (live: LiveCall) => void
}

export type LiveCalls = {
  /** The leg of a call, on the bus when it returns. */
  open(deps: Pick<CallDeps, 'createLeg' | 'stack'>, parts: LiveCallParts): LiveCall
  has(callId: CallId): boolean
  size(): number
  /** Resolves when there are none, or after `ms`. */
  drained(clock: Clock, ms: number): Promise<void>
  /** Hangs up what there is. Actors on other nodes are told, and have a moment to learn what was recorded. */
  close(clock: Clock): Promise<void>
}

/** Ms for actors to close the legs of calls that are hung up because the service stops. */
const farewellWithin = 1_500

export function createLiveCalls(): LiveCalls {
  const liveCalls = new Map<CallId, LiveCall>()
  const waiting = new Set<() => void>()

  const drained = async (clock: Clock, ms: number): Promise<void> => {
    if (liveCalls.size === 0 || ms <= 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.add(resolve)
    await deadline(clock, ms, promise, goOn)
    waiting.delete(resolve)
  }
  const gone = (callId: CallId) => {
    liveCalls.delete(callId)
    if (liveCalls.size === 0) for (const resolve of waiting) resolve()
  }

  return {
    open({ createLeg, stack }, { callId, media, signaling, connectWithin, hangUp, lost }) {
      const onClosed = () => {
        forget()
        gone(callId)
      }
      const leg = createLeg({ callId, signaling, connectWithin, onClosed })
      const live: LiveCall = { callId, leg, media }
      const forget = stack.onLost(() => lost(live))
      liveCalls.set(callId, live)
      media.tell(leg.handlers)
      leg.attach({
        send: media.transport.send,
        stats: media.transport.stats,
        close(reason) {
          hangUp(reason)
          return media.close(reason)
        },
      })
      return live
    },
    has: (callId) => liveCalls.has(callId),
    size: () => liveCalls.size,
    drained,
    async close(clock) {
      for (const { leg } of liveCalls.values()) leg.handlers.disconnected('failed', 'the service is stopping')
      await drained(clock, farewellWithin)
      await Promise.all([...liveCalls.values()].map(({ leg }) => leg.close('service_stopping')))
    },
  }
}
