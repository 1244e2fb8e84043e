/** Owns captures as tcpdump, sipp and Wireshark write them: packets with their headers, in files of each format. */

export type Captured = { readonly at: number; readonly bytes: Buffer }

export function udp(from: number, to: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt16BE(from, 0)
  head.writeUInt16BE(to, 2)
  head.writeUInt16BE(8 + payload.length, 4)
  return Buffer.concat([head, payload])
}

export function tcp(from: number, to: number, sequence: number, payload: Buffer, begins = false): Buffer {
  const head = Buffer.alloc(20)
  head.writeUInt16BE(from, 0)
  head.writeUInt16BE(to, 2)
  head.writeUInt32BE(sequence, 4)
  head[12] = 5 << 4
  head[13] = begins ? 0x02 : 0x10
  return Buffer.concat([head, payload])
}

export function ipv4(from: string, to: string, protocol: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(20)
  head[0] = 0x45
  head.writeUInt16BE(20 + payload.length, 2)
  head[8] = 64
  head[9] = protocol
  head.set(from.split('.').map(Number), 12)
  head.set(to.split('.').map(Number), 16)
  return Buffer.concat([head, payload])
}

export function ipv6(from: string, to: string, protocol: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(40)
  head[0] = 0x60
  head.writeUInt16BE(payload.length, 4)
  head[6] = protocol
  head.set(wordsOf(from), 8)
  head.set(wordsOf(to), 24)
  return Buffer.concat([head, payload])
}

/** With at most one `::`. */
function wordsOf(address: string): Buffer {
  const [left = '', right = ''] = address.split('::')
  const [first, last] = [left, right].map((part) => part.split(':').filter((word) => word !== ''))
  const missing = 8 - (first?.length ?? 0) - (last?.length ?? 0)
  const words = [...(first ?? []), ...Array.from({ length: missing }, () => '0'), ...(last ?? [])]
  const bytes = Buffer.alloc(16)
  words.forEach((word, index) => bytes.writeUInt16BE(Number.parseInt(word, 16), index * 2))
  return bytes
}

export function ethernet(ip: Buffer, vlan: number | null = null): Buffer {
  const type = (ip[0] ?? 0) >> 4 === 6 ? 0x86dd : 0x0800
  const tag = vlan === null ? [] : [0x81, 0x00, 0, vlan]
  return Buffer.concat([Buffer.alloc(12), Buffer.from([...tag, type >> 8, type & 0xff]), ip])
}

/** Linux cooked, of either version. */
export function sll(ip: Buffer, version: 1 | 2): Buffer {
  const head = Buffer.alloc(version === 1 ? 16 : 20)
  head.writeUInt16BE(0x0800, version === 1 ? 14 : 0)
  return Buffer.concat([head, ip])
}

export function pcap(
  linkType: number,
  packets: readonly Captured[],
  { isBig = false, isNano = false }: { readonly isBig?: boolean; readonly isNano?: boolean } = {},
): Buffer {
  const word = (value: number): Buffer => {
    const bytes = Buffer.alloc(4)
    if (isBig) bytes.writeUInt32BE(value >>> 0)
    else bytes.writeUInt32LE(value >>> 0)
    return bytes
  }
  const head = [
    word(isNano ? 0xa1b23c4d : 0xa1b2c3d4),
    word(isBig ? 0x00020004 : 0x00040002),
    word(0),
    word(0),
    word(262_144),
    word(linkType),
  ]
  const records = packets.flatMap(({ at, bytes }) => [
    word(Math.floor(at / 1000)),
    word(Math.round((at % 1000) * (isNano ? 1e6 : 1e3))),
    word(bytes.length),
    word(bytes.length),
    bytes,
  ])
  return Buffer.concat([...head, ...records])
}

/** With an interface that counts in µs, and a block that nobody knows. */
export function pcapng(linkType: number, packets: readonly Captured[]): Buffer {
  const section = block(0x0a0d0d0a, [word32(0x1a2b3c4d), word16(1), word16(0), word32(0xffffffff), word32(0xffffffff)])
  const from = block(1, [
    word16(linkType),
    word16(0),
    word32(0),
    word16(9),
    word16(1),
    Buffer.from([6, 0, 0, 0]),
    word32(0),
  ])
  const unknown = block(0x0bad, [word32(7)])
  const records = packets.map(({ at, bytes }) => {
    const micros = BigInt(Math.round(at * 1000))
    const padded = Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])
    const time = [word32(Number(micros >> 32n)), word32(Number(micros & 0xffffffffn))]
    return block(6, [word32(0), ...time, word32(bytes.length), word32(bytes.length), padded])
  })
  return Buffer.concat([section, from, unknown, ...records])
}

function block(type: number, parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const length = word32(12 + body.length)
  return Buffer.concat([word32(type), length, body, length])
}

function word32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value >>> 0)
  return bytes
}

function word16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return bytes
}
