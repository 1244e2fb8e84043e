/**
 * Owns reading a session description of the other side: which audio section can be used and with what. Pure; throws Problem
 * VALIDATION_FAILED with path `sdp` for everything that cannot be answered. RFC 8866, RFC 8829, RFC 8839, RFC 8842.
 */
import { Problem } from '../model/problem.ts'
import type { NegotiatedAudio } from '../model/rtp-transport.ts'
import { encodings, eventsBeside, formatsOf, payloadTypeOf } from '../net/sdp-formats.ts'
import {
  attributesNamed,
  directionIn,
  readSdpText,
  type SdpAttributes,
  type SdpDirection,
  type SdpSection as SectionText,
} from '../net/sdp.ts'

export type Fingerprint = { readonly algorithm: string; readonly value: string }

export type SdpSection = Pick<SectionText, 'kind' | 'protocol' | 'formats'> & { readonly mid: string | null }

/** What one side says about itself and about the only audio section that is used. */
export type RemoteDescription = {
  readonly sections: readonly SdpSection[]
  /** Which of the sections is used; all the others are refused. */
  readonly audioIndex: number
  readonly bundled: boolean
  /** The section before it that its bundle is led by; null: it leads itself, or goes alone. */
  readonly ledBy: LeadingSection | null
  readonly direction: SdpDirection
  readonly usernameFragment: string
  readonly password: string
  readonly fingerprints: readonly Fingerprint[]
  readonly setup: string
  /** RTCP without a report in front is taken. RFC 5506. */
  readonly reducedSizeRtcp: boolean
  readonly audio: NegotiatedAudio
  /** IPv4 and IPv6 UDP candidates that came within the description. */
  readonly candidates: readonly CandidateAddress[]
}

/** `formats`: what its first payload type is. */
export type LeadingSection = {
  readonly index: number
  readonly payloadType: string
  readonly formats: readonly string[]
}

export type CandidateAddress = { readonly address: string; readonly port: number }

type Block = SectionText & SdpSection

const protocols = ['UDP/TLS/RTP/SAVPF', 'UDP/TLS/RTP/SAVP', 'RTP/SAVPF']
const usableFingerprint = /^sha-(256|384|512)$/i
const credential = /^[A-Za-z0-9+/]+$/

/** `usable`: the values of a=setup with which the other side can play the part it is meant to play. RFC 8842 §5. */
export function readSdp(sdp: string, usable: readonly string[]): RemoteDescription {
  const { session, blocks } = blocksOf(sdp)
  const groups = attributesNamed(session, 'group')
  const candidates = blocks.flatMap((block, index) => {
    const way = [...block.attributes, ...wayOfBundle(block, blocks, groups)]
    return isAudio(block, way) ? [{ block, index, way, audio: audioOf(block) }] : []
  })
  const chosen = candidates.find(({ audio }) => audio)
  if (!chosen?.audio) return refuse(candidates.length > 0 ? 'no audio codec in common' : 'there is no audio section')
  const { block, index, way, audio } = chosen
  const both = [...way, ...session]
  const fingerprints = attributesNamed(both, 'fingerprint').map(fingerprintOf).filter(isUsable)
  if (fingerprints.length === 0) return refuse('there is no usable fingerprint')
  const setup = attributesNamed(both, 'setup')[0] ?? 'actpass'
  if (!usable.includes(setup)) return refuse('a=setup does not fit')
  return {
    sections: blocks.map(({ kind, protocol, formats, mid }) => ({ kind, protocol, formats, mid })),
    audioIndex: index,
    bundled: groups.some((group) => isBundle(group, block.mid)),
    ledBy: leadingOf(block, blocks, groups),
    direction: directionIn([...block.attributes, ...session]),
    usernameFragment: credentialOf(both, 'ice-ufrag', 4),
    password: credentialOf(both, 'ice-pwd', 22),
    fingerprints,
    setup,
    reducedSizeRtcp: block.attributes.some(([name]) => name === 'rtcp-rsize'),
    audio,
    candidates: attributesNamed(way, 'candidate').flatMap((value) => candidateAddressOf(value) ?? []),
  }
}

/** Null when this is no UDP candidate with an address: a name (`.local` names above all) is never looked up. RFC 8839 §5.1. */
export function candidateAddressOf(text: string): CandidateAddress | null {
  const [, component, protocol, , address, port, typ] = text.replace(/^candidate:/, '').split(' ')
  if (component !== '1' || protocol?.toLowerCase() !== 'udp' || typ !== 'typ' || !address) return null
  if (!/^[0-9a-fA-F.:]+$/.test(address)) return null
  return { address, port: Number(port) }
}

/** The form of RFC 8839 §5.1, names as addresses included. */
export const isCandidate = (text: string): boolean =>
  /^(a=)?candidate:[A-Za-z0-9+/]{1,32} \d{1,3} [A-Za-z-]{1,10} \d{1,10} [A-Za-z0-9.:_-]{1,255} \d{1,5} typ [a-z]{1,10}( |$)/.test(
    text,
  )

function refuse(message: string): never {
  throw new Problem('VALIDATION_FAILED', `The session description cannot be used: ${message}.`, [
    { path: 'sdp', message: `cannot be used: ${message}` },
  ])
}

function blocksOf(sdp: string): { session: SdpAttributes; blocks: Block[] } {
  const text = readSdpText(sdp)
  if (typeof text === 'string') return refuse(text)
  return { session: text.attributes, blocks: text.sections.map((section) => ({ ...section, mid: midOf(section) })) }
}

function midOf({ attributes }: SectionText): string | null {
  const mid = attributesNamed(attributes, 'mid')[0] ?? null
  return mid === null || /^[\w!#$%&'*+.^`{|}~-]{1,32}$/.test(mid) ? mid : refuse('a mid is malformed')
}

/** `way`: what is said of its transport. */
const isAudio = (block: Block, way: SdpAttributes): boolean =>
  block.kind === 'audio' &&
  (block.port !== 0 || isBundleOnly(block)) &&
  protocols.includes(block.protocol) &&
  // RTP and RTCP share one port here; every browser offers it. RFC 8834 §4.5.
  way.some(([name]) => name === 'rtcp-mux')

const isBundleOnly = ({ port, attributes }: Block): boolean =>
  port === 0 && attributes.some(([name]) => name === 'bundle-only')

/**
 * A section that goes with its bundle only has port 0 and may leave its transport to the first one of the bundle, such as video that was added before the
 * microphone. RFC 8843 §6, §7.1.3; RFC 8829 §5.2.1.
 */
function wayOfBundle(block: Block, blocks: readonly Block[], groups: readonly string[]): SdpAttributes {
  return isBundleOnly(block) ? (leaderOf(block, blocks, groups)?.attributes ?? []) : []
}

function leaderOf(block: Block, blocks: readonly Block[], groups: readonly string[]): Block | undefined {
  const first = groups.find((one) => isBundle(one, block.mid))?.split(' ')[1]
  return blocks.find(({ mid }) => mid !== null && mid === first)
}

function leadingOf(block: Block, blocks: readonly Block[], groups: readonly string[]): LeadingSection | null {
  const leader = leaderOf(block, blocks, groups)
  const payloadType = leader?.formats[0]
  const isKept = leader && leader !== block && leader.port !== 0 && protocols.includes(leader.protocol)
  if (!isKept || payloadType === undefined) return null
  const formats = leader.attributes.flatMap(([name, value]) =>
    (name === 'rtpmap' || name === 'fmtp') && value.startsWith(`${payloadType} `) ? [`a=${name}:${value}`] : [],
  )
  return { index: blocks.indexOf(leader), payloadType, formats }
}

/** Browsers do not take a pause in packets for a lost call, and packets of 20 ms suit them all. */
const asBrowsersWantIt = { comfortNoisePayloadType: null, packetMs: 20, silence: 'sparse' } as const

/** Opus before PCMU before PCMA: it is the only one that hides loss. */
const usableCodecs = [
  { codec: 'opus', clockRateHz: 48000 },
  { codec: 'pcmu', clockRateHz: 8000 },
  { codec: 'pcma', clockRateHz: 8000 },
] as const

function audioOf(block: Block): NegotiatedAudio | null {
  const formats = formatsOf(block)
  for (const { codec, clockRateHz } of usableCodecs) {
    const payloadType = payloadTypeOf(formats, encodings[codec])
    const events = eventsBeside(formats, clockRateHz)
    if (payloadType !== null) return { ...asBrowsersWantIt, codec, payloadType, clockRateHz, ...events }
  }
  return null
}

const isBundle = (group: string, mid: string | null): boolean => {
  const [semantics, ...mids] = group.split(' ')
  return semantics === 'BUNDLE' && mid !== null && mids.includes(mid)
}

function credentialOf(attributes: SdpAttributes, name: string, minLength: number): string {
  const value = attributesNamed(attributes, name)[0] ?? ''
  const fits = value.length >= minLength && value.length <= 256 && credential.test(value)
  return fits ? value : refuse(`a=${name} is missing or malformed`)
}

function fingerprintOf(text: string): Fingerprint {
  const [algorithm = '', value = ''] = text.split(' ')
  return { algorithm: algorithm.toLowerCase(), value: value.toUpperCase() }
}

const isUsable = ({ algorithm, value }: Fingerprint): boolean =>
  usableFingerprint.test(algorithm) && /^([0-9A-F]{2}:){31,63}[0-9A-F]{2}$/.test(value)
