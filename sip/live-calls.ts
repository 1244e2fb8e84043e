/** Owns the calls of this edge, each from the moment that its leg exists until nothing of it is left. */
import type { Bus } from '../model/bus.ts'
import type { Clock } from '../model/clock.ts'
import { deadline, goOn } from '../model/deadline.ts'
import type { CallId } from '../model/ids.ts'
import type { Log } from '../model/log.ts'
import type { LegSignaling } from '../model/rtp-transport.ts'
import type { Telephony } from '../model/telephony.ts'
import type { MediaPlane, PhoneCallLine, PhoneLeg } from '../media/plane/media-plane.ts'
import type { PhoneMedia } from './call/phone-media.ts'
import type { RealmPins } from './realm-pins.ts'
import type { CallLadder } from './call-ladder.ts'
import type { SipStack } from './stack.ts'

/** What every call of the edge needs. */
export type CallDeps = {
  readonly stack: SipStack
  readonly telephony: Telephony
  readonly bus: Bus
  readonly plane: Pick<MediaPlane, 'openPhone'>
  readonly liveCalls: LiveCalls
  readonly pins?: RealmPins
  /** Of a server in this process: a dialog that goes on elsewhere is no more here, without a word to the peer. */
  readonly forget?: (dialogId: string) => void
  /** The same server refreshes sessions by itself, and tells what the peer answers to that. The result lets go of it. */
  readonly onRefreshed?: (dialogId: string, told: (description: string) => void) => () => void
  readonly clock: Clock
  readonly log: Log
}

export type LiveCall = {
  readonly callId: CallId
  readonly leg: PhoneLeg
  readonly media: PhoneMedia<PhoneCallLine>
  /** Its SIP messages are those of this Call-ID, too. */
  signaledAs(sipCallId: string): void
}

type LiveCallParts = {
  readonly callId: CallId
  /** It came over from another edge. */
  readonly isFurther?: boolean
  readonly media: PhoneMedia<PhoneCallLine>
  readonly signaling: LegSignaling
  readonly connectWithin: number
  /** The leg is done with the call: by `reason` (RtpTransport.close). Idempotent. */
  readonly hangUp: (reason: string | undefined) => void
  /** The SIP server is gone, and the call with it. */
  readonly lost: (live: LiveCall) => void
  /** Its dialog is whoever's goes on with it, without a word to the peer. False: it stays here. */
  readonly leave: () => boolean
}

export type LiveCalls = {
  /** The leg of a call; see PhoneLeg. */
  open(deps: Pick<CallDeps, 'stack'>, parts: LiveCallParts): LiveCall
  has(callId: CallId): boolean
  size(): number
  /** Those whose telephones others may ask over; nothing of them is here any more when it resolves. */
  leave(): Promise<CallId[]>
  /** Resolves when there are none, or after `ms`. */
  drained(clock: Clock, ms: number): Promise<void>
  /** Hangs up what there is. Actors on other nodes are told, and have a moment to learn what was recorded. */
  close(clock: Clock): Promise<void>
}

/** Ms for actors to close the legs of calls that are hung up because the service stops. */
const farewellWithin = 1_500

/** `ladder`: who keeps the SIP messages of calls; absent: nobody does. */
export function createLiveCalls(ladder: CallLadder | null = null): LiveCalls {
  const liveCalls = new Map<CallId, LiveCall & Pick<LiveCallParts, 'leave'>>()
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
    open({ stack }, { callId, media, lost, leave, ...wanted }) {
      const onClosed = () => {
        forget()
        ladder?.ended(callId)
        gone(callId)
      }
      const leg = media.line.begin({ callId, ...wanted, onClosed })
      const signaledAs = (sipCallId: string): void => ladder?.began(callId, sipCallId)
      const live: LiveCall = { callId, leg, media, signaledAs }
      const forget = stack.onLost(() => lost(live))
      liveCalls.set(callId, { ...live, leave })
      return live
    },
    has: (callId) => liveCalls.has(callId),
    size: () => liveCalls.size,
    async leave() {
      const left = [...liveCalls.values()].filter((live) => live.leave())
      await Promise.all(left.map(({ leg }) => leg.close('handed_on')))
      return left.map(({ callId }) => callId)
    },
    drained,
    async close(clock) {
      for (const { leg } of liveCalls.values()) leg.handlers.disconnected('failed', 'the service is stopping')
      await drained(clock, farewellWithin)
      await Promise.all([...liveCalls.values()].map(({ leg }) => leg.close('service_stopping')))
    },
  }
}
