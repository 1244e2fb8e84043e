/**
 * Owns reading a session description of the other side: which audio section can be used and with what. Pure; throws Problem
 * VALIDATION_FAILED with path `sdp` for everything that cannot be answered. RFC 8866, RFC 8829, RFC 8839, RFC 8842.
 */
import { Problem } from '../model/problem.ts'
import type { NegotiatedAudio } from '../model/rtp-transport.ts'

export type Fingerprint = { readonly algorithm: string; readonly value: string }

export type SdpSection = {
  readonly kind: string
  readonly protocol: string
  readonly formats: readonly string[]
  readonly mid: string | null
}

/** What one side says about itself and about the only audio section that is used. */
export type RemoteDescription = {
  readonly sections: readonly SdpSection[]
  /** Which of the sections is used; all the others are refused. */
  readonly audioIndex: number
  readonly bundled: boolean
  readonly direction: Direction
  readonly usernameFragment: string
  readonly password: string
  readonly fingerprints: readonly Fingerprint[]
  readonly setup: string
  readonly audio: NegotiatedAudio
  /** IPv4 and IPv6 UDP candidates that came within the description. */
  readonly candidates: readonly CandidateAddress[]
}

export type Direction = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive'
export type CandidateAddress = { readonly address: string; readonly port: number }

type Attributes = readonly (readonly [name: string, value: string])[]
type Block = SdpSection & { readonly port: number; readonly attributes: Attributes }

const maxSections = 32
const maxLines = 4000
const protocols = ['UDP/TLS/RTP/SAVPF', 'UDP/TLS/RTP/SAVP', 'RTP/SAVPF']
const usableFingerprint = /^sha-(256|384|512)$/i
const credential = /^[A-Za-z0-9+/]+$/

/** `usable`: the values of a=setup with which the other side can play the part it is meant to play. RFC 8842 §5. */
export function readSdp(sdp: string, usable: readonly string[]): RemoteDescription {
  const { session, blocks } = blocksOf(sdp)
  const candidates = blocks.flatMap((block, index) => (isAudio(block) ? [{ block, index, audio: audioOf(block) }] : []))
  const chosen = candidates.find(({ audio }) => audio)
  if (!chosen?.audio) return refuse(candidates.length > 0 ? 'no audio codec in common' : 'there is no audio section')
  const { block, index, audio } = chosen
  const both = [...block.attributes, ...session]
  const fingerprints = valuesOf(both, 'fingerprint').map(fingerprintOf).filter(isUsable)
  if (fingerprints.length === 0) return refuse('there is no usable fingerprint')
  const setup = valuesOf(both, 'setup')[0] ?? 'actpass'
  if (!usable.includes(setup)) return refuse('a=setup does not fit')
  return {
    sections: blocks.map(({ kind, protocol, formats, mid }) => ({ kind, protocol, formats, mid })),
    audioIndex: index,
    bundled: block.mid !== null && valuesOf(session, 'group').some((group) => isBundle(group, block.mid)),
    direction: directionOf(both),
    usernameFragment: credentialOf(both, 'ice-ufrag', 4),
    password: credentialOf(both, 'ice-pwd', 22),
    fingerprints,
    setup,
    audio,
    candidates: valuesOf(block.attributes, 'candidate').flatMap((value) => candidateAddressOf(value) ?? []),
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
    { path: 'sdp', message },
  ])
}

function blocksOf(sdp: string): { session: Attributes; blocks: Block[] } {
  const lines = sdp.split(/\r?\n/, maxLines + 1)
  if (lines[0] !== 'v=0') return refuse('it does not begin with v=0')
  if (lines.length > maxLines) return refuse('it has too many lines')
  const starts = lines.flatMap((line, index) => (line.startsWith('m=') ? [index] : []))
  if (starts.length > maxSections) return refuse('it has too many sections')
  const blocks = starts.map((start, index) => blockOf(lines.slice(start, starts[index + 1] ?? lines.length)))
  return { session: attributesOf(lines.slice(0, starts[0] ?? lines.length)), blocks }
}

function blockOf(lines: readonly string[]): Block {
  const [, kind, port, protocol, formats] =
    /^m=(\w{1,20}) (\d{1,5}) ([\w/]{1,40})((?: [\w-]{1,32})*)\s*$/.exec(lines[0] ?? '') ?? []
  if (!kind || !protocol || formats === undefined) return refuse('a section begins with a malformed m= line')
  const attributes = attributesOf(lines)
  const mid = valuesOf(attributes, 'mid')[0] ?? null
  if (mid !== null && !/^[\w!#$%&'*+.^`{|}~-]{1,32}$/.test(mid)) return refuse('a mid is malformed')
  return { kind, port: Number(port), protocol, formats: formats.trim().split(' '), mid, attributes }
}

function attributesOf(lines: readonly string[]): Attributes {
  return lines.flatMap((line) => {
    const [, name, value] = /^a=([\w-]+):?(.*)$/.exec(line) ?? []
    return name === undefined || value === undefined ? [] : [[name, value.trim()] as const]
  })
}

const valuesOf = (attributes: Attributes, name: string): string[] =>
  attributes.filter(([key]) => key === name).map(([, value]) => value)

const isAudio = (block: Block): boolean =>
  block.kind === 'audio' &&
  block.port !== 0 &&
  protocols.includes(block.protocol) &&
  // RTP and RTCP share one port here; every browser offers it. RFC 8834 §4.5.
  block.attributes.some(([name]) => name === 'rtcp-mux')

/** Opus before PCMU before PCMA: it is the only one that hides loss. */
function audioOf(block: Block): NegotiatedAudio | null {
  const maps = valuesOf(block.attributes, 'rtpmap').map((value) => value.toLowerCase().split(' '))
  const payloadTypeOf = (encoding: string): number | null => {
    const payloadType = maps.find(([, name]) => name === encoding)?.[0]
    return payloadType !== undefined && block.formats.includes(payloadType) ? toPayloadType(payloadType) : null
  }
  const events = (clockRateHz: number) => payloadTypeOf(`telephone-event/${clockRateHz}`)
  const opus = payloadTypeOf('opus/48000/2')
  if (opus !== null)
    return { codec: 'opus', payloadType: opus, clockRateHz: 48000, telephoneEventPayloadType: events(48000) }
  for (const [codec, payloadType] of [
    ['pcmu', 0],
    ['pcma', 8],
  ] as const)
    // Static payload types need no rtpmap. RFC 3551 §6.
    if (block.formats.includes(String(payloadType)))
      return { codec, payloadType, clockRateHz: 8000, telephoneEventPayloadType: events(8000) }
  return null
}

/** Dynamic and static types; 64–95 collide with RTCP on a shared port. RFC 5761 §4. */
function toPayloadType(text: string): number | null {
  const payloadType = Number(text)
  return /^\d{1,3}$/.test(text) && payloadType < 128 && (payloadType < 64 || payloadType > 95) ? payloadType : null
}

const isBundle = (group: string, mid: string | null): boolean => {
  const [semantics, ...mids] = group.split(' ')
  return semantics === 'BUNDLE' && mid !== null && mids.includes(mid)
}

function directionOf(attributes: Attributes): Direction {
  const directions: readonly string[] = ['sendrecv', 'sendonly', 'recvonly', 'inactive'] satisfies Direction[]
  return (attributes.find(([name]) => directions.includes(name))?.[0] as Direction | undefined) ?? 'sendrecv'
}

function credentialOf(attributes: Attributes, name: string, minLength: number): string {
  const value = valuesOf(attributes, name)[0] ?? ''
  const fits = value.length >= minLength && value.length <= 256 && credential.test(value)
  return fits ? value : refuse(`a=${name} is missing or malformed`)
}

function fingerprintOf(text: string): Fingerprint {
  const [algorithm = '', value = ''] = text.split(' ')
  return { algorithm: algorithm.toLowerCase(), value: value.toUpperCase() }
}

const isUsable = ({ algorithm, value }: Fingerprint): boolean =>
  usableFingerprint.test(algorithm) && /^([0-9A-F]{2}:){31,63}[0-9A-F]{2}$/.test(value)
