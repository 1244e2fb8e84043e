/**
 * Owns the line grammar of session descriptions that browsers and trunks share: sections, attributes, directions. What they mean is read
 * by each edge. Pure; bounded for hostile text. RFC 8866.
 */
import { familyOf } from './addresses.ts'

export type SdpAttributes = readonly (readonly [name: string, value: string])[]

/** One `m=` with what stands below it. */
export type SdpSection = {
  readonly kind: string
  readonly port: number
  readonly protocol: string
  /** As they stood: payload types of RTP, else anything without space. */
  readonly formats: readonly string[]
  /** Value of its own `c=`. */
  readonly connection: string | null
  readonly attributes: SdpAttributes
}

export type SdpText = {
  /** Values of `c=` and `t=` in front of the first section. */
  readonly connection: string | null
  readonly timing: string | null
  readonly attributes: SdpAttributes
  readonly sections: readonly SdpSection[]
}

export type SdpDirection = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive'

const maxSections = 32
const maxLines = 4000
const maxFormats = 128

/** A string says what is wrong. Lines may end with LF alone. */
export function readSdpText(sdp: string): SdpText | string {
  const lines = sdp.split(/\r?\n/, maxLines + 1)
  if (lines[0]?.trimEnd() !== 'v=0') return 'it does not begin with v=0'
  if (lines.length > maxLines) return 'it has too many lines'
  const starts = lines.flatMap((line, index) => (line.startsWith('m=') ? [index] : []))
  if (starts.length > maxSections) return 'it has too many sections'
  const sections = starts.map((start, index) => sectionOf(lines.slice(start, starts[index + 1] ?? lines.length)))
  if (sections.includes(null)) return 'a section begins with a malformed m= line'
  const head = lines.slice(0, starts[0] ?? lines.length)
  return {
    connection: lineOf(head, 'c='),
    timing: lineOf(head, 't='),
    attributes: attributesOf(head),
    sections: sections.filter((section) => section !== null),
  }
}

/** A port may be followed by how many (`/2`); the first is taken. */
function sectionOf(lines: readonly string[]): SdpSection | null {
  const [, kind, port, protocol, formats] =
    /^m=(\w{1,20}) (\d{1,5})(?:\/\d{1,5})? ([\w/]{1,40})((?: +[\x21-\x7e]{1,32})+)\s*$/.exec(lines[0] ?? '') ?? []
  if (!kind || !protocol || !formats || Number(port) > 65_535) return null
  return {
    kind,
    port: Number(port),
    protocol,
    formats: formats.trim().split(/ +/, maxFormats),
    connection: lineOf(lines, 'c='),
    attributes: attributesOf(lines),
  }
}

const lineOf = (lines: readonly string[], start: string): string | null =>
  lines
    .find((line) => line.startsWith(start))
    ?.slice(start.length)
    .trim() ?? null

function attributesOf(lines: readonly string[]): SdpAttributes {
  return lines.flatMap((line) => {
    const [, name, value] = /^a=([\w-]+):?(.*)$/.exec(line) ?? []
    return name === undefined || value === undefined ? [] : [[name, value.trim()] as const]
  })
}

export const attributesNamed = (attributes: SdpAttributes, name: string): string[] =>
  attributes.filter(([key]) => key === name).map(([, value]) => value)

/** The first of these attributes that is one; without any, both ways. RFC 8866 §6.7. */
export function directionIn(attributes: SdpAttributes): SdpDirection {
  const directions: readonly string[] = ['sendrecv', 'sendonly', 'recvonly', 'inactive'] satisfies SdpDirection[]
  return (attributes.find(([name]) => directions.includes(name))?.[0] as SdpDirection | undefined) ?? 'sendrecv'
}

/** The same stream as its other end sees it. RFC 3264 §6.1. */
export const otherDirection = {
  sendrecv: 'sendrecv',
  sendonly: 'recvonly',
  recvonly: 'sendonly',
  inactive: 'inactive',
} as const satisfies Record<SdpDirection, SdpDirection>

/** Types an RTP stream may have; 64–95 collide with RTCP on a shared port (RFC 5761 §4). */
export function toPayloadType(text: string): number | null {
  const payloadType = Number(text)
  return /^\d{1,3}$/.test(text) && payloadType < 128 && (payloadType < 64 || payloadType > 95) ? payloadType : null
}

/** Of `o=` and `c=`. */
export const connectionAt = (address: string): string => `IN IP${familyOf(address)} ${address}`

/** Port 0 refuses a section; its formats are repeated because the grammar wants one. RFC 3264 §6. */
export const refusedMedia = ({ kind, protocol, formats }: Pick<SdpSection, 'kind' | 'protocol' | 'formats'>): string =>
  `m=${kind} 0 ${protocol} ${formats.join(' ')}`
