/** Owns calls out of a capture: SIP over UDP and TCP by its Call-IDs, and the sound that their descriptions name. */
import { headerOf } from '../../../sip/server/message/header-fields.ts'
import { tagOf } from '../../../sip/server/message/address.ts'
import type { SipMessage } from '../../../sip/server/message/message.ts'
import { parseMessage } from '../../../sip/server/message/parse-message.ts'
import { readRtp, isRtcp } from '../../../media/rtp/rtp-wire.ts'
import type { RtpPacket } from '../../../model/rtp-transport.ts'
import { describedSound, descriptionOf, type DescribedSound } from '../session/described-sound.ts'
import type { SessionHead } from '../session/session-format.ts'
import { sessionText, type RecordedLine } from '../session/write-session.ts'
import { readPcap } from './read-pcap.ts'
import { createTcpStreams } from './tcp-streams.ts'
import { unwrapPacket, type Segment } from './unwrap-packet.ts'

export type CapturedCall = {
  readonly callId: string
  /** A session file. */
  readonly text: string
  readonly packets: { readonly caller: number; readonly service: number }
  /** Why it cannot be made again; null: it can. */
  readonly unusable: string | null
}

type Seen = {
  readonly at: number
  readonly from: string
  readonly to: string
  readonly text: string
  readonly message: SipMessage
}
type Call = {
  readonly callId: string
  readonly protocol: 'udp' | 'tcp'
  readonly caller: string
  readonly messages: Seen[]
}

const maxCalls = 10_000
/** Behind the last message of a call, ms: sound on its way. */
const trailing = 1_000

/** Calls that were answered or not, each with its INVITE; in their order. Throws WrongCapture. */
export function sessionsOfPcap(file: Buffer): CapturedCall[] {
  const calls = new Map<string, Call>()
  const sound: Segment[] = []
  const streams = createTcpStreams()
  for (const packet of readPcap(file)) {
    const segment = unwrapPacket(packet)
    if (!segment) continue
    if (segment.protocol === 'tcp') {
      for (const bytes of streams(segment)) take(calls, segment, bytes)
    } else if (looksLikeSip(segment.payload)) take(calls, segment, segment.payload)
    else if (segment.payload.length >= 12) sound.push(segment)
  }
  const soundTo = Map.groupBy(sound, ({ to }) => to)
  return [...calls.values()].map((call) => captured(call, soundTo))
}

const looksLikeSip = (payload: Buffer): boolean =>
  /^(?:SIP\/2\.0 \d{3} |[A-Z]{2,20} \S{1,500} SIP\/2\.0\r?\n)/.test(payload.toString('latin1', 0, 600))

function take(calls: Map<string, Call>, { at, from, to, protocol }: Segment, bytes: Buffer): void {
  const parsed = parseMessage(bytes)
  if (parsed.kind !== 'message') return
  const { message } = parsed
  const callId = headerOf(message, 'Call-ID') ?? ''
  const known = calls.get(callId)
  const isFirst = message.kind === 'request' && message.method === 'INVITE' && tagOf(message, 'To') === null
  if (!known && isFirst && calls.size < maxCalls) calls.set(callId, { callId, protocol, caller: from, messages: [] })
  const call = calls.get(callId)
  // Another leg of the same call, seen on its way through a proxy, is no part of this one.
  if (call && (from === call.caller || to === call.caller))
    call.messages.push({ at, from, to, text: bytes.toString('utf8'), message })
}

function captured(
  { callId, protocol, caller, messages }: Call,
  soundTo: ReadonlyMap<string, readonly Segment[]>,
): CapturedCall {
  const began = messages[0]?.at ?? 0
  const ends = (messages.at(-1)?.at ?? 0) + trailing
  const described = { caller: describedBy(messages, true, caller), service: describedBy(messages, false, caller) }
  const sound = {
    caller: packetsTo(described.service, soundTo, { began, ends }),
    service: packetsTo(described.caller, soundTo, { began, ends }),
  }
  const lines: RecordedLine[] = [
    ...messages.map(({ at, from, text }): RecordedLine => {
      const by = from === caller ? 'caller' : 'service'
      return { type: 'sip', at: at - began, by, message: text }
    }),
    ...sound.caller.map(({ at, packet }): RecordedLine => ({ type: 'packet', at: at - began, by: 'caller', packet })),
    ...sound.service.map(({ at, packet }): RecordedLine => ({ type: 'packet', at: at - began, by: 'service', packet })),
  ]
  // Without an offer in the INVITE the service offers, and the caller chooses.
  const chosen = messages[0] && descriptionOf(messages[0].message) ? described.service[0] : described.caller[0]
  const head: SessionHead = {
    parleySession: 1,
    kind: 'sip',
    source: 'pcap',
    ...(headOf(chosen) ?? headOf(described.caller[0]) ?? { codec: 'pcmu', payloadType: 0, clockRateHz: 8000 }),
    transport: protocol,
    recordedAt: new Date(began).toISOString(),
  }
  const packets = { caller: sound.caller.length, service: sound.service.length }
  return { callId, text: sessionText(head, lines), packets, unusable: unusableOf(chosen) }
}

const describedBy = (messages: readonly Seen[], isOfCaller: boolean, caller: string): DescribedSound[] =>
  messages
    .filter(({ from }) => (from === caller) === isOfCaller)
    .flatMap(({ message }) => describedSound(message) ?? [])

type Heard = { readonly at: number; readonly packet: RtpPacket }
type Lasting = { readonly began: number; readonly ends: number }

/** Each once: a capture of all interfaces has a packet for each that it passed. */
function packetsTo(
  described: readonly DescribedSound[],
  soundTo: ReadonlyMap<string, readonly Segment[]>,
  { began, ends }: Lasting,
): Heard[] {
  const packets = new Map<string, Heard>()
  for (const place of new Set(described.map((one) => one.place)))
    for (const { at, payload } of soundTo.get(place) ?? []) {
      const packet = at < began || at > ends || isRtcp(payload) ? null : readRtp(payload)
      const key = packet && `${packet.sequenceNumber} ${packet.timestamp}`
      if (packet && key && !packets.has(key)) packets.set(key, { at, packet })
    }
  return [...packets.values()]
}

function headOf(sound: DescribedSound | undefined) {
  const first = sound?.codecs[0]
  if (!first?.codec) return null
  const { codec, payloadType } = first
  return { codec, payloadType, clockRateHz: codec === 'opus' ? 48000 : 8000 } as const
}

function unusableOf(sound: DescribedSound | undefined): string | null {
  if (sound?.isEncrypted) return 'its sound is encrypted'
  const first = sound?.codecs[0]
  return first && first.codec === null ? `its sound is ${first.name}, which a session file has no codec for` : null
}
