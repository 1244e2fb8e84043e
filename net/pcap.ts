/**
 * Owns how packets are written so that every analyser reads them: a pcap file (draft-ietf-opsawg-pcap) of IP packets without a link layer, each a UDP
 * datagram with right lengths and checksums (RFC 791, RFC 8200, RFC 768). Pure.
 */
import { wordsOf, type AddressWords } from './address-words.ts'

export type Datagram = {
  /** Ms since the epoch. */
  readonly at: number
  readonly from: Place
  readonly to: Place
  readonly payload: Uint8Array
}
export type Place = { readonly address: string; readonly port: number }

const magic = 0xa1b2c3d4
/** LINKTYPE_RAW: IPv4 or IPv6, as the first four bits say. */
const linkType = 101
const maxPacket = 65_535
const [ipv4Header, ipv6Header, udpHeader, fileHeader, recordHeader] = [20, 40, 8, 24, 16]
const udpProtocol = 17
const hopLimit = 64

/** How a file begins; records follow. */
export function pcapHead(): Buffer {
  const head = Buffer.alloc(fileHeader)
  head.writeUInt32LE(magic, 0)
  head.writeUInt16LE(2, 4)
  head.writeUInt16LE(4, 6)
  head.writeUInt32LE(maxPacket, 16)
  head.writeUInt32LE(linkType, 20)
  return head
}

/**
 * Null: its addresses cannot be read, or no packet can hold it. `kept`: so many bytes of the payload are written, and none of its checksum, which would
 * tell of the rest.
 */
export function pcapRecordOf(datagram: Datagram, kept = datagram.payload.length): Buffer | null {
  const whole = packetOf(datagram, kept === datagram.payload.length)
  if (whole === null) return null
  const { at, payload } = datagram
  const packet = whole.subarray(0, whole.length - payload.length + kept)
  const head = Buffer.alloc(recordHeader)
  head.writeUInt32LE(Math.floor(at / 1000), 0)
  head.writeUInt32LE(Math.floor((at % 1000) * 1000), 4)
  head.writeUInt32LE(packet.length, 8)
  head.writeUInt32LE(whole.length, 12)
  return Buffer.concat([head, packet])
}

function packetOf({ from, to, payload }: Datagram, isSummed: boolean): Buffer | null {
  const [source, target] = [wordsOf(from.address), wordsOf(to.address)]
  if (!source || !target) return null
  const isSix = source.length === 8 || target.length === 8
  const addresses = Buffer.from(
    [...wide(source, isSix), ...wide(target, isSix)].flatMap((word) => [word >>> 8, word & 0xff]),
  )
  const length = udpHeader + payload.length
  if (length + (isSix ? ipv6Header : ipv4Header) > maxPacket) return null
  const udp = Buffer.alloc(length)
  udp.writeUInt16BE(from.port, 0)
  udp.writeUInt16BE(to.port, 2)
  udp.writeUInt16BE(length, 4)
  udp.set(payload, udpHeader)
  const pseudo = Buffer.alloc(isSix ? 8 : 4)
  pseudo.writeUInt16BE(length, pseudo.length - (isSix ? 6 : 2))
  pseudo.writeUInt8(udpProtocol, isSix ? 7 : 1)
  // A sum of zero would say that there is none.
  if (isSummed) udp.writeUInt16BE(checksumOf(Buffer.concat([addresses, pseudo, udp])) || 0xffff, 6)
  return Buffer.concat([isSix ? headOfSix(addresses, length) : headOfFour(addresses, length), udp])
}

function headOfFour(addresses: Buffer, length: number): Buffer {
  const head = Buffer.alloc(ipv4Header)
  head.writeUInt8(0x45, 0)
  head.writeUInt16BE(ipv4Header + length, 2)
  head.writeUInt8(hopLimit, 8)
  head.writeUInt8(udpProtocol, 9)
  head.set(addresses, 12)
  head.writeUInt16BE(checksumOf(head), 10)
  return head
}

function headOfSix(addresses: Buffer, length: number): Buffer {
  const head = Buffer.alloc(ipv6Header)
  head.writeUInt8(0x60, 0)
  head.writeUInt16BE(length, 4)
  head.writeUInt8(udpProtocol, 6)
  head.writeUInt8(hopLimit, 7)
  head.set(addresses, 8)
  return head
}

/** An IPv4 address beside one of IPv6 is mapped. RFC 4291 §2.5.5.2. */
const wide = (words: AddressWords, isSix: boolean): AddressWords =>
  isSix && words.length === 2 ? [0, 0, 0, 0, 0, 0xffff, ...words] : words

/** RFC 1071. */
function checksumOf(bytes: Uint8Array): number {
  let sum = 0
  for (let at = 0; at < bytes.length; at += 2) sum += ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  return ~sum & 0xffff
}
