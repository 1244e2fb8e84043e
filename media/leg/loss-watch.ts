/**
 * Owns what is believed of the way to the peer: how much of our sound gets lost, by the peer's reports. Loss is believed at once, and its
 * end only report by report, because redundancy that comes too late helps nobody. Pure. RFC 3550 §6.4.1, RFC 7587 §3.3.
 */
import type { TransportQuality } from '../../model/rtp-transport.ts'

export type LossWatch = {
  /** Asked every now and then: percent to expect, null while nothing has changed. */
  news(peer: TransportQuality['peer']): number | null
}

/** Before the first report: a bad line is not known yet, and the first words count. */
export const expectedAtFirst = 5
/** A report on fewer packets tells of chance: the agent was silent. */
const packetsThatTell = 10
/** Of what was believed, when the next report says less. */
const keeps = 0.5
/** Less than one packet in two hundred is none. */
const least = 0.5

export function createLossWatch(): LossWatch {
  let seen: TransportQuality['peer'] = null
  let packetsBefore = 0
  let believed = expectedAtFirst
  let told = expectedAtFirst

  function believe(percent: number): void {
    const next = Math.max(percent, believed * keeps + percent * (1 - keeps))
    believed = next < least ? 0 : next
  }

  return {
    news(peer) {
      if (peer === null || peer === seen) return null
      seen = peer
      if (peer.packetsSent - packetsBefore < packetsThatTell) return null
      packetsBefore = peer.packetsSent
      believe(peer.fractionLost * 100)
      const percent = Math.round(believed)
      if (percent === told) return null
      told = percent
      return percent
    },
  }
}
