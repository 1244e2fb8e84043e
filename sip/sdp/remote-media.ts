/** Owns reading one audio section of the other side: can it be used, and with what. RFC 3264, RFC 3605, RFC 5761. */
import { isWildcard, plainAddressOf } from '../../net/addresses.ts'
import { networksOf } from '../../net/networks.ts'
import { attributesNamed, directionIn, otherDirection, type SdpSection, type SdpText } from '../../net/sdp.ts'
import type { LocalMedia, MediaDirection, MediaSession } from '../../media/rtp/media-session.ts'
import { namesOf, negotiateAudio } from './audio-formats.ts'
import { readCrypto, type CryptoLine } from './crypto-lines.ts'

export type UsableAudio = { readonly session: MediaSession; readonly crypto: CryptoLine | null }

/** Below it are the services of hosts (RFC 6335 §6): a caller must not have sound sent to a name server. */
const lowestPort = 1024

const plainProfiles = ['RTP/AVP', 'RTP/AVPF']
const secureProfiles = ['RTP/SAVP', 'RTP/SAVPF']

/** A string says for people why the section cannot be used. `encryption`: `none` and `required` as it is, `optional` either. */
export function readAudio(text: SdpText, section: SdpSection, local: LocalMedia): UsableAudio | string {
  if (section.port === 0) return 'its audio is switched off (port 0)'
  if (section.port < lowestPort) return `it wants its sound at port ${section.port}, where no telephone listens`
  const profileFault = profileFaultOf(section, local.encryption)
  if (profileFault !== null) return profileFault
  const place = section.connection ?? text.connection
  const address = place === null ? undefined : addressIn(place, local.address)
  if (address === undefined) return 'it does not say at which address it wants the sound (c=)'
  const audio = negotiateAudio(section, text.attributes, local.codecs)
  if (!audio) return codecFaultOf(section, local)
  const secure = secureProfiles.includes(section.protocol) ? keysOf(section, local) : { srtp: null, crypto: null }
  if (!secure) return 'none of its keys for encryption (a=crypto) can be used'
  return {
    session: { ...wayOf(text, section, address, local.direction), audio, srtp: secure.srtp },
    crypto: secure.crypto,
  }
}

function profileFaultOf({ protocol }: SdpSection, encryption: LocalMedia['encryption']): string | null {
  const isPlain = plainProfiles.includes(protocol)
  if (!isPlain && !secureProfiles.includes(protocol))
    return `it wants its sound by ${protocol}, which is not spoken here`
  if (isPlain && encryption === 'required')
    return `its sound is not encrypted (${protocol}), and only encrypted sound is taken`
  if (!isPlain && encryption === 'none')
    return `its sound is encrypted (${protocol}), and encryption is switched off here`
  return null
}

const codecFaultOf = (section: SdpSection, local: LocalMedia): string =>
  `its codecs are ${namesOf(section) || 'unknown'}, and ${local.codecs.join(', ')} can be used here`

/** The first line for which we have a key of the same suite. RFC 4568 §5.1.2. */
function keysOf(section: SdpSection, local: LocalMedia): { srtp: MediaSession['srtp']; crypto: CryptoLine } | null {
  for (const value of attributesNamed(section.attributes, 'crypto')) {
    const crypto = readCrypto(value)
    const ours = crypto && local.keys.find(({ suite }) => suite === crypto.suite)
    if (ours) return { srtp: { ours, theirs: { suite: crypto.suite, keyAndSalt: crypto.keyAndSalt } }, crypto }
  }
  return null
}

type Way = Pick<MediaSession, 'remote' | 'isNameless' | 'direction' | 'rtcpMux'>

function wayOf(text: SdpText, section: SdpSection, address: RemoteAddress, ours: MediaDirection): Way {
  const rtcpMux = section.attributes.some(([name]) => name === 'rtcp-mux')
  const rtcpPort = rtcpMux ? section.port : (rtcpPortOf(section) ?? Math.min(section.port + 1, 65_535))
  const theirs = directionIn([...section.attributes, ...text.attributes])
  return {
    remote: address.kind === 'literal' ? { address: address.text, port: section.port, rtcpPort } : null,
    ...(address.kind === 'name' && { isNameless: true }),
    direction: commonDirection(ours, address.kind === 'hold' ? withoutReceiving(theirs) : theirs),
    rtcpMux,
  }
}

function rtcpPortOf(section: SdpSection): number | null {
  const port = Number(/^\d{1,5}/.exec(attributesNamed(section.attributes, 'rtcp')[0] ?? '')?.[0] ?? 0)
  return port >= lowestPort && port <= 65_535 ? port : null
}

const sends = (direction: MediaDirection): boolean => direction === 'sendrecv' || direction === 'sendonly'

/** From our side: each way flows only when one sends and the other receives. RFC 3264 §6.1. */
function commonDirection(ours: MediaDirection, theirs: MediaDirection): MediaDirection {
  const weSend = sends(ours) && sends(otherDirection[theirs])
  const weReceive = sends(otherDirection[ours]) && sends(theirs)
  if (weSend) return weReceive ? 'sendrecv' : 'sendonly'
  return weReceive ? 'recvonly' : 'inactive'
}

const withoutReceiving = (direction: MediaDirection): MediaDirection => (sends(direction) ? 'sendonly' : 'inactive')

type RemoteAddress = { readonly kind: 'literal'; readonly text: string } | { readonly kind: 'hold' | 'name' }

/**
 * `IN IP4 192.0.2.1`. All zeros was hold before there were directions (RFC 3264 §8.4). A name is never looked up, and nothing is sent to many
 * at once, nor to this machine or its link (where clouds keep their metadata) unless that is where we are: such an address counts as a
 * name, and its peer is where it is heard from. Private ones are taken: PBXs behind a NAT write them, and their sound shows where they are. Undefined: malformed.
 */
function addressIn(connection: string, ours: string): RemoteAddress | undefined {
  const [, text = ''] = /^IN\s+IP[46]\s+([A-Za-z0-9.:_-]{1,255})(?:\/\d+)*$/i.exec(connection) ?? []
  if (text === '') return undefined
  const plain = plainAddressOf(text)
  if (plain === null) return { kind: 'name' }
  if (isWildcard(plain)) return { kind: 'hold' }
  const isNowhere = toMany.includes(plain) || (ofThisMachine.includes(plain) && !ofThisMachine.includes(ours))
  return isNowhere ? { kind: 'name' } : { kind: 'literal', text: plain }
}

/** Multicast, and what is reserved above it. */
const toMany = networksOf(['224.0.0.0/3', 'ff00::/8'])

/** Loopback and link-local; RFC 1122 §3.2.1.3, RFC 3927, RFC 4291 §2.5.3, §2.5.6. */
const ofThisMachine = networksOf(['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '::1', 'fe80::/10'])
