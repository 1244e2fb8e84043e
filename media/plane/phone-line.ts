/**
 * Owns the wire of one phone call in the thread that carries its sound: its RTP endpoint on a pair of ports, and who hears of it. What offer and
 * answer say is the business of who opened it (`sip/call/phone-media.ts`).
 */
import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../../model/log.ts'
import type { LegHandlers, RtpTransport } from '../../model/rtp-transport.ts'
import type { Family } from '../../net/addresses.ts'
import type { MediaPorts } from '../rtp/media-ports.ts'
import type { MediaSession } from '../rtp/media-session.ts'
import type { Ticker } from '../ticker/ticker.ts'

export type PhoneLine = {
  /** As a peer reaches it. */
  readonly local: { readonly address: string; readonly port: number; readonly rtcpPort: number }
  /** The same by an address of this family; null: there is none. */
  addressFor(family: Family): string | null
  /** What offer and answer agreed on: at first, and again after each re-INVITE. */
  use(session: MediaSession): void
  /** Key presses have come with the sound: those that come by another way too are the same ones. */
  hearsKeys(): boolean
  /** So far. */
  packetsReceived(): number
  /** Idempotent; the ports are free when it resolves. */
  close(reason?: string): Promise<void>
}

export type LineListener = Pick<LegHandlers, 'negotiated' | 'packet' | 'alive' | 'held'>

/** A line whose sound is in this thread. */
export type OpenPhoneLine = PhoneLine & {
  readonly transport: RtpTransport
  /** Who is told of the sound from now on. */
  tell(listener: LineListener): void
}

export type PhoneLineDeps = { readonly ports: MediaPorts; readonly ticker: Ticker; readonly log: Log }

/** Rejects with NoPortsLeft, see media/rtp/media-ports.ts. */
export async function openPhoneLine({ ports, ticker, log }: PhoneLineDeps): Promise<OpenPhoneLine> {
  let listener: LineListener | null = null
  let inUse: MediaSession | null = null
  let hearsKeys = false
  const endpoint = await ports.open({
    packet(packet) {
      hearsKeys ||= packet.payloadType === inUse?.audio.telephoneEventPayloadType
      listener?.packet(packet)
    },
    alive: () => listener?.alive(),
    learned: ({ asSignaled }) => log.debug('RTP source was learned', { asSignaled }),
  })
  const leave = ticker.join((at) => endpoint.tick(at))
  return {
    local: endpoint.local,
    transport: endpoint,
    addressFor: ports.addressFor,
    tell: (told) => void (listener = told),
    use(session) {
      const before = inUse
      inUse = session
      endpoint.use(session)
      if (!isDeepStrictEqual(before?.audio, session.audio)) listener?.negotiated(session.audio)
      if (isHeld(before) !== isHeld(session) || listens(before) !== listens(session))
        listener?.held(isHeld(session), listens(session))
    },
    hearsKeys: () => hearsKeys,
    packetsReceived: () => endpoint.stats().packetsReceived,
    close(reason) {
      leave()
      return endpoint.close(reason)
    },
  }
}

/** Nothing comes of a peer that only listens, so its silence is no loss. RFC 3264 §8.4. */
export const isHeld = (session: MediaSession | null): boolean => session !== null && session.direction !== 'sendrecv'

/** A peer that says `a=recvonly` has closed its own microphone: it hears what is said. */
const listens = (session: MediaSession | null): boolean => session?.direction === 'sendonly'
