/** Owns reading captures: pcap in both byte orders with µs or ns, and pcapng. What is cut off in the midst of a packet ends there, as tcpdump's do. */

export type CapturedPacket = {
  /** Ms since 1970. */
  readonly at: number
  /** LINKTYPE_ of tcpdump.org. */
  readonly linkType: number
  readonly bytes: Buffer
}

export class WrongCapture extends Error {
  override readonly name = 'WrongCapture'
}

export const maxCaptureBytes = 512 * 1024 * 1024
const maxPackets = 2_000_000
const maxPacketBytes = 262_144

/** Throws WrongCapture. */
export function* readPcap(file: Buffer): Generator<CapturedPacket> {
  if (file.length > maxCaptureBytes)
    throw new WrongCapture(`the capture has ${file.length} bytes, at most ${maxCaptureBytes}`)
  const packets = isPcapng(file) ? packetsOfPcapng(file) : packetsOfPcap(file)
  let count = 0
  for (const packet of packets) {
    if (++count > maxPackets) throw new WrongCapture(`the capture has more than ${maxPackets} packets`)
    yield packet
  }
}

const isPcapng = (file: Buffer): boolean => file.length >= 12 && file.readUInt32BE(0) === 0x0a0d0d0a

type Reading = { readonly u16: (at: number) => number; readonly u32: (at: number) => number }

const readingOf = (file: Buffer, isLittle: boolean): Reading => ({
  u16: (at) => (isLittle ? file.readUInt16LE(at) : file.readUInt16BE(at)),
  u32: (at) => (isLittle ? file.readUInt32LE(at) : file.readUInt32BE(at)),
})

/** First four bytes, big-endian. */
const magics: Readonly<Record<number, { readonly isLittle: boolean; readonly perMs: number }>> = {
  0xa1b2c3d4: { isLittle: false, perMs: 1e3 },
  0xd4c3b2a1: { isLittle: true, perMs: 1e3 },
  0xa1b23c4d: { isLittle: false, perMs: 1e6 },
  0x4d3cb2a1: { isLittle: true, perMs: 1e6 },
}

function* packetsOfPcap(file: Buffer): Generator<CapturedPacket> {
  const kind = file.length >= 24 ? magics[file.readUInt32BE(0)] : undefined
  if (!kind) throw new WrongCapture('this is neither pcap nor pcapng')
  const { u32 } = readingOf(file, kind.isLittle)
  const linkType = u32(20) & 0xffff
  for (let at = 24; at + 16 <= file.length;) {
    const length = u32(at + 8)
    if (length > maxPacketBytes)
      throw new WrongCapture(`a packet at byte ${at} has ${length} bytes: the capture is damaged`)
    const end = at + 16 + length
    if (end > file.length) return
    yield { at: u32(at) * 1000 + u32(at + 4) / kind.perMs, linkType, bytes: file.subarray(at + 16, end) }
    at = end
  }
}

type Interface = { readonly linkType: number; readonly perMs: number }

/** https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html, sections 4.1 to 4.4. */
function* packetsOfPcapng(file: Buffer): Generator<CapturedPacket> {
  let isLittle = true
  let interfaces: Interface[] = []
  for (let at = 0; at + 12 <= file.length;) {
    const type = file.readUInt32BE(at)
    if (type === 0x0a0d0d0a) {
      isLittle = file.readUInt32BE(at + 8) === 0x4d3c2b1a
      interfaces = []
    }
    const reading = readingOf(file, isLittle)
    const length = reading.u32(at + 4)
    if (length < 12 || length % 4 !== 0)
      throw new WrongCapture(`a block at byte ${at} has ${length} bytes: the capture is damaged`)
    if (at + length > file.length) return
    const kind = reading.u32(at)
    if (kind === 1) interfaces.push(interfaceOf(file, at, length, reading))
    const packet = kind === 6 ? enhancedPacket(file, at, reading, interfaces) : null
    if (packet) yield packet
    at += length
  }
}

function interfaceOf(file: Buffer, at: number, length: number, { u16 }: Reading): Interface {
  let perMs = 1e3
  for (let option = at + 16; option + 4 <= at + length - 4;) {
    const [code, size] = [u16(option), u16(option + 2)]
    if (code === 0) break
    // if_tsresol: a power of ten, or of two with the highest bit.
    const resolution = file[option + 4] ?? 6
    if (code === 9) perMs = (resolution & 0x80 ? 2 ** (resolution & 0x7f) : 10 ** resolution) / 1e3
    option += 4 + Math.ceil(size / 4) * 4
  }
  return { linkType: u16(at + 8), perMs }
}

function enhancedPacket(
  file: Buffer,
  at: number,
  { u32 }: Reading,
  interfaces: readonly Interface[],
): CapturedPacket | null {
  const from = interfaces[u32(at + 8)]
  const length = u32(at + 20)
  if (!from || length > maxPacketBytes || at + 28 + length > file.length) return null
  const time = (u32(at + 12) * 2 ** 32 + u32(at + 16)) / from.perMs
  return { at: time, linkType: from.linkType, bytes: file.subarray(at + 28, at + 28 + length) }
}
