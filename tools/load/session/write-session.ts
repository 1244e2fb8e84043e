/** Owns writing session files: payloads once, each before the first packet that refers to it. */
import type { RtpPacket } from '../../../model/rtp-transport.ts'
import type { SessionHead, SessionLine } from './session-format.ts'

export type RecordedLine = Exclude<SessionLine, { type: 'rtp' | 'sound' }> | RecordedPacket

export type RecordedPacket = {
  readonly type: 'packet'
  readonly at: number
  readonly by: 'caller' | 'service'
  readonly packet: RtpPacket
}

/** `lines` in any order; expectations stand last. */
export function sessionText(head: SessionHead, lines: readonly RecordedLine[]): string {
  const refs = new Map<string, number>()
  const written: string[] = [JSON.stringify(head)]
  const add = (line: SessionLine): void => void written.push(JSON.stringify(line))
  const timed = lines.filter((line) => line.type !== 'expect').toSorted((first, second) => first.at - second.at)
  for (const line of timed) {
    if (line.type !== 'packet') {
      add({ ...line, at: rounded(line.at) })
      continue
    }
    const { at, by, packet } = line
    const { sequenceNumber: seq, timestamp: ts, payloadType: pt, marker } = packet
    const common = { type: 'rtp', at: rounded(at), by, seq, ts, pt, ...(marker && { marker }) } as const
    if (by === 'service') {
      add(common)
      continue
    }
    const payload = Buffer.from(packet.payload).toString('base64')
    let ref = refs.get(payload)
    if (ref === undefined) {
      ref = refs.size
      refs.set(payload, ref)
      add({ type: 'sound', ref, payload })
    }
    add({ ...common, ref })
  }
  for (const line of lines) if (line.type === 'expect') add(line)
  return `${written.join('\n')}\n`
}

const rounded = (ms: number): number => Math.round(Math.max(0, ms) * 10) / 10
