/** Owns a DNS server on loopback that answers from a zone the test writes. RFC 1035, RFC 2782, RFC 3403, RFC 3596. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'

export type Zone = Readonly<
  Record<
    string,
    {
      readonly A?: readonly string[]
      /** All eight groups written out. */
      readonly AAAA?: readonly string[]
      /** `priority weight port target` */
      readonly SRV?: readonly string[]
      /** `order preference flags service replacement` */
      readonly NAPTR?: readonly string[]
      /** Every question is answered so: 2 is SERVFAIL. `silent`: not at all. */
      readonly fails?: 'silent' | number
    }
  >
>

export type DnsServer = {
  /** `address:port`, as a resolver wants it. */
  readonly server: string
  /** `type name` of every question so far. */
  readonly questions: string[]
  close(): Promise<void>
}

const typeNames: Readonly<Record<number, 'A' | 'AAAA' | 'SRV' | 'NAPTR'>> = {
  1: 'A',
  28: 'AAAA',
  33: 'SRV',
  35: 'NAPTR',
}

export async function startDnsServer(zone: Zone): Promise<DnsServer> {
  const socket = createSocket('udp4')
  const questions: string[] = []
  socket.on('message', (query, { address, port }) => {
    const answer = answerTo(query, zone, questions)
    if (answer) socket.send(answer, port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    server: `127.0.0.1:${socket.address().port}`,
    questions,
    async close() {
      const gone = once(socket, 'close')
      socket.close()
      await gone
    },
  }
}

function answerTo(query: Buffer, zone: Zone, questions: string[]): Buffer | null {
  const { name, end } = readName(query, 12)
  const code = query.readUInt16BE(end)
  const type = typeNames[code]
  questions.push(`${type ?? code} ${name}`)
  const known = zone[name]
  if (known?.fails === 'silent') return null
  const values = type && known ? (known[type] ?? []) : []
  const failure = known ? (known.fails ?? 0) : 3
  const head = Buffer.alloc(12)
  query.copy(head, 0, 0, 2)
  // An answer, recursion wanted and had. RFC 1035 §4.1.1.
  head.writeUInt16BE(0x8180 | failure, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(failure ? 0 : values.length, 6)
  const records = failure ? [] : values.map((value) => record(code, recordOf(type, value)))
  return Buffer.concat([head, query.subarray(12, end + 4), ...records])
}

/** The name is that of the question. */
function record(code: number, value: Buffer): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(code, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(60, 6)
  head.writeUInt16BE(value.length, 10)
  return Buffer.concat([head, value])
}

function recordOf(type: string | undefined, value: string): Buffer {
  const parts = value.split(' ')
  if (type === 'A') return Buffer.from(value.split('.').map(Number))
  if (type === 'AAAA') return Buffer.concat(value.split(':').map((group) => uint16(Number.parseInt(group, 16))))
  if (type === 'SRV') return Buffer.concat([...parts.slice(0, 3).map((part) => uint16(Number(part))), nameOf(parts[3])])
  const numbers = parts.slice(0, 2).map((part) => uint16(Number(part)))
  return Buffer.concat([...numbers, ...parts.slice(2, 4).map(textOf), textOf(''), nameOf(parts[4])])
}

const uint16 = (number: number): Buffer => Buffer.from([number >> 8, number & 255])
const textOf = (text: string): Buffer => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)])
const nameOf = (name = '.'): Buffer =>
  Buffer.concat([
    ...name
      .split('.')
      .filter((label) => label !== '')
      .map(textOf),
    Buffer.from([0]),
  ])

function readName(query: Buffer, start: number): { readonly name: string; readonly end: number } {
  const labels: string[] = []
  let at = start
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 }
}
