/** Owns reading a capture as this service writes it, record by record as its bytes come. One that was cut off, or has a gap, ends there. */

export type PcapRecord = {
  /** Ms since the epoch. */
  readonly at: number
  /** With its head. */
  readonly bytes: Uint8Array
}

const [fileHeader, recordHeader, longestPacket] = [24, 16, 65_535]

export async function* readPcapRecords(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<PcapRecord> {
  let waiting: Buffer = Buffer.alloc(0)
  let isBegun = false
  for await (const chunk of chunks) {
    waiting = Buffer.concat([waiting, chunk])
    if (!isBegun && waiting.length >= fileHeader) {
      isBegun = true
      waiting = waiting.subarray(fileHeader)
    }
    while (isBegun && waiting.length >= recordHeader) {
      const [seconds, micros] = [waiting.readUInt32LE(0), waiting.readUInt32LE(4)]
      const length = recordHeader + waiting.readUInt32LE(8)
      // What a full disk had no room for reads as zeros.
      if (seconds === 0 || length > recordHeader + longestPacket) return
      if (waiting.length < length) break
      yield { at: seconds * 1_000 + micros / 1_000, bytes: waiting.subarray(0, length) }
      waiting = waiting.subarray(length)
    }
  }
}
