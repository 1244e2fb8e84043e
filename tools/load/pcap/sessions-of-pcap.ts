/** Owns calls out of a capture: SIP over UDP and TCP by its Call-IDs, and the sound that their descriptions name. */
import { headerOf } from '../../../sip/server/message/header-fields.ts'
import { tagOf } from '../../../sip/server/message/address.ts'
import type { SipMessage } from '../../../sip/server/message/message.ts'
import { parseMessage } from '../../../sip/server/message/parse-message.ts'
import { readRtp, isRtcp } from '../../../media/rtp/rtp-wire.ts'
import { attributesNamed, readSdpText } from '../../../net/sdp.ts'
import { bracketedHost } from '../allowed-hosts.ts'
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
  return [...calls.values()].map((call) => captured(call, sound))
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

type Place = {
  readonly place: string
  readonly head: Pick<SessionHead, 'codec' | 'payloadType' | 'clockRateHz'> | null
}

function captured({ callId, protocol, caller, messages }: Call, sound: readonly Segment[]): CapturedCall {
  const began = messages[0]?.at ?? 0
  const ends = (messages.at(-1)?.at ?? 0) + trailing
  const places = { caller: new Map<string, Place>(), service: new Map<string, Place>() }
  for (const { from, message } of messages) {
    const found = soundPlace(message)
    if (found) places[from === caller ? 'caller' : 'service'].set(found.place, found)
  }
  const lines: RecordedLine[] = messages.map(({ at, from, text }) => ({
    type: 'sip',
    at: at - began,
    by: from === caller ? 'caller' : 'service',
    message: text,
  }))
  const packets = { caller: 0, service: 0 }
  for (const { at, to, payload } of sound) {
    if (at < began || at > ends || isRtcp(payload)) continue
    const by = byOf(to, places)
    const packet = by && readRtp(payload)
    if (!by || !packet) continue
    packets[by]++
    lines.push({ type: 'packet', at: at - began, by, packet })
  }
  const agreed = [...places.service.values(), ...places.caller.values()].find(({ head }) => head !== null)?.head
  const head: SessionHead = {
    parleySession: 1,
    kind: 'sip',
    source: 'pcap',
    ...(agreed ?? { codec: 'pcmu', payloadType: 0, clockRateHz: 8000 }),
    transport: protocol,
    recordedAt: new Date(began).toISOString(),
  }
  return { callId, text: sessionText(head, lines), packets }
}

function byOf(
  to: string,
  places: { readonly caller: ReadonlyMap<string, Place>; readonly service: ReadonlyMap<string, Place> },
) {
  if (places.service.has(to)) return 'caller'
  return places.caller.has(to) ? 'service' : null
}

const staticCodecs: Readonly<Record<string, SessionHead['codec']>> = { '0': 'pcmu', '8': 'pcma', '9': 'g722' }
const codecNames: Readonly<Record<string, SessionHead['codec']>> = {
  PCMU: 'pcmu',
  PCMA: 'pcma',
  G722: 'g722',
  OPUS: 'opus',
}

/** Where the sender of a description wants its sound, and in what; null without one. */
function soundPlace(message: SipMessage): Place | null {
  const sdp = message.body.length === 0 ? null : readSdpText(new TextDecoder().decode(message.body))
  if (sdp === null || typeof sdp === 'string') return null
  const audio = sdp.sections.find(({ kind }) => kind === 'audio')
  const [, address] = /^IN IP[46] (\S+)/.exec(audio?.connection ?? sdp.connection ?? '') ?? []
  if (!audio || address === undefined) return null
  const first = audio.formats[0] ?? ''
  const mapped = attributesNamed(audio.attributes, 'rtpmap').find((value) => value.startsWith(`${first} `))
  const name = / ([\w-]+)\//.exec(mapped ?? '')?.[1]?.toUpperCase() ?? ''
  const codec = codecNames[name] ?? staticCodecs[first]
  const head = codec
    ? ({ codec, payloadType: Number(first), clockRateHz: codec === 'opus' ? 48000 : 8000 } as const)
    : null
  return { place: `${bracketedHost(address)}:${audio.port}`, head }
}
