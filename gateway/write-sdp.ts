/** Owns writing session descriptions: the answer of the front door and the offer of our own caller. Pure. RFC 8829, RFC 8839, RFC 8843. */
import type { NegotiatedAudio } from '../model/rtp-transport.ts'
import { encodings, eventsAt, formatLines } from '../net/sdp-formats.ts'
import { connectionAt, otherDirection, refusedMedia, type SdpDirection } from '../net/sdp.ts'
import type { CandidateAddress, Fingerprint, LeadingSection, RemoteDescription, SdpSection } from './read-sdp.ts'

export type LocalDescription = {
  readonly usernameFragment: string
  readonly password: string
  readonly fingerprint: Fingerprint
  readonly candidates: readonly CandidateAddress[]
  readonly ssrc: number
  /** As our RTCP says it, so that a browser knows whose reports they are. RFC 5576 §6.1. */
  readonly cname: string
  /** Counts our descriptions of one call, from 2 on as browsers do. RFC 3264 §8, RFC 8829 §5.2.1. */
  readonly version?: number
}

/** ICE-lite, DTLS server, all candidates inside: a client may connect at once and nothing trickles from this side. */
export function writeAnswer(offer: RemoteDescription, local: LocalDescription): string {
  const audio = offer.sections[offer.audioIndex]
  const { ledBy } = offer
  const sections = offer.sections.flatMap((section, index) => {
    if (index === ledBy?.index) return leadingLines(local, section, ledBy)
    return index === offer.audioIndex
      ? audioLines(local, section.mid, section.protocol, [offer.audio], {
          setup: 'passive',
          direction: otherDirection[offer.direction],
          // RFC 5506 §5.1: an answer has it only when the offer had.
          reducedSizeRtcp: offer.reducedSizeRtcp,
        })
      : refusedLines(section)
  })
  const leader = ledBy && offer.sections[ledBy.index]?.mid
  const bundle = offer.bundled && audio?.mid ? [`a=group:BUNDLE ${leader ? `${leader} ` : ''}${audio.mid}`] : []
  return toText([...sessionLines(local), 'a=ice-lite', ...bundle, ...sections])
}

/** As a browser offers: DTLS either way, one bundled audio section. */
export function writeOffer(local: LocalDescription, codecs: readonly NegotiatedAudio[]): string {
  const section = audioLines(local, '0', 'UDP/TLS/RTP/SAVPF', codecs, {
    setup: 'actpass',
    direction: 'sendrecv',
    reducedSizeRtcp: true,
  })
  return toText([...sessionLines(local), 'a=group:BUNDLE 0', ...section])
}

const toText = (lines: readonly string[]): string => `${lines.join('\r\n')}\r\n`

function sessionLines(local: LocalDescription): string[] {
  return ['v=0', `o=- ${local.ssrc} ${local.version ?? 2} ${connectionAt('127.0.0.1')}`, 's=-', 't=0 0']
}

function audioLines(
  local: LocalDescription,
  mid: string | null,
  protocol: string,
  codecs: readonly NegotiatedAudio[],
  role: { readonly setup: string; readonly direction: SdpDirection; readonly reducedSizeRtcp: boolean },
): string[] {
  const payloadTypes = codecs.flatMap((audio) => [audio.payloadType, audio.telephoneEventPayloadType ?? []]).flat()
  return [
    ...placeOf(local, 'audio', `${protocol} ${payloadTypes.join(' ')}`),
    ...(mid === null ? [] : [`a=mid:${mid}`]),
    `a=${role.direction}`,
    'a=rtcp-mux',
    ...(role.reducedSizeRtcp ? ['a=rtcp-rsize'] : []),
    ...wayLines(local, role.setup),
    ...codecs.flatMap(codecLines),
    'a=ptime:20',
    'a=msid:parley audio',
    `a=ssrc:${local.ssrc} cname:${local.cname}`,
    ...local.candidates.map(candidateLine),
    'a=end-of-candidates',
  ]
}

/** Whoever is connected by the first candidate, or by none yet. */
function placeOf(local: LocalDescription, kind: string, rest: string): string[] {
  const { address, port } = local.candidates[0] ?? { address: '0.0.0.0', port: 9 }
  return [`m=${kind} ${port} ${rest}`, `c=${connectionAt(address)}`]
}

const wayLines = ({ usernameFragment, password, fingerprint }: LocalDescription, setup: string): string[] => [
  `a=ice-ufrag:${usernameFragment}`,
  `a=ice-pwd:${password}`,
  `a=fingerprint:${fingerprint.algorithm} ${fingerprint.value}`,
  `a=setup:${setup}`,
]

/**
 * The section that leads the bundle of the sound is kept, with nothing in it: a Chromium with `max-bundle` loses the way of all of them with one that is
 * refused. RFC 8843 §7.3.
 */
const leadingLines = (local: LocalDescription, section: SdpSection, led: LeadingSection): string[] => [
  ...placeOf(local, section.kind, `${section.protocol} ${led.payloadType}`),
  ...(section.mid === null ? [] : [`a=mid:${section.mid}`]),
  'a=inactive',
  'a=rtcp-mux',
  ...wayLines(local, 'passive'),
  ...led.formats,
  ...local.candidates.map(candidateLine),
  'a=end-of-candidates',
]

const codecLines = ({
  codec,
  payloadType,
  clockRateHz,
  telephoneEventPayloadType: events,
  eventClockHz = clockRateHz,
}: NegotiatedAudio): string[] =>
  formatLines(
    [
      { payloadType, encoding: encodings[codec] },
      ...(events === null ? [] : [{ payloadType: events, encoding: eventsAt(eventClockHz) }]),
    ],
    'minptime=10;useinbandfec=1',
  )

const refusedLines = (section: SdpSection): string[] => [
  refusedMedia(section),
  `c=${connectionAt('0.0.0.0')}`,
  ...(section.mid === null ? [] : [`a=mid:${section.mid}`]),
  'a=inactive',
]

/** Host candidates of one component; earlier ones are preferred. RFC 8445 §5.1.2.1. */
function candidateLine({ address, port }: CandidateAddress, index: number): string {
  const priority = 126 * 2 ** 24 + (65535 - index) * 2 ** 8 + 255
  return `a=candidate:${index + 1} 1 udp ${priority} ${address} ${port} typ host`
}
