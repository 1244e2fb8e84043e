/** Owns the lines of a media thread as its owner opens and uses them (remote-plane.ts): real ones, in this thread. */
import type { CallId } from '../../model/ids.ts'
import type { Ticker } from '../ticker/ticker.ts'
import {
  mirrored,
  type FarCall,
  type OwnerMethods,
  type PhoneMethods,
  type PhoneOwnerMethods,
  type PlaneMethods,
  type WebMethods,
  type WebOwnerMethods,
} from './far-lines.ts'
import type { Link } from './link.ts'
import type { MediaPlane, PhoneCallLine, PhoneLeg, WebMediaEvents } from './media-plane.ts'

type Deps = {
  readonly link: Link
  readonly plane: MediaPlane
  readonly ticker: Pick<Ticker, 'join'>
  /** What a leg has subscribed to is known on the bus when it resolves. */
  readonly flush: () => Promise<void>
  readonly beat: () => void
  readonly close: () => Promise<void>
}

export type ServedPlane = {
  /** For who makes legs in this thread; the result says that it is gone. */
  legBegan(callId: CallId, close: (reason: string) => Promise<void>): () => void
}

/** Packets are counted for who looks once a second. The first one is told at once: whether there was sound at all decides what its end means. */
const ticksPerCount = 25

export function servePlane(given: (served: ServedPlane) => Deps): void {
  const closers = new Map<CallId, (reason: string) => Promise<void>>()
  const deps = given({
    legBegan(callId, close) {
      closers.set(callId, close)
      owner().tell('legBegan', callId)
      return () => {
        closers.delete(callId)
        owner().tell('legEnded', callId)
      }
    },
  })
  const owner = () => deps.link.to<OwnerMethods>(0)
  deps.link.serve(0, {
    async openPhone(id, mirror) {
      const line = await deps.plane.openPhone()
      servePhone(deps, { id, line, mirror: new Int32Array(mirror) })
      return line.local
    },
    openWeb: (id, of, mirror) => serveWeb(deps, { id, ...of, mirror: new Int32Array(mirror) }),
    closeLeg: async (callId, reason) => closers.get(callId)?.(reason),
    beat: () => deps.beat(),
    async close() {
      await Promise.all([...closers.values()].map((closeLeg) => closeLeg('service_stopping')))
      await deps.close()
    },
  } satisfies PlaneMethods)
}

type Phone = { readonly id: number; readonly line: PhoneCallLine; readonly mirror: Int32Array }

function servePhone({ link, ticker, flush }: Deps, { id, line, mirror }: Phone): void {
  const owner = link.to<PhoneOwnerMethods>(id)
  let leg: PhoneLeg | null = null
  let untilCount = 1
  const count = (): void => {
    const packets = line.packetsReceived()
    untilCount = packets === 0 ? 1 : ticksPerCount
    Atomics.store(mirror, mirrored.packets, packets)
  }
  const leave = ticker.join(() => {
    if (line.hearsKeys()) Atomics.store(mirror, mirrored.hearsKeys, 1)
    if (--untilCount === 0) count()
  })
  const forget = (): void => {
    leave()
    unserve()
  }
  const unserve = link.serve(id, {
    use: line.use,
    async begin(of, connectWithin) {
      const signaling = {
        answer: () => owner.tell('answer'),
        transfer: (to: string) => owner.ask('transfer', to),
        sendDtmf: (digits: string) => owner.ask('sendDtmf', digits),
      }
      const onClosed = (): void => {
        forget()
        owner.tell('closed')
      }
      const hangUp = (reason: string | undefined): void => owner.tell('hangUp', reason)
      try {
        leg = line.begin({ ...of, signaling, connectWithin, hangUp, onClosed })
      } catch (error) {
        await line.close('failed')
        hangUp('failed')
        onClosed()
        throw error
      }
      await flush()
    },
    event(name, args) {
      const handler = leg?.handlers[name] as ((...given: readonly unknown[]) => void) | undefined
      handler?.(...args)
    },
    dtmf: (digit) => leg?.dtmf(digit),
    closeLeg: async (reason) => leg?.close(reason),
    async close(reason) {
      forget()
      await line.close(reason)
    },
  } satisfies PhoneMethods)
}

type Web = FarCall & { readonly id: number; readonly mirror: Int32Array }

function serveWeb({ link, plane, ticker, flush }: Deps, { id, callId, isFurther, mirror }: Web): void {
  const owner = link.to<WebOwnerMethods>(id)
  const events: WebMediaEvents = {
    legClosed: (reason) => owner.tell('legClosed', reason),
    failed: (error) => owner.tell('failed', error instanceof Error ? error.message : String(error)),
    gone() {
      leave()
      unserve()
      owner.tell('gone')
    },
  }
  const media = plane.openWeb(callId, events, isFurther)
  const look = (): void => void Atomics.store(mirror, mirrored.reached, media.wasReached() ? 1 : 0)
  const leave = ticker.join(look)
  const unserve = link.serve(id, {
    async answer(offer) {
      const sdp = await media.answer(offer)
      look()
      await flush()
      return sdp
    },
    addCandidate: media.addCandidate,
    dtmf: media.dtmf,
    typed: media.typed,
    hangUp: (details) => void media.hangUp(details),
    presence: media.presence,
    release: media.release,
    close: media.close,
  } satisfies WebMethods)
}
