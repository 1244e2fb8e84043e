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

type Source = { readonly ssrc: number; highest: number }

export function createNewestPackets(): NewestPackets {
  let sources: Source[] = []

  function sourceOf(ssrc: number): Source | null {
    for (const source of sources) if (source.ssrc === ssrc) return source
    return null
  }

  return {
    placeOf: (ssrc, sequenceNumber) => placeIn(sourceOf(ssrc), sequenceNumber),
    follow(ssrc, sequenceNumber) {
      const source = sourceOf(ssrc)
      const place = placeIn(source, sequenceNumber)
      if (place === 'late') return place
      if (source !== null) source.highest = sequenceNumber
      else sources = [...(sources.length < maxSources ? sources : []), { ssrc, highest: sequenceNumber }]
      return place
    },
    clear: () => void (sources = []),
  }
}

function placeIn(source: Source | null, sequenceNumber: number): PacketPlace {
  if (source === null) return 'first'
  return ((sequenceNumber - source.highest) << 16) >> 16 > 0 ? 'newest' : 'late'
}
