/**
 * Owns a leg's side of its transport: whether the caller is connected, and the suspicion that a caller is gone, because a browser that
 * vanishes sends no word of it.
 */
import type { NegotiatedAudio, RtpPacket, RtpTransport, RtpTransportHandlers } from '../../model/rtp-transport.ts'

export type LegWire = {
  readonly handlers: RtpTransportHandlers
  /** The transport belongs to the wire from here on. */
  readonly attach: (transport: RtpTransport) => void
  readonly isConnected: () => boolean
  /** Dropped while there is no transport. */
  readonly send: (packet: RtpPacket) => void
  /** Why the media is taken for lost, null while it is not. */
  readonly lost: () => string | null
  readonly transport: () => RtpTransport | null
  /** Idempotent. A transport that is attached later is closed at once. */
  readonly close: () => Promise<void>
}

export type LegWireDeps = {
  readonly now: () => number
  readonly negotiated: (audio: NegotiatedAudio) => void
  /** At most once. */
  readonly connected: (providerStatus: string) => void
  readonly packet: (packet: RtpPacket) => void
  readonly disconnected: RtpTransportHandlers['disconnected']
}

/** A call that waits for its leg gives up sooner; this ends the leg that nobody waits for any more. */
const connectedWithin = 60_000
const firstPacketWithin = 30_000
const nextPacketWithin = 15_000

export function createLegWire(deps: LegWireDeps): LegWire {
  const { now } = deps
  const createdAt = now()
  let transport: RtpTransport | null = null
  let connectedAt: number | null = null
  let packetAt: number | null = null
  let closed = false

  return {
    handlers: {
      negotiated: deps.negotiated,
      connected(providerStatus) {
        if (connectedAt !== null) return
        connectedAt = now()
        deps.connected(providerStatus)
      },
      packet(packet) {
        packetAt = now()
        deps.packet(packet)
      },
      disconnected: deps.disconnected,
    },
    attach(attached) {
      transport = attached
      if (closed) void attached.close()
    },
    isConnected: () => connectedAt !== null,
    send: (packet) => transport?.send(packet),
    lost() {
      if (connectedAt === null) return now() - createdAt > connectedWithin ? 'never connected' : null
      if (packetAt === null) return now() - connectedAt > firstPacketWithin ? 'no packet came' : null
      return now() - packetAt > nextPacketWithin ? 'packets stopped coming' : null
    },
    transport: () => transport,
    async close() {
      closed = true
      await transport?.close()
    },
  }
}
