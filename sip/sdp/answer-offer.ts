/** Owns our answer to an offer of the other side. RFC 3264 §6. */
import { readSdpText, refusedMedia, type SdpSection, type SdpText } from '../../net/sdp.ts'
import type { LocalMedia, MediaSession } from '../../media/rtp/media-session.ts'
import { agreedFormats } from './audio-formats.ts'
import { writeCrypto } from './crypto-lines.ts'
import { readAudio, type UsableAudio } from './remote-media.ts'
import { writeAudio, writeDescription } from './write-description.ts'

export type AnsweredOffer =
  { readonly kind: 'answered'; readonly answer: string; readonly session: MediaSession } | RefusedDescription

/** Nothing of it can be used: 488. `reason` is a sentence for people. */
export type RefusedDescription = { readonly kind: 'refused'; readonly reason: string }

/** The first audio section that can be used is taken, every other one is refused in its place. Never throws. */
export function answerOffer(offer: string, local: LocalMedia): AnsweredOffer {
  const text = readSdpText(offer)
  if (typeof text === 'string') return { kind: 'refused', reason: `The offer is no session description: ${text}.` }
  const attempts = text.sections.map((section) => (section.kind === 'audio' ? readAudio(text, section, local) : null))
  const at = attempts.findIndex((attempt) => attempt !== null && typeof attempt === 'object')
  const usable = attempts[at]
  if (!usable || typeof usable === 'string') return { kind: 'refused', reason: reasonOf(attempts) }
  const sections = text.sections.flatMap((section, index) =>
    index === at ? answerLines(section, usable, local) : refusedMedia(section),
  )
  return { kind: 'answered', answer: writeDescription(local, sections, timingOf(text)), session: usable.session }
}

function reasonOf(attempts: readonly (UsableAudio | string | null)[]): string {
  const faults = attempts.filter((attempt) => typeof attempt === 'string')
  if (faults.length === 0) return 'The offer has no audio.'
  return `The offer cannot be used: ${[...new Set(faults)].slice(0, 4).join('; ')}.`
}

function answerLines({ protocol }: SdpSection, { session, crypto }: UsableAudio, local: LocalMedia): string[] {
  const { payloadTypes, lines } = agreedFormats(session.audio)
  return writeAudio(local, {
    protocol,
    payloadTypes,
    formatLines: lines,
    // The answer names the line of the offer that it takes (RFC 4568 §5.1.2).
    cryptoLines: session.srtp && crypto ? [writeCrypto(crypto.tag, session.srtp.ours)] : [],
    packetMs: session.audio.packetMs,
    direction: session.direction,
    rtcpMux: session.rtcpMux,
  })
}

const timingOf = ({ timing }: SdpText): string =>
  timing !== null && /^\d{1,20} \d{1,20}$/.test(timing) ? timing : '0 0'
