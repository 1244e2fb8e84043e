/**
 * Owns who may begin DTLS with a call. Each address that ICE let in has a handshake of its own, which is answered there; the first whose
 * client proves itself by the announced certificate is the association, and the others are forgotten. So a stranger that sent a check of the
 * client once more can neither take the handshake nor spoil it. RFC 5763 §5, §6.2.
 */
import type { CandidateAddress } from '../read-sdp.ts'
import { beginsHandshake, contentType } from './dtls-record.ts'
import type { SrtpKeys } from './dtls-keys.ts'
import { createSecureChannel, type SecureChannel, type SecureChannelOptions } from './secure-channel.ts'
import { createRateLimit, perSecond } from '../../net/token-bucket.ts'

export type HandshakesOptions = Pick<SecureChannelOptions, 'role' | 'certificate' | 'fingerprints' | 'ended'> & {
  readonly now: () => number
  /** To where the client is, once that is proved. */
  send(datagram: Buffer): void
  sendTo(datagram: Buffer, to: CandidateAddress): void
  /** Whether ICE let nobody in but this address: then whoever fails there is the client itself. */
  isOnly(from: CandidateAddress): boolean
  /** A handshake failed and need not be the client's. */
  dropped(details: string): void
  /** `from`: where it proved itself. */
  connected(srtp: SrtpKeys, from: CandidateAddress): void
}

export type Handshakes = Pick<SecureChannel, 'start' | 'close'> & {
  /** DTLS, as it came from an address that ICE let in. */
  receive(datagram: Buffer, from: CandidateAddress): void
}

/** A client may change its way while it shakes hands; strangers that were let in are few. */
const maxAtOnce = 4
/** Of one call. Each costs an answer of 60 bytes, and more only once that was received. */
const maxBegun = 16
/** A handshake has some twenty datagrams; records that come faster would cost the others their sound. */
const dtlsPerSecond = 100

type Handshake = {
  readonly channel: SecureChannel
  readonly mayReceive: (at: number) => boolean
  /** Where it is answered. */
  at: CandidateAddress
}

export function createHandshakes(options: HandshakesOptions): Handshakes {
  const { role, certificate, fingerprints, now } = options
  /** The one that was heard last is the last. */
  let running: Handshake[] = []
  let association: Handshake | null = null
  let begun = 0
  let isOver = false

  function begin(at: CandidateAddress): Handshake | null {
    if (running.length >= maxAtOnce || begun >= maxBegun) return null
    begun += 1
    const handshake: Handshake = {
      at,
      mayReceive: createRateLimit(perSecond(dtlsPerSecond)),
      channel: createSecureChannel({
        role,
        certificate,
        fingerprints,
        send: (datagram) =>
          association === handshake ? options.send(datagram) : options.sendTo(datagram, handshake.at),
        connected: (srtp) => connected(handshake, srtp),
        ended: (cause, details) => ended(handshake, cause, details),
      }),
    }
    running.push(handshake)
    return handshake
  }

  function connected(handshake: Handshake, srtp: SrtpKeys): void {
    if (association !== null) return
    association = handshake
    for (const other of running) if (other !== handshake) other.channel.close()
    running = [handshake]
    options.connected(srtp, handshake.at)
  }

  /** Of a handshake that is not the client's nothing is told: the client's own goes on, or is still to come. */
  function ended(handshake: Handshake, cause: 'hung_up' | 'failed', details: string): void {
    running = running.filter((one) => one !== handshake)
    if (isOver) return
    if (association === null && !options.isOnly(handshake.at)) return options.dropped(details)
    isOver = true
    options.ended(cause, details)
  }

  /** Alerts are in clear until there are keys: those of elsewhere end nothing. */
  const elsewhere = (datagram: Buffer): Handshake | undefined =>
    datagram[0] === contentType.handshake ? running.at(-1) : undefined

  /** A client that goes another way in the middle of its handshake goes on with it there. */
  function handshakeAt(datagram: Buffer, from: CandidateAddress): Handshake | null {
    const own = running.find(({ at }) => isSame(at, from))
    const found = own ?? (beginsHandshake(datagram) ? begin(from) : elsewhere(datagram))
    if (!found) return null
    found.at = from
    if (running.at(-1) !== found) running = [...running.filter((one) => one !== found), found]
    return found
  }

  return {
    start() {
      begin(nowhere)?.channel.start()
    },
    receive(datagram, from) {
      const handshake = association ?? (role === 'client' ? running[0] : handshakeAt(datagram, from))
      if (handshake?.mayReceive(now())) handshake.channel.receive(datagram)
    },
    close() {
      isOver = true
      for (const { channel } of running) channel.close()
    },
  }
}

/** The client's end has one way. */
const nowhere: CandidateAddress = { address: '', port: 0 }

const isSame = (one: CandidateAddress, other: CandidateAddress): boolean =>
  one.port === other.port && one.address === other.address
