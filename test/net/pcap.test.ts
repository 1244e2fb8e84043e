/** A pcap file as an analyser reads it: by a reader of its own, which believes no length and no checksum. */
import { test } from 'tap'
import { pcapHead, pcapRecordOf, type Datagram } from '../../net/pcap.ts'
import { readPcapRecords } from '../../net/read-pcap-records.ts'

/** RFC 1071: with its checksum in it, what is right adds up to all ones. */
function sumOf(bytes: Buffer): number {
  let sum = 0
  for (let at = 0; at < bytes.length; at += 2)
    sum += at + 1 < bytes.length ? bytes.readUInt16BE(at) : bytes.readUInt8(at) * 256
  while (sum >= 65_536) sum = (sum % 65_536) + Math.floor(sum / 65_536)
  return sum
}

function readPcap(file: Buffer) {
  const packets = []
  for (let at = 24; at < file.length;) {
    const [seconds, micros, kept, was] = [0, 4, 8, 12].map((offset) => file.readUInt32LE(at + offset))
    const packet = file.subarray(at + 16, at + 16 + (kept ?? 0))
    packets.push({ at: (seconds ?? 0) * 1000 + (micros ?? 0) / 1000, isWhole: kept === was, ...readPacket(packet) })
    at += 16 + (kept ?? 0)
  }
  return packets
}

function readPacket(packet: Buffer) {
  const isFour = packet.readUInt8(0) === 0x45
  const [header, places] = isFour ? [20, packet.subarray(12, 20)] : [40, packet.subarray(8, 40)]
  const udp = packet.subarray(header)
  const length = Buffer.alloc(isFour ? 4 : 8)
  if (isFour) length.set([0, 17, udp.length >> 8, udp.length & 255])
  else length.set([0, 0, udp.length >> 8, udp.length & 255, 0, 0, 0, 17])
  return {
    from: places.subarray(0, places.length / 2).toString('hex'),
    to: places.subarray(places.length / 2).toString('hex'),
    ports: [udp.readUInt16BE(0), udp.readUInt16BE(2)],
    isLong: isFour ? packet.readUInt16BE(2) === packet.length : packet.readUInt16BE(4) === udp.length,
    isRight:
      (!isFour || sumOf(packet.subarray(0, 20)) === 0xffff) && sumOf(Buffer.concat([places, length, udp])) === 0xffff,
    isUdpLong: udp.readUInt16BE(4) === udp.length,
    text: udp.subarray(8).toString(),
  }
}

const datagram = (from: string, to: string, text: string): Datagram => ({
  at: Date.UTC(2026, 10, 27) + 123,
  from: { address: from, port: 5060 },
  to: { address: to, port: 40_000 },
  payload: Buffer.from(text),
})

test('packets of IPv4 and IPv6 have right lengths, checksums, addresses and times', (t) => {
  const given = [
    datagram('192.0.2.1', '203.0.113.7', 'odd'),
    datagram('2001:db8::1', '::1', 'even'),
    datagram('192.0.2.1', '2001:db8::2', ''),
    datagram('a name', '192.0.2.1', 'left out'),
    datagram('192.0.2.1', '192.0.2.2', 'x'.repeat(70_000)),
  ]
  const file = Buffer.concat([pcapHead(), ...given.flatMap((one) => pcapRecordOf(one) ?? [])])
  t.same(
    [0, 16, 20].map((at) => file.readUInt32LE(at)),
    [0xa1b2c3d4, 65_535, 101],
  )
  t.same([file.readUInt16LE(4), file.readUInt16LE(6)], [2, 4])
  const packets = readPcap(file)
  const good = { at: given[0]?.at, isWhole: true, isLong: true, isRight: true, isUdpLong: true, ports: [5060, 40_000] }
  t.match(packets, [
    { ...good, from: 'c0000201', to: 'cb007107', text: 'odd' },
    { ...good, from: `20010db8${'0'.repeat(23)}1`, to: `${'0'.repeat(31)}1`, text: 'even' },
    { ...good, from: `${'0'.repeat(20)}ffffc0000201`, text: '' },
  ])
  t.equal(packets.length, 3)
  t.end()
})

async function* inPieces(file: Buffer, length: number) {
  for (let at = 0; at < file.length; at += length) yield file.subarray(at, at + length)
}

test('of a packet that is cut its whole length is told, and no sum of what is not there', (t) => {
  for (const address of ['192.0.2.1', '2001:db8::1']) {
    const given = datagram(address, address, 'header, and what nobody may know')
    const [whole, cut] = [pcapRecordOf(given), pcapRecordOf(given, 6)]
    t.equal(cut?.readUInt32LE(12), whole?.readUInt32LE(12), 'as long as it was')
    t.equal(cut?.readUInt32LE(8), (whole?.readUInt32LE(8) ?? 0) - given.payload.length + 6)
    const ip = address.includes(':') ? 40 : 20
    t.equal(cut?.readUInt16BE(16 + ip + 4), 8 + given.payload.length, 'by UDP too')
    t.equal(cut?.readUInt16BE(16 + ip + 6), 0)
    t.ok(cut?.toString().endsWith('header'))
  }
  t.end()
})

test('a capture is read as it comes, up to where it was cut off or has a gap', async (t) => {
  const records = ['first', 'second', 'third'].map((text) => pcapRecordOf(datagram('192.0.2.1', '192.0.2.2', text))!)
  const file = Buffer.concat([pcapHead(), ...records])
  const read = async (bytes: Buffer, piece = 7) => {
    const found = []
    for await (const record of readPcapRecords(inPieces(bytes, piece))) found.push(Buffer.from(record.bytes))
    return found
  }
  t.same(await read(file), records)
  t.same(await read(file, 10_000), records)
  for (const lost of [1, 30, 45]) t.same(await read(file.subarray(0, -lost)), records.slice(0, 2))
  const gap = Buffer.concat([pcapHead(), records[0]!, Buffer.alloc(200), records[1]!])
  t.same(await read(gap), records.slice(0, 1), 'a disk was full')
  t.same(await read(Buffer.concat([file.subarray(0, 24), Buffer.alloc(40, 0xff)])), [], 'no pcap')
  t.same(await read(Buffer.alloc(0)), [])
})
