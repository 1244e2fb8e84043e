/** Owns what a line of a loaded call is, by web and by telephone, and the bad weather on its way. */
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import type { Random } from '../chaos/random.ts'
import type { LoadTally } from './load-tally.ts'
import type { Weather } from './load-job.ts'

export type LoadLine = {
  /** As the service names it; null: it does not tell. */
  readonly callId: string | null
  readonly audio: Pick<NegotiatedAudio, 'payloadType' | 'clockRateHz'> & { readonly codec: 'opus' | 'pcmu' }
  onPacket(listener: (packet: RtpPacket) => void): void
  send(packet: RtpPacket): void
  /** Resolves when the other side has ended it, with words. */
  readonly ended: Promise<string>
  /** Idempotent. */
  hangUp(): Promise<void>
}

/** Packets of the caller get lost or come late by lot. What is held back is dropped with the end of the call. */
export function weathered(
  line: LoadLine,
  { loss, jitterMs }: Weather,
  { random, tally }: { readonly random: Random; readonly tally: LoadTally },
): LoadLine {
  if (loss === 0 && jitterMs === 0) return line
  const held = new Set<NodeJS.Timeout>()
  return {
    ...line,
    send(packet) {
      if (loss > 0 && random.next() < loss) return tally.count('packetsWithheld')
      if (jitterMs === 0) return line.send(packet)
      const timer = setTimeout(() => {
        held.delete(timer)
        line.send(packet)
      }, random.next() * jitterMs)
      held.add(timer)
    },
    hangUp() {
      for (const timer of held) clearTimeout(timer)
      return line.hangUp()
    },
  }
}
