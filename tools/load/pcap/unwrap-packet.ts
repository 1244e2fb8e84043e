/** Owns what is within a captured packet: link layer, IPv4 and IPv6, UDP and TCP. Fragments are left out, as nothing of SIP on one machine is any. */
import type { CapturedPacket } from './read-pcap.ts'

export type Segment = {
  readonly at: number
  readonly protocol: 'udp' | 'tcp'
  /** `address:port`; an IPv6 address has brackets. */
  readonly from: string
  readonly to: string
  readonly payload: Buffer
  /** Of TCP. */
  readonly sequence: number
  readonly begins: boolean
}

/** Null: nothing for us, or cut off. */
export function unwrapPacket({ at, linkType, bytes }: CapturedPacket): Segment | null {
  const start = startOfIp(linkType, bytes)
  const ip = start === null ? null : readIp(bytes.subarray(start))
  if (!ip) return null
  const { payload, protocol } = ip
  if (payload.length < 8) return null
  const from = `${ip.from}:${payload.readUInt16BE(0)}`
  const to = `${ip.to}:${payload.readUInt16BE(2)}`
  if (protocol === 17) {
    const length = Math.max(8, payload.readUInt16BE(4))
    return { at, protocol: 'udp', from, to, payload: payload.subarray(8, length), sequence: 0, begins: false }
  }
  if (protocol !== 6 || payload.length < 20) return null
  const head = (payload[12] ?? 0) >> 4
  const begins = ((payload[13] ?? 0) & 0x02) !== 0
  return {
    at,
    protocol: 'tcp',
    from,
    to,
    payload: payload.subarray(head * 4),
    sequence: payload.readUInt32BE(4),
    begins,
  }
}

const ipTypes: readonly number[] = [0x0800, 0x86dd]

/** Null: no IP, or a link layer that is not known. */
function startOfIp(linkType: number, bytes: Buffer): number | null {
  switch (linkType) {
    case 1:
      return behindEthernet(bytes)
    // Linux cooked, and its second version.
    case 113:
      return bytes.length >= 16 && ipTypes.includes(bytes.readUInt16BE(14)) ? 16 : null
    case 276:
      return bytes.length >= 20 && ipTypes.includes(bytes.readUInt16BE(0)) ? 20 : null
    // Loopback of BSD: a family of four bytes, in the order of the machine or of the network.
    case 0:
    case 108:
      return 4
    // Raw, by each of its numbers.
    case 12:
    case 14:
    case 101:
    case 228:
    case 229:
      return 0
    default:
      return null
  }
}

function behindEthernet(bytes: Buffer): number | null {
  let at = 12
  // VLANs, one within the other.
  while (at + 2 <= bytes.length && [0x8100, 0x88a8].includes(bytes.readUInt16BE(at))) at += 4
  return at + 2 <= bytes.length && ipTypes.includes(bytes.readUInt16BE(at)) ? at + 2 : null
}

type Ip = { readonly protocol: number; readonly from: string; readonly to: string; readonly payload: Buffer }

function readIp(bytes: Buffer): Ip | null {
  const version = (bytes[0] ?? 0) >> 4
  if (version === 4) return readIpv4(bytes)
  return version === 6 ? readIpv6(bytes) : null
}

function readIpv4(bytes: Buffer): Ip | null {
  const head = ((bytes[0] ?? 0) & 0x0f) * 4
  if (bytes.length < 20 || head < 20) return null
  // More fragments, or one behind the first.
  if ((bytes.readUInt16BE(6) & 0x3fff) !== 0) return null
  const total = bytes.readUInt16BE(2) || bytes.length
  const address = (at: number): string => [...bytes.subarray(at, at + 4)].join('.')
  return { protocol: bytes[9] ?? 0, from: address(12), to: address(16), payload: bytes.subarray(head, total) }
}

/** Hop-by-hop, routing, destination options: each says how long it is. */
const extensions: readonly number[] = [0, 43, 60]

function readIpv6(bytes: Buffer): Ip | null {
  if (bytes.length < 40) return null
  const end = 40 + bytes.readUInt16BE(4)
  let [protocol, at] = [bytes[6] ?? 0, 40]
  while (extensions.includes(protocol) && at + 8 <= bytes.length) {
    protocol = bytes[at] ?? 0
    at += ((bytes[at + 1] ?? 0) + 1) * 8
  }
  const address = (start: number): string => {
    const words = Array.from({ length: 8 }, (_, word) => bytes.readUInt16BE(start + word * 2).toString(16))
    // As it stands in SDP and headers; two spellings of one address are one.
    return new URL(`http://[${words.join(':')}]`).hostname
  }
  return { protocol, from: address(8), to: address(24), payload: bytes.subarray(at, Math.max(at, end)) }
}
