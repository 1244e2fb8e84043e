/** Owns which packet of each source is the newest: one that comes late, or again, does not tell where its sender is now. Pure. RFC 3550 §5.1. */

export type NewestPackets = {
  placeOf(ssrc: number, sequenceNumber: number): PacketPlace
  /** The same, and remembers it. */
  follow(ssrc: number, sequenceNumber: number): PacketPlace
  clear(): void
}

/** Among those of its source: the `first` that was heard, newer than all before, or not. */
export type PacketPlace = 'first' | 'newest' | 'late'

/** A peer has one at a time. */
const maxSources = 4

export function createNewestPackets(): NewestPackets {
  /** Highest sequence numbers by SSRC. */
  const sources = new Map<number, number>()

  function placeOf(ssrc: number, sequenceNumber: number): PacketPlace {
    const highest = sources.get(ssrc)
    if (highest === undefined) return 'first'
    return ((sequenceNumber - highest) << 16) >> 16 > 0 ? 'newest' : 'late'
  }

  return {
    placeOf,
    follow(ssrc, sequenceNumber) {
      const place = placeOf(ssrc, sequenceNumber)
      if (place === 'late') return place
      if (place === 'first' && sources.size >= maxSources) sources.clear()
      sources.set(ssrc, sequenceNumber)
      return place
    },
    clear: () => sources.clear(),
  }
}
