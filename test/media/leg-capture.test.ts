/** What a leg writes down of its packets: for so long, and of their sound no more than may be recorded at that moment. */
import { test } from 'tap'
import { createLegCapture } from '../../media/leg/leg-capture.ts'
import type { BusMessage } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import type { RtpTap } from '../../model/rtp-transport.ts'
import { createMemoryRecordings } from '../fake/memory-recordings.ts'
import { createQuietLog } from '../fake/quiet-log.ts'

const packet = Buffer.alloc(172, 7)
packet[0] = 0x80
const place = (port: number) => ({ address: '192.0.2.1', port })

function setUp() {
  const recordings = createMemoryRecordings()
  let at = 1_000
  let tap: RtpTap | null = null
  const transport = { tap: (told: RtpTap | null) => void (tap = told) }
  const deps = { recordings, log: createQuietLog(), now: () => at, timeOrigin: Date.UTC(2026, 0, 1) }
  const capture = createLegCapture({ ...deps, transport: () => transport })
  const order = (given: object): unknown => {
    let answer: unknown = null
    const respond = (bytes: Uint8Array) => void (answer = fromBytes(bytes))
    capture.answer({ subject: '', payload: toBytes(given), isRequest: true, respond } satisfies BusMessage)
    return answer
  }
  const pass = (direction: 'in' | 'out') => tap?.(direction, packet, { local: place(4_000), remote: place(5_000) })
  const written = async (): Promise<number[]> => {
    const reader = await recordings.read('a/c.pcap')
    if (!reader) return []
    const file = Buffer.from(await new Response(reader.stream(0, reader.size - 1)).arrayBuffer())
    const lengths = []
    for (let next = 24; next < file.length; next += 16 + file.readUInt32LE(next + 8))
      lengths.push(file.readUInt32LE(next + 8) - 28)
    return lengths
  }
  return { capture, order, pass, written, isTapped: () => tap !== null, goOn: (ms: number) => void (at += ms) }
}

test('sound is written where it may be recorded, and headers are otherwise', async (t) => {
  const { capture, order, pass, written } = setUp()
  pass('in')
  t.match(order({ key: 'a/c.pcap', rtp: 'sound', ms: 60_000 }), { type: 'capturing', rtp: 'sound', leftMs: 60_000 })
  pass('in')
  capture.record('both')
  pass('in')
  capture.record('agent')
  pass('in')
  pass('out')
  capture.record('none')
  pass('out')
  capture.record('both')
  t.match(order({ key: 'a/c.pcap', rtp: 'headers', ms: 1_000 }), { rtp: 'headers', leftMs: 60_000 })
  pass('out')
  await capture.finish()
  t.same(await written(), [12, 172, 12, 172, 12, 12])
})

test('it ends by its time or with the call, and there is no second one', async (t) => {
  const { capture, order, pass, written, isTapped, goOn } = setUp()
  t.match(order({ key: 'a/c.pcap', rtp: 'everything' }), { type: 'refused' })
  order({ key: 'a/c.pcap', rtp: 'headers', ms: 1_000 })
  pass('in')
  goOn(1_001)
  pass('in')
  t.notOk(isTapped(), 'nothing is told of what follows')
  t.match(order({ key: 'a/c.pcap', rtp: 'headers', ms: 1_000 }), { type: 'refused', details: /complete/ })
  await capture.finish()
  t.same(await written(), [12])
})
