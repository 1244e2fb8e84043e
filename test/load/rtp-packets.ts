/** Owns the RTP packets that the callers of benches send: G.711, 20 ms each, no extension. RFC 3550 §5.1. */
import { randomInt } from 'node:crypto'

export const headerBytes = 12
const samplesPerFrame = 160

/** Of one stream; `index` counts its packets from 0. */
export function createPacketWriter(): (index: number, payload: Uint8Array) => Buffer {
  const ssrc = randomInt(2 ** 32)
  const [firstNumber, firstTimestamp] = [randomInt(2 ** 16), randomInt(2 ** 32)]
  return (index, payload) => {
    const packet = Buffer.allocUnsafe(headerBytes + payload.length)
    packet[0] = 0x80
    packet[1] = index === 0 ? 0x80 : 0
    packet.writeUInt16BE((firstNumber + index) & 0xffff, 2)
    packet.writeUInt32BE((firstTimestamp + index * samplesPerFrame) >>> 0, 4)
    packet.writeUInt32BE(ssrc, 8)
    packet.set(payload, headerBytes)
    return packet
  }
}
