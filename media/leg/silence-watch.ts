/**
 * Owns how long a peer has been silent, and when that means that it is gone: a browser or telephone that vanishes sends no word of it. A
 * client that has a signaling socket, or may come back to it, may be muted, on hold or on its way to another network; then it is its
 * consent that ends (RFC 7675 §5.1). One whose page closed the socket and falls silent as well has left.
 */
import type { Presence } from '../../model/rtp-transport.ts'

export type SilenceWatch = {
  /** Sound came. `isRest`: comfort noise, the word that none comes for a while, or of a peer that pauses without a word. */
  packet(isRest?: boolean): void
  /** Another sign of life: RTCP. */
  alive(): void
  /** A check of ICE. */
  consented(): void
  presence(presence: Presence): void
  /** Time before this is no silence. */
  restart(): void
  /** Asked at every tick: why the peer is taken for gone, null while it is not. */
  gone(): string | null
  /** When the last sign of it came; the beginning and the end of a hold count. */
  heardAt(): number
  /** What its end is, should it be gone now: a page that closed its socket hung up. */
  cause(): 'hung_up' | 'media_lost'
  /** Its socket is gone, for whatever reason. */
  hasLeft(): boolean
}

const firstPacketWithin = 30_000
const nextPacketWithin = 15_000
/** A gateway without RTCP sends nothing more until its caller speaks, or the noise around them changes. RFC 3389 §4. */
const packetAfterRestWithin = 60_000
/** RFC 7675 §5.1: consent is good for so long. */
const consentFor = 30_000
/** After its page left: of a client that was sending sound, and of one on hold, which Firefox lets check every 4 to 6 s only. */
const leftFor = { sounding: 4_000, onHold: 13_000 } as const
/** Sound that is so much older than the last sign of life had ended before. */
const soundingFor = 1_000
/** A tick that comes later tells of this process and not of the peer. */
const longestTick = 200

export function createSilenceWatch(now: () => number): SilenceWatch {
  let presence: Presence = 'none'
  let hadSocket = false
  let heardAt = now()
  let hasSent = false
  let isResting = false
  let soundAt = Number.NEGATIVE_INFINITY
  let signAt = Number.NEGATIVE_INFINITY
  /** Since when the peer owes a packet or a report. */
  let waitsSince = now()
  let askedAt = now()
  /** Of ticks without any sign of life. */
  let silentMs = 0

  function sign(): void {
    signAt = now()
    heardAt = signAt
    silentMs = 0
  }

  function restart(): void {
    waitsSince = now()
    silentMs = 0
  }

  function withoutPackets(at: number): string | null {
    if (!hasSent) return at - waitsSince > firstPacketWithin ? 'no packet came' : null
    return at - waitsSince > (isResting ? packetAfterRestWithin : nextPacketWithin) ? 'packets stopped coming' : null
  }

  function withoutPage(): string | null {
    const isSounding = signAt - soundAt <= soundingFor
    return silentMs > (isSounding ? leftFor.sounding : leftFor.onHold) ? 'page and media of the client ended' : null
  }

  return {
    packet(isRest = false) {
      hasSent = true
      isResting = isRest
      sign()
      soundAt = signAt
      waitsSince = signAt
    },
    alive() {
      sign()
      waitsSince = signAt
    },
    consented: sign,
    presence(next) {
      if (next === presence) return
      presence = next
      hadSocket = true
      // Whoever has been silent until here has had time to come back.
      if (next === 'none') waitsSince = Math.max(waitsSince, signAt)
      else restart()
    },
    restart() {
      heardAt = now()
      restart()
    },
    gone() {
      const at = now()
      silentMs += Math.min(longestTick, at - askedAt)
      askedAt = at
      switch (presence) {
        case 'none':
          return withoutPackets(at)
        case 'open':
        case 'lost':
          return silentMs > consentFor ? 'consent ended' : null
        case 'left':
          return withoutPage()
      }
    },
    heardAt: () => heardAt,
    cause: () => (presence === 'left' ? 'hung_up' : 'media_lost'),
    hasLeft: () => hadSocket && presence !== 'open',
  }
}
