/** Owns what a SIP message says of its sender's sound: the description in its body, where the sound is wanted, and in which codecs. */
import { attributesNamed, readSdpText, type SdpSection } from '../../../net/sdp.ts'
import { comfortNoise, encodings, formatsOf, isEncoding } from '../../../net/sdp-formats.ts'
import { sdpIn } from '../../../sip/call/sdp-in.ts'
import { headerOf } from '../../../sip/server/message/header-fields.ts'
import type { SipMessage } from '../../../sip/server/message/message.ts'
import { bracketedHost } from '../allowed-hosts.ts'
import type { SessionHead } from './session-format.ts'

export type DescribedSound = {
  /** `address:port`; an IPv6 address has brackets. */
  readonly place: string
  readonly isEncrypted: boolean
  /** Preferred first; without key presses and comfort noise. */
  readonly codecs: readonly DescribedCodec[]
}

/** `name`: for people. `codec` is null where a session file has none for it. */
export type DescribedCodec = {
  readonly name: string
  readonly payloadType: number
  readonly codec: SessionHead['codec'] | null
}

/** Its whole body, or one part of it; null: it has none. */
export function descriptionOf(message: SipMessage): string | null {
  const body = new TextDecoder().decode(message.body)
  return sdpIn({ body, get: () => headerOf(message, 'Content-Type') ?? undefined }) || null
}

/** Null: it describes no sound, or refuses it. */
export function describedSound(message: SipMessage): DescribedSound | null {
  const sdp = readSdpText(descriptionOf(message) ?? '')
  const audio = typeof sdp === 'string' ? undefined : sdp.sections.find(({ kind }) => kind === 'audio')
  if (typeof sdp === 'string' || !audio || audio.port === 0) return null
  const [, address] = /^IN IP[46] (\S+)/.exec(audio.connection ?? sdp.connection ?? '') ?? []
  if (address === undefined) return null
  return {
    place: `${bracketedHost(address)}:${audio.port}`,
    isEncrypted: /SAVPF?$/.test(audio.protocol) || attributesNamed(audio.attributes, 'crypto').length > 0,
    codecs: codecsOf(audio),
  }
}

const ofSound = (encoding: string): boolean =>
  !/^(?:telephone-event|red)\//i.test(encoding) && encoding !== comfortNoise

const codecsOf = (audio: SdpSection): DescribedCodec[] =>
  formatsOf(audio)
    .filter(({ encoding }) => ofSound(encoding))
    .map((format) => ({
      name: format.encoding.split('/')[0] ?? '',
      payloadType: format.payloadType,
      codec: codecs.find((codec) => isEncoding(format, encodings[codec])) ?? null,
    }))

const codecs = Object.keys(encodings) as SessionHead['codec'][]
