/** Owns the codecs of phone calls as SDP names them: reading what a section offers, writing what we take. RFC 3551 §6, RFC 4733, RFC 7587. */
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import { attributesNamed, toPayloadType, type SdpAttributes, type SdpSection } from '../../net/sdp.ts'
import { offeredEvents, type LocalMedia } from '../../media/rtp/media-session.ts'

type CodecName = LocalMedia['codecs'][number]

type Codec = {
  readonly codec: NegotiatedAudio['codec']
  /** In our offers. */
  readonly payloadType: number
  readonly clockRateHz: NegotiatedAudio['clockRateHz']
  /** As in rtpmap. Opus always says 48000/2 (RFC 7587 §7), G.722 8000 (RFC 3551 §4.5.2). */
  readonly encoding: string
}

const codecs: Readonly<Record<CodecName, Codec>> = {
  PCMU: { codec: 'pcmu', payloadType: 0, clockRateHz: 8000, encoding: 'PCMU/8000' },
  PCMA: { codec: 'pcma', payloadType: 8, clockRateHz: 8000, encoding: 'PCMA/8000' },
  G722: { codec: 'g722', payloadType: 9, clockRateHz: 8000, encoding: 'G722/8000' },
  opus: { codec: 'opus', payloadType: 111, clockRateHz: 48000, encoding: 'opus/48000/2' },
}

/** What a payload type means without rtpmap. RFC 3551 §6, table 4. */
const staticTypes: Readonly<Record<string, string>> = {
  0: 'PCMU/8000',
  3: 'GSM/8000',
  4: 'G723/8000',
  5: 'DVI4/8000',
  7: 'LPC/8000',
  8: 'PCMA/8000',
  9: 'G722/8000',
  13: 'CN/8000',
  15: 'G728/8000',
  18: 'G729/8000',
}

/** A payload type of a section and its encoding, `PCMU/8000`, as it was written. */
type Format = { readonly payloadType: number; readonly encoding: string }

const maxEncodingLength = 64

/** In the order of the section. Types that say nothing of themselves are left out. */
function formatsOf(section: SdpSection): Format[] {
  const maps = new Map(
    attributesNamed(section.attributes, 'rtpmap').map((value) => {
      const [payloadType = '', encoding = ''] = value.split(/\s+/, 2)
      return [payloadType, encoding] as const
    }),
  )
  return section.formats.flatMap((text) => {
    const payloadType = toPayloadType(text)
    const encoding = maps.get(text) ?? staticTypes[text]
    // The longest that is known has 21 characters.
    return payloadType === null || !encoding || encoding.length > maxEncodingLength ? [] : [{ payloadType, encoding }]
  })
}

/** `/1` behind a mono codec says nothing. */
const isEncoding = (format: Format, encoding: string): boolean =>
  format.encoding.toLowerCase().replace(/^([^/]+\/\d+)\/1$/, '$1') === encoding.toLowerCase()

/** The peer's first format that we take, with what belongs to it. Null: nothing in common. RFC 3264 §6.1. */
export function negotiateAudio(
  section: SdpSection,
  session: SdpAttributes,
  allowed: LocalMedia['codecs'],
): NegotiatedAudio | null {
  const formats = formatsOf(section)
  for (const format of formats) {
    const name = allowed.find((codec) => isEncoding(format, codecs[codec].encoding))
    if (name)
      return audioOf(codecs[name], format.payloadType, formats, packetMsOf([...section.attributes, ...session], name))
  }
  return null
}

function audioOf(
  { codec, clockRateHz }: Codec,
  payloadType: number,
  formats: readonly Format[],
  packetMs: NegotiatedAudio['packetMs'],
): NegotiatedAudio {
  const typeOf = (encoding: string): number | null =>
    formats.find((format) => isEncoding(format, encoding))?.payloadType ?? null
  return {
    codec,
    payloadType,
    clockRateHz,
    // Events share the clock of the sound they interrupt: one of another clock is of no use (RFC 4733 §2.1).
    telephoneEventPayloadType: typeOf(`telephone-event/${clockRateHz}`),
    comfortNoisePayloadType: clockRateHz === 8000 ? typeOf('CN/8000') : null,
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
  const encoding = Object.values(codecs).find(({ codec }) => codec === audio.codec)?.encoding ?? ''
  return formatLines([
    { payloadType: audio.payloadType, encoding },
    ...eventsOf(audio.telephoneEventPayloadType, audio.clockRateHz),
    ...(audio.comfortNoisePayloadType === null
      ? []
      : [{ payloadType: audio.comfortNoisePayloadType, encoding: 'CN/8000' }]),
  ])
}

/** Comfort noise is not offered: what hears the caller does better with all of the sound. */
export function offeredFormats(names: LocalMedia['codecs']): FormatLines {
  const chosen = [...new Set(names)].map((name) => codecs[name])
  const clocks = [...new Set(chosen.map(({ clockRateHz }) => clockRateHz))]
  return formatLines([...chosen, ...clocks.flatMap((clock) => eventsOf(offeredEvents[clock], clock))])
}

const eventsOf = (payloadType: number | null, clockRateHz: number): Format[] =>
  payloadType === null ? [] : [{ payloadType, encoding: `telephone-event/${clockRateHz}` }]

const formatLines = (formats: readonly Format[]): FormatLines => ({
  payloadTypes: formats.map(({ payloadType }) => payloadType),
  lines: formats.flatMap(({ payloadType, encoding }) => [
    `a=rtpmap:${payloadType} ${encoding}`,
    // Keys 0–9, *, #, A–D and flash (RFC 4733 §3.2).
    ...(encoding.startsWith('telephone-event') ? [`a=fmtp:${payloadType} 0-16`] : []),
    ...(encoding.startsWith('opus') ? [`a=fmtp:${payloadType} useinbandfec=1`] : []),
  ]),
})
