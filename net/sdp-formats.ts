/** Owns payload types as session descriptions name them: what each means, and the lines that say so. Pure. RFC 8866 §6.6, RFC 3551 §6. */
import type { NegotiatedAudio } from '../model/rtp-transport.ts'
import { attributesNamed, toPayloadType, type SdpSection } from './sdp.ts'

/** A payload type and its encoding as in rtpmap, `PCMU/8000`. */
export type SdpFormat = { readonly payloadType: number; readonly encoding: string }

/** Opus always says 48000/2 (RFC 7587 §7), G.722 8000 (RFC 3551 §4.5.2). */
export const encodings = {
  opus: 'opus/48000/2',
  pcmu: 'PCMU/8000',
  pcma: 'PCMA/8000',
  g722: 'G722/8000',
} as const satisfies Record<NegotiatedAudio['codec'], string>

export const comfortNoise = 'CN/8000'

export const eventsAt = (clockRateHz: number): string => `telephone-event/${clockRateHz}`

type EventsOf = Pick<NegotiatedAudio, 'telephoneEventPayloadType' | 'eventClockHz'>

/**
 * Events share the clock of the sound they interrupt (RFC 4733 §2.1). Peers that offer them at another one only (baresip and Firefox with Opus: 8000) send
 * them all the same, and a key is a key by whichever clock.
 */
export function eventsBeside(formats: readonly SdpFormat[], clockRateHz: number): EventsOf {
  const own = payloadTypeOf(formats, eventsAt(clockRateHz))
  if (own !== null) return { telephoneEventPayloadType: own }
  const others = formats.flatMap(({ payloadType, encoding }) => {
    const clock = Number(/^telephone-event\/(\d{4,6})(?:\/1)?$/i.exec(encoding)?.[1] ?? Number.NaN)
    return clock >= 8000 && clock <= 192_000 ? [{ telephoneEventPayloadType: payloadType, eventClockHz: clock }] : []
  })
  return others.find(({ eventClockHz }) => eventClockHz === 8000) ?? others[0] ?? { telephoneEventPayloadType: null }
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

/** The longest that is known has 21 characters. */
const maxEncodingLength = 64

/** In the order of the section, as they were written. Types that say nothing of themselves are left out. */
export function formatsOf(section: Pick<SdpSection, 'formats' | 'attributes'>): SdpFormat[] {
  const maps = new Map(
    attributesNamed(section.attributes, 'rtpmap').map((value) => {
      const [payloadType = '', encoding = ''] = value.split(/\s+/, 2)
      return [payloadType, encoding] as const
    }),
  )
  return section.formats.flatMap((text) => {
    const payloadType = toPayloadType(text)
    const encoding = maps.get(text) ?? staticTypes[text]
    return payloadType === null || !encoding || encoding.length > maxEncodingLength ? [] : [{ payloadType, encoding }]
  })
}

/** Upper and lower case are one, and `/1` behind a mono codec says nothing. */
export const isEncoding = (format: SdpFormat, encoding: string): boolean =>
  format.encoding.toLowerCase().replace(/^([^/]+\/\d+)\/1$/, '$1') === encoding.toLowerCase()

/** The first of this encoding. */
export const payloadTypeOf = (formats: readonly SdpFormat[], encoding: string): number | null =>
  formats.find((format) => isEncoding(format, encoding))?.payloadType ?? null

/** rtpmap, and fmtp where there is something to say. `opus`: its parameters (RFC 7587 §6.1). */
export const formatLines = (formats: readonly SdpFormat[], opus: string): string[] =>
  formats.flatMap(({ payloadType, encoding }) => [
    `a=rtpmap:${payloadType} ${encoding}`,
    // Keys 0–9, *, #, A–D and flash (RFC 4733 §3.2).
    ...(encoding.startsWith('telephone-event') ? [`a=fmtp:${payloadType} 0-16`] : []),
    ...(encoding.startsWith('opus') ? [`a=fmtp:${payloadType} ${opus}`] : []),
  ])
