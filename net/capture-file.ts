/** Owns the file that a capture of a call is: signaling and packets of sound in the order of time, in pieces that are worth a write. Pure. */
import { pcapHead, pcapRecordOf } from './pcap.ts'
import { readPcapRecords, type PcapRecord } from './read-pcap-records.ts'
import { signalingDatagramOf, type SignalingMessage } from './signaling-datagrams.ts'

const chunkBytes = 64 << 10

/** Both in their order of time; `rtp` is a file as media/leg/leg-capture.ts writes it. `told`: of each packet of sound. */
export async function* captureFile(
  messages: readonly SignalingMessage[],
  rtp: AsyncIterable<Uint8Array> | null,
  told: () => void = () => undefined,
): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  for await (const piece of inOrder(messages, rtp, told)) {
    waiting.push(piece)
    bytes += piece.length
    if (bytes < chunkBytes) continue
    yield Buffer.concat(waiting)
    ;[waiting, bytes] = [[], 0]
  }
  if (bytes > 0) yield Buffer.concat(waiting)
}

async function* inOrder(
  messages: readonly SignalingMessage[],
  rtp: AsyncIterable<Uint8Array> | null,
  told: () => void,
): AsyncGenerator<Uint8Array> {
  yield pcapHead()
  const waiting = messages.flatMap((message): PcapRecord[] => {
    const datagram = signalingDatagramOf(message)
    const bytes = pcapRecordOf(datagram)
    return bytes ? [{ at: datagram.at, bytes }] : []
  })
  for await (const record of rtp ? readPcapRecords(rtp) : []) {
    while (waiting[0] && waiting[0].at <= record.at) yield (waiting.shift() as PcapRecord).bytes
    told()
    yield record.bytes
  }
  for (const { bytes } of waiting) yield bytes
}
