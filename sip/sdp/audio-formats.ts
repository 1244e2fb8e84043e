/** Owns the codecs of phone calls as SDP names them: reading what a section offers, writing what we take. RFC 3551 §6, RFC 4733, RFC 7587. */
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import {
  comfortNoise,
  encodings,
  eventsAt,
  eventsBeside,
  formatLines,
  formatsOf,
  isEncoding,
  payloadTypeOf,
  type SdpFormat,
} from '../../net/sdp-formats.ts'
import { attributesNamed, type SdpAttributes, type SdpSection } from '../../net/sdp.ts'
import { offeredEvents, type LocalMedia } from '../../media/rtp/media-session.ts'

type CodecName = LocalMedia['codecs'][number]

type Codec = {
  readonly codec: NegotiatedAudio['codec']
  /** In our offers. */
  readonly payloadType: number
  readonly clockRateHz: NegotiatedAudio['clockRateHz']
}

const codecs: Readonly<Record<CodecName, Codec>> = {
  PCMU: { codec: 'pcmu', payloadType: 0, clockRateHz: 8000 },
  PCMA: { codec: 'pcma', payloadType: 8, clockRateHz: 8000 },
  G722: { codec: 'g722', payloadType: 9, clockRateHz: 8000 },
  opus: { codec: 'opus', payloadType: 111, clockRateHz: 48000 },
}

/** As a trunk names it. */
export const nameOfCodec = (codec: NegotiatedAudio['codec']): CodecName =>
  (Object.keys(codecs) as CodecName[]).find((name) => codecs[name].codec === codec) ?? 'PCMU'

/** The peer's first format that we take, with what belongs to it. Null: nothing in common. RFC 3264 §6.1. */
export function negotiateAudio(
  section: SdpSection,
  session: SdpAttributes,
  allowed: LocalMedia['codecs'],
): NegotiatedAudio | null {
  const formats = formatsOf(section)
  for (const format of formats) {
    const name = allowed.find((codec) => isEncoding(format, encodings[codecs[codec].codec]))
    if (name)
      return audioOf(codecs[name], format.payloadType, formats, packetMsOf([...section.attributes, ...session], name))
  }
  return null
}

function audioOf(
  { codec, clockRateHz }: Codec,
  payloadType: number,
  formats: readonly SdpFormat[],
  packetMs: NegotiatedAudio['packetMs'],
): NegotiatedAudio {
  return {
    codec,
    payloadType,
    clockRateHz,
    ...eventsBeside(formats, clockRateHz),
    comfortNoisePayloadType: clockRateHz === 8000 ? payloadTypeOf(formats, comfortNoise) : null,
    packetMs,
    silence: 'continuous',
  }
}

const packetTimes = [60, 40, 30, 20, 10] as const satisfies NegotiatedAudio['packetMs'][]

/** What the peer wants in one packet (`ptime`), no more than it can take (`maxptime`). RFC 8866 §6.4, §6.5. */
function packetMsOf(attributes: SdpAttributes, name: CodecName): NegotiatedAudio['packetMs'] {
  const [wanted, most] = ['ptime', 'maxptime'].map((key) => Number(attributesNamed(attributes, key)[0] ?? Number.NaN))
  // Opus has no frames of 30 ms (RFC 6716 §2.1.4).
  const possible = packetTimes.filter((time) => name !== 'opus' || time !== 30)
  const asked = possible.find((time) => time === wanted) ?? 20
  return possible.find((time) => time <= asked && !(time > (most ?? Number.NaN))) ?? 10
}

/** For people: `G729, telephone-event`. */
export const namesOf = (section: SdpSection): string =>
  formatsOf(section)
    .map(({ encoding }) => encoding.split('/')[0] ?? '')
    .filter((name) => /^[\w.-]{1,32}$/.test(name) && !/^(telephone-event|CN)$/i.test(name))
    .slice(0, 10)
    .join(', ')

type FormatLines = { readonly payloadTypes: readonly number[]; readonly lines: readonly string[] }

/** Exactly what was agreed: a peer that may choose again would have to be followed. */
export function agreedFormats(audio: NegotiatedAudio): FormatLines {
  return toLines([
    { payloadType: audio.payloadType, encoding: encodings[audio.codec] },
    ...eventsOf(audio.telephoneEventPayloadType, audio.eventClockHz ?? audio.clockRateHz),
    ...(audio.comfortNoisePayloadType === null
      ? []
      : [{ payloadType: audio.comfortNoisePayloadType, encoding: comfortNoise }]),
  ])
}

/** Comfort noise is not offered: what hears the caller does better with all of the sound. */
export function offeredFormats(names: LocalMedia['codecs']): FormatLines {
  const chosen = [...new Set(names)].map((name) => codecs[name])
  const clocks = [...new Set(chosen.map(({ clockRateHz }) => clockRateHz))]
  return toLines([
    ...chosen.map(({ codec, payloadType }) => ({ payloadType, encoding: encodings[codec] })),
    ...clocks.flatMap((clock) => eventsOf(offeredEvents[clock], clock)),
  ])
}

const eventsOf = (payloadType: number | null, clockRateHz: number): SdpFormat[] =>
  payloadType === null ? [] : [{ payloadType, encoding: eventsAt(clockRateHz) }]

const toLines = (formats: readonly SdpFormat[]): FormatLines => ({
  payloadTypes: formats.map(({ payloadType }) => payloadType),
  lines: formatLines(formats, 'useinbandfec=1'),
})
