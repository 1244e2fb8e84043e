/** Owns what is known of the packets of one source: how many should have come, how many did, and how regularly. Pure. RFC 3550 §A.1, §A.3, §A.8. */

export type Reception = {
  /** `timestamp`: null for packets whose timestamp says nothing of their arrival (telephone events). */
  add(sequenceNumber: number, timestamp: number | null, at: number): void
  /** Nothing was to come until the next packet: what is missing before it is not lost. */
  rest(): void
  /** Since the source was first heard; never negative. */
  lost(): number
  jitterMs(): number
  /** For a report; the next one counts the fraction from here on. */
  report(): ReceptionReport
}

/** In the units of a report block, §6.4.1. */
export type ReceptionReport = {
  /** 0 to 255 of 256. */
  readonly fractionLost: number
  readonly packetsLost: number
  readonly highestSequence: number
  readonly jitter: number
}

/** A greater step is a new beginning, when the next packet goes on with it. */
const maxStep = 3000
/** A timestamp that is further off is another line of time. */
const maxTransitMs = 5000

export function createReception(clockRateHz: number): Reception {
  const jitter = createInterarrivalJitter(clockRateHz)
  /** With the number of wraps above its 16 bits; -1 before the first packet. */
  let highest = -1
  let first = 0
  let received = 0
  let suspect: number | null = null
  let isResting = false
  let reported = { expected: 0, received: 0 }

  const expected = (): number => highest - first + 1
  const lostSoFar = (): number => Math.max(0, expected() - received)

  function beginAt(sequenceNumber: number): void {
    first = highest = sequenceNumber
    received = 1
    reported = { expected: 0, received: 0 }
  }

  function count(sequenceNumber: number): void {
    if (highest < 0) return beginAt(sequenceNumber)
    const step = ((sequenceNumber - highest) << 16) >> 16
    const isStrange = Math.abs(step) > maxStep
    if (isStrange && sequenceNumber === suspect) beginAt(sequenceNumber)
    suspect = isStrange ? (sequenceNumber + 1) & 0xffff : null
    if (isStrange) return
    received += 1
    if (isResting && step > 1) first += step - 1
    isResting = false
    highest = Math.max(highest, highest + step)
  }

  return {
    add(sequenceNumber, timestamp, at) {
      count(sequenceNumber)
      if (timestamp !== null) jitter.add(timestamp, at)
    },
    rest: () => void (isResting = true),
    lost: lostSoFar,
    jitterMs: () => (jitter.units() * 1000) / clockRateHz,
    report() {
      const [since, came] = [expected() - reported.expected, received - reported.received]
      reported = { expected: expected(), received }
      return {
        fractionLost: since > 0 && since > came ? Math.min(255, Math.floor(((since - came) * 256) / since)) : 0,
        // 24 bits, signed; we never say more came than should have.
        packetsLost: Math.min(lostSoFar(), 0x7f_ffff),
        highestSequence: Math.max(0, highest) % 0x1_0000_0000,
        jitter: Math.floor(jitter.units()),
      }
    },
  }
}

function createInterarrivalJitter(clockRateHz: number) {
  // Changed in place: of numbers in variables each packet would make new ones.
  const last = { units: 0, timestamp: 0, at: Number.NaN }
  return {
    units: () => last.units,
    add(timestamp: number, at: number): void {
      const sentMs = (((timestamp - last.timestamp) | 0) * 1000) / clockRateHz
      const offMs = Math.abs(at - last.at - sentMs)
      // Of the first one it is no number.
      if (offMs < maxTransitMs) last.units += ((offMs * clockRateHz) / 1000 - last.units) / 16
      last.timestamp = timestamp
      last.at = at
    },
  }
}
