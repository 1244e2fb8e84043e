/** Owns reading the answer to our own offer. RFC 3264 §7. */
import { readSdpText } from '../../net/sdp.ts'
import type { LocalMedia, MediaSession } from '../../media/rtp/media-session.ts'
import type { RefusedDescription } from './answer-offer.ts'
import { offeredTag } from './crypto-lines.ts'
import { readAudio } from './remote-media.ts'

export type ReadAnswer = { readonly kind: 'agreed'; readonly session: MediaSession } | RefusedDescription

const refused = (reason: string): RefusedDescription => ({ kind: 'refused', reason })

/** `local` as the offer was made of (`createOffer`). Never throws. */
export function readAnswer(answer: string, local: LocalMedia): ReadAnswer {
  const text = readSdpText(answer)
  if (typeof text === 'string') return refused(`The answer is no session description: ${text}.`)
  const section = text.sections[0]
  if (section?.kind !== 'audio') return refused('The answer has no audio.')
  // What was offered is plain unless encryption is required.
  const encryption = local.encryption === 'required' ? 'required' : 'none'
  const audio = readAudio(text, section, { ...local, encryption })
  if (typeof audio === 'string') return refused(`The answer cannot be used: ${audio}.`)
  if (audio.crypto && !isOffered(audio.crypto, local)) return refused('The answer takes a key that was not offered.')
  return { kind: 'agreed', session: audio.session }
}

/** The tag names our line, and each line has its suite. RFC 4568 §5.1.3. */
const isOffered = ({ tag, suite }: { readonly tag: string; readonly suite: string }, local: LocalMedia): boolean =>
  local.keys.some((key, index) => offeredTag(index) === tag && key.suite === suite)
