/**
 * Owns what offer and answer say of the media of one phone call, on a line that carries it: our side of the descriptions, and what was agreed
 * on. RFC 3264: one session id for the call, and a version that grows with each description that says something new (§8).
 */
import { randomInt } from 'node:crypto'
import type { TalkFacts } from '../../model/sip-dialog.ts'
import type { TrunkSettings } from '../../model/trunk.ts'
import { isHeld, type PhoneLine } from '../../media/plane/phone-line.ts'
import { createSrtpKey } from '../../media/rtp/srtp/srtp-keys.ts'
import type { CryptoSuite, LocalMedia, MediaSession } from '../../media/rtp/media-session.ts'
import { familyOf } from '../../net/addresses.ts'
import type { MediaWarning } from '../answer-with.ts'
import { answerOffer } from '../sdp/answer-offer.ts'
import { nameOfCodec } from '../sdp/audio-formats.ts'
import { createOffer } from '../sdp/create-offer.ts'
import { readAnswer } from '../sdp/read-answer.ts'

/** What the trunk wants of the sound, and what the way it came or goes suggests. */
export type MediaWishes = Pick<LocalMedia, 'codecs' | 'encryption'>

export type Agreed = { readonly sdp: string; readonly session: MediaSession }
export type NotAgreed = { readonly refused: string; readonly warning?: MediaWarning }

export type PhoneMedia<Line extends PhoneLine = PhoneLine> = {
  readonly line: Line
  /** Another trunk is tried. */
  wish(wishes: MediaWishes): void
  /** Within the call sound stays as it is, encrypted or plain. */
  offer(): string
  /** What the peer answered to our last offer, or to our last description offered once more. */
  readAnswer(answer: string): Omit<Agreed, 'sdp'> | NotAgreed
  /** Our answer; nothing of it is in use yet. */
  answer(offer: string): Agreed | NotAgreed
  use(session: MediaSession): void
  /** Of the message whose description is used next: behind a NAT sound may come from there. */
  signaledFrom(address: string | undefined): void
  /** By the other side: no sound of the caller is expected. */
  isHeld(): boolean
  /** What somebody else who goes on with the call must know of it; null: nothing has been agreed on yet. */
  described(): Described | null
}

type Described = Omit<TalkFacts, 'number'>

const suites: readonly CryptoSuite[] = ['AES_CM_128_HMAC_SHA1_80', 'AES_CM_128_HMAC_SHA1_32']
const usualCodecs: LocalMedia['codecs'] = ['PCMU', 'PCMA', 'G722']

/** We offer SRTP where the keys travel hidden (TLS), and take it from anybody who offers it (RFC 4568 §8.3). */
export function wishesOf(settings: TrunkSettings, way: 'offer' | 'answer', protocol: string): MediaWishes {
  const codecs = settings.codecs?.length ? settings.codecs : usualCodecs
  if (settings.encryption) return { codecs, encryption: settings.encryption === 'sdes' ? 'required' : 'none' }
  if (way === 'answer') return { codecs, encryption: 'optional' }
  return { codecs, encryption: protocol === 'tls' ? 'required' : 'none' }
}

/** Of a call that another process began: what it has agreed on is what is offered. */
export function wishesOfHeir(
  settings: TrunkSettings,
  protocol: string,
  { audio, isEncrypted }: Described,
): MediaWishes {
  const { codecs, encryption } = wishesOf(settings, 'answer', protocol)
  const name = nameOfCodec(audio.codec)
  const plain = encryption === 'required' ? 'none' : encryption
  return {
    codecs: codecs.includes(name) ? codecs : [name, ...codecs],
    encryption: isEncrypted ? 'required' : plain,
  }
}

/** `earlier`: of another process, whose call it was. */
export function createPhoneMedia<Line extends PhoneLine>(
  line: Line,
  wishes: MediaWishes,
  earlier: Described | null = null,
): PhoneMedia<Line> {
  let inUse: MediaSession | null = null
  let signaledFrom: string | null = null
  const { local, own } = createLocal(placeFor(line, earlier), wishes, earlier)

  /** What was agreed on counts in our offers, not what we would have taken: an `optional` one would be plain. */
  const offered = (): LocalMedia => {
    if (inUse === null) return local()
    return { ...local(), encryption: inUse.srtp ? 'required' : 'none' }
  }
  return {
    line,
    wish: (wished) => void Object.assign(own, wished),
    offer: () => versioned(own, createOffer(offered()), () => createOffer(offered())),
    readAnswer(answer) {
      const told = readAnswer(answer, offered())
      if (told.kind === 'refused') return { refused: told.reason }
      return reaches(own, told.session) ? { session: told.session } : otherFamily(own, told.session)
    },
    answer(offer) {
      const told = answerOffer(offer, local())
      if (told.kind === 'refused') return { refused: told.reason }
      const { remote } = told.session
      const address = remote ? addressToward(line, own, remote.address) : own.address
      if (address === null) return otherFamily(own, told.session)
      own.address = address
      const first = answerOffer(offer, local())
      if (first.kind === 'refused') return { refused: first.reason }
      const sdp = versioned(own, first.answer, () => {
        const answered = answerOffer(offer, local())
        return answered.kind === 'refused' ? first.answer : answered.answer
      })
      return { sdp, session: first.session }
    },
    use(session) {
      inUse = session
      if (own.agreed) own.agreed = session.audio
      line.use({ ...session, signaledFrom })
    },
    signaledFrom: (address) => void (signaledFrom = address ?? null),
    isHeld: () => isHeld(inUse),
    described() {
      const { sessionId, version, originAddress: address = own.address } = local()
      return inUse && { origin: { sessionId, version, address }, audio: inUse.audio, isEncrypted: inUse.srtp !== null }
    },
  }
}

/** Of the family that the peer has been spoken to by. */
const placeFor = ({ local, addressFor }: PhoneLine, earlier: Described | null): PhoneLine['local'] => {
  const address = earlier && addressFor(familyOf(earlier.origin.address))
  return address === null ? local : { ...local, address }
}

/** IPv4 and IPv6 do not hear each other. A description without an address (hold, a name) is of any family. */
const reaches = ({ address }: Own, { remote }: MediaSession): boolean =>
  remote === null || familyOf(remote.address) === familyOf(address)

/** A socket for both families has an address of each. */
const addressToward = (line: PhoneLine, { address }: Own, peer: string): string | null =>
  familyOf(peer) === familyOf(address) ? address : line.addressFor(familyOf(peer))

const otherFamily = ({ address }: Own, { remote }: MediaSession): NotAgreed => ({
  refused: `It wants its sound by IPv${familyOf(remote?.address ?? address)}, and IPv${familyOf(address)} is spoken here.`,
  warning: 300,
})

type Own = {
  address: string
  codecs: LocalMedia['codecs']
  encryption: LocalMedia['encryption']
  version: number
  last: string | null
  /** Of a call that another process began. */
  agreed: LocalMedia['agreed'] | null
}

function createLocal(
  place: Pick<LocalMedia, 'address' | 'port' | 'rtcpPort'>,
  wishes: MediaWishes,
  earlier: Described | null,
) {
  const keys = suites.map(createSrtpKey)
  // RFC 8866 §5.2: digits; 53 bits survive every reader.
  const { sessionId = String(randomInt(2 ** 47)), version = 0, address: originAddress } = earlier?.origin ?? {}
  const own: Own = {
    ...wishes,
    address: place.address,
    version: version + 1,
    last: null,
    agreed: earlier?.audio ?? null,
  }
  const local = (): LocalMedia => ({
    ...place,
    address: own.address,
    codecs: own.codecs,
    encryption: own.encryption,
    version: own.version,
    keys,
    sessionId,
    direction: 'sendrecv',
    ...(originAddress !== undefined && { originAddress }),
    ...(own.agreed && { agreed: own.agreed }),
  })
  return { local, own }
}

/** The same words again (`said`, by the version of now) keep their version; others get the next one, and are written anew. */
function versioned(own: Own, said: string, again: () => string): string {
  if (own.last === null || said === own.last) return (own.last = said)
  own.version += 1
  return (own.last = again())
}
