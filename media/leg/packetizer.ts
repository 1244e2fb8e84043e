/**
 * Owns how sound is cut into packets: 20 ms of it come in, packets of the length that the peer asked for (`ptime`) go out. For codecs whose
 * bytes can be cut anywhere (G.711, G.722).
 */

export type Packetizer = {
  /** 20 ms of sound; `timestamp` is that of its first sample. The marker is that of the packet in which this begins. */
  readonly add: (payload: Uint8Array, timestamp: number, marker: boolean) => void
  /** Some sound waits for the rest of its packet. */
  readonly isWaiting: () => boolean
  /** Sends what waits as a shorter packet. */
  readonly flush: () => void
}

export type PacketizerOptions = {
  readonly packetMs: number
  /** Bytes and units of the RTP clock in one millisecond; both codecs have as many of the one as of the other. */
  readonly bytesPerMs: number
  /** The payload is the receiver's own. */
  readonly send: (payload: Uint8Array, timestamp: number, marker: boolean) => void
}

export function createPacketizer({ packetMs, bytesPerMs, send }: PacketizerOptions): Packetizer {
  const size = packetMs * bytesPerMs
  const rest = new Uint8Array(size)
  let filled = 0
  let startsAt = 0
  let isMarked = false

  const emit = (payload: Uint8Array) => {
    send(payload, startsAt, isMarked)
    startsAt = (startsAt + payload.length) >>> 0
    isMarked = false
  }
  const flush = () => {
    if (filled > 0) emit(rest.slice(0, filled))
    filled = 0
  }
  const append = (payload: Uint8Array) => {
    let at = 0
    while (at < payload.length) {
      const part = payload.subarray(at, at + size - filled)
      at += part.length
      rest.set(part, filled)
      filled += part.length
      if (filled === size) flush()
    }
  }

  return {
    isWaiting: () => filled > 0,
    flush,
    add(payload, timestamp, marker) {
      // A gap in time lies between what waits and this: they cannot share a packet.
      if (filled > 0 && timestamp !== (startsAt + filled) >>> 0) flush()
      if (filled === 0) startsAt = timestamp
      isMarked ||= marker
      if (filled === 0 && payload.length === size) return emit(payload)
      append(payload)
    },
  }
}
