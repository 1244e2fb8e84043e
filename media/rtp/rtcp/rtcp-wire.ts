/** Owns RTCP as bytes: the compound packets that are sent, and what is taken from received ones. RFC 3550 §6.4–§6.6, §A.2, RFC 5506. */

export type ReportBlock = {
  /** Whose packets are reported on. */
  readonly ssrc: number
  /** Of 256. */
  readonly fractionLost: number
  /** 24 bits, signed. */
  readonly packetsLost: number
  readonly highestSequence: number
  /** Units of the RTP clock. */
  readonly jitter: number
  /** The middle 32 bits of the NTP time of the last sender report, and the time since, in 1/65536 s; 0 when there was none. */
  readonly lastReport: number
  readonly sinceLastReport: number
}

export type SenderPart = {
  readonly ntpSeconds: number
  readonly ntpFraction: number
  readonly timestamp: number
  readonly packets: number
  readonly octets: number
}

export type RtcpReport = {
  readonly ssrc: number
  /** Null: a receiver report. */
  readonly sender: SenderPart | null
  readonly block: ReportBlock | null
  readonly cname: string
  /** Says goodbye. */
  readonly isLast: boolean
}

export type ReceivedRtcp = {
  readonly ssrc: number
  /** The middle 32 bits of its NTP time. */
  readonly senderReport: number | null
  readonly blocks: readonly ReportBlock[]
  readonly saysGoodbye: boolean
}

const packetType = { senderReport: 200, receiverReport: 201, description: 202, goodbye: 203 } as const
const blockBytes = 24
const senderBytes = 20

export function writeRtcp({ ssrc, sender, block, cname, isLast }: RtcpReport): Buffer {
  const count = block ? 1 : 0
  const report = Buffer.alloc(8 + (sender ? senderBytes : 0) + count * blockBytes)
  writeHeader(report, count, sender ? packetType.senderReport : packetType.receiverReport)
  report.writeUInt32BE(ssrc, 4)
  if (sender) writeSender(report, sender)
  if (block) writeBlock(report, block, report.length - blockBytes)
  return Buffer.concat([report, descriptionOf(ssrc, cname), ...(isLast ? [goodbyeOf(ssrc)] : [])])
}

/**
 * Null for what is no RTCP of sound form. Of several reports in one datagram all blocks count, and the first sender's time. Unknown parts are
 * passed over. `isReduced`: it need not begin with a report (RFC 5506), which else is what tells RTCP from chance.
 */
export function readRtcp(bytes: Buffer, isReduced = false): ReceivedRtcp | null {
  const parts = partsOf(bytes)
  const [first] = parts ?? []
  if (!parts || !first || first.bytes.length < 8 || !(isReduced || isReport(first))) return null
  const reports = parts.filter(isReport)
  if (reports.some((report) => report.bytes.length < blocksAt(report) + report.count * blockBytes)) return null
  const ssrc = first.bytes.readUInt32BE(4)
  const sender = reports.find((part) => part.type === packetType.senderReport && part.bytes.readUInt32BE(4) === ssrc)
  return {
    ssrc,
    senderReport: sender ? sender.bytes.readUInt32BE(10) : null,
    blocks: reports.flatMap((report) =>
      Array.from({ length: report.count }, (_, at) => readBlock(report.bytes, blocksAt(report) + at * blockBytes)),
    ),
    saysGoodbye: parts.some((part) => part.type === packetType.goodbye),
  }
}

const isReport = ({ type }: Part): boolean => type === packetType.senderReport || type === packetType.receiverReport
const blocksAt = ({ type }: Part): number => (type === packetType.senderReport ? 8 + senderBytes : 8)

type Part = { readonly type: number; readonly count: number; readonly bytes: Buffer }

/** §A.2: version 2 everywhere, padding in the last part only, and the lengths add up to the datagram. */
function partsOf(bytes: Buffer): Part[] | null {
  const parts: Part[] = []
  for (let at = 0; at < bytes.length;) {
    if (at + 4 > bytes.length) return null
    const first = bytes.readUInt8(at)
    const end = at + 4 + bytes.readUInt16BE(at + 2) * 4
    const isPadded = (first & 0x20) !== 0
    if (first >> 6 !== 2 || end > bytes.length || (isPadded && end < bytes.length)) return null
    parts.push({ type: bytes.readUInt8(at + 1), count: first & 0x1f, bytes: bytes.subarray(at, end) })
    at = end
  }
  return parts
}

function writeHeader(bytes: Buffer, count: number, type: number): void {
  bytes.writeUInt8(0x80 | count, 0)
  bytes.writeUInt8(type, 1)
  bytes.writeUInt16BE(bytes.length / 4 - 1, 2)
}

function writeSender(bytes: Buffer, { ntpSeconds, ntpFraction, timestamp, packets, octets }: SenderPart): void {
  ;[ntpSeconds, ntpFraction, timestamp, packets, octets].forEach((value, at) =>
    bytes.writeUInt32BE(value >>> 0, 8 + at * 4),
  )
}

function writeBlock(bytes: Buffer, block: ReportBlock, at: number): void {
  bytes.writeUInt32BE(block.ssrc, at)
  bytes.writeUInt8(block.fractionLost, at + 4)
  bytes.writeIntBE(block.packetsLost, at + 5, 3)
  bytes.writeUInt32BE(block.highestSequence, at + 8)
  bytes.writeUInt32BE(block.jitter, at + 12)
  bytes.writeUInt32BE(block.lastReport, at + 16)
  bytes.writeUInt32BE(block.sinceLastReport, at + 20)
}

const readBlock = (bytes: Buffer, at: number): ReportBlock => ({
  ssrc: bytes.readUInt32BE(at),
  fractionLost: bytes.readUInt8(at + 4),
  packetsLost: bytes.readIntBE(at + 5, 3),
  highestSequence: bytes.readUInt32BE(at + 8),
  jitter: bytes.readUInt32BE(at + 12),
  lastReport: bytes.readUInt32BE(at + 16),
  sinceLastReport: bytes.readUInt32BE(at + 20),
})

/** §6.5: one chunk with a CNAME; at least one zero ends the items, and the chunk ends on 32 bits. */
function descriptionOf(ssrc: number, cname: string): Buffer {
  const length = Buffer.byteLength(cname)
  const bytes = Buffer.alloc(8 + Math.ceil((2 + length + 1) / 4) * 4)
  writeHeader(bytes, 1, packetType.description)
  bytes.writeUInt32BE(ssrc, 4)
  bytes.writeUInt8(1, 8)
  bytes.writeUInt8(length, 9)
  bytes.write(cname, 10)
  return bytes
}

function goodbyeOf(ssrc: number): Buffer {
  const bytes = Buffer.alloc(8)
  writeHeader(bytes, 1, packetType.goodbye)
  bytes.writeUInt32BE(ssrc, 4)
  return bytes
}
