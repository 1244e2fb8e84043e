/** Owns pages of the Ogg container (RFC 3533 §6): packets, their lacing, granule position and checksum. */

export type OggPage = {
  readonly serial: number
  /** Counts the pages of the stream. */
  readonly sequence: number
  /** What the stream has reached with the last packet of the page, in the units of its codec. */
  readonly granule: number
  readonly isFirst?: boolean
  readonly isLast?: boolean
  /** Whole packets; their lacing takes 255 segments at most. */
  readonly packets: readonly Uint8Array[]
}

const headBytes = 27
const firstPage = 2
const lastPage = 4
const checksumAt = 22

export function oggPageOf({
  serial,
  sequence,
  granule,
  isFirst = false,
  isLast = false,
  packets,
}: OggPage): Uint8Array {
  const lacing = packets.flatMap(({ length }) => [
    ...Array.from({ length: Math.floor(length / 255) }, () => 255),
    length % 255,
  ])
  if (lacing.length > 255) throw new RangeError('too many segments for one Ogg page')
  const page = Buffer.alloc(headBytes + lacing.length + packets.reduce((sum, { length }) => sum + length, 0))
  page.write('OggS', 0, 'latin1')
  page.writeUInt8((isFirst ? firstPage : 0) | (isLast ? lastPage : 0), 5)
  page.writeBigUInt64LE(BigInt(granule), 6)
  page.writeUInt32LE(serial, 14)
  page.writeUInt32LE(sequence, 18)
  page.writeUInt8(lacing.length, 26)
  page.set(lacing, headBytes)
  let at = headBytes + lacing.length
  for (const packet of packets) {
    page.set(packet, at)
    at += packet.length
  }
  page.writeUInt32LE(checksumOf(page), checksumAt)
  return page
}

/** Polynomial 0x04c11db7, most significant bit first, from 0 and without an inversion. */
const remainders = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte << 24
  for (let bit = 0; bit < 8; bit++) rest = rest & 0x8000_0000 ? (rest << 1) ^ 0x04c1_1db7 : rest << 1
  return rest
})

/** Of the page with zeros in its place. */
function checksumOf(page: Uint8Array): number {
  let rest = 0
  for (const byte of page) rest = (rest << 8) ^ remainders[((rest >>> 24) ^ byte) & 0xff]!
  return rest >>> 0
}
