/**
 * Owns the browser's media end: an offer answered as ICE-lite and DTLS server, then RTP both ways and RTCP, through restarts of ICE. DTLS and STUN messages are
 * werift's; candidates of the client are checked for form and not needed, because its own checks show where it is.
 */
import { networkInterfaces } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import type { Ticker } from '../../media/ticker/ticker.ts'
import type { Log } from '../../model/log.ts'
import { Problem } from '../../model/problem.ts'
import type { CreateWebPeer, IceCandidate, RtpTap, RtpTransportHandlers, WebPeer } from '../../model/rtp-transport.ts'
import { isCandidate, readSdp, type CandidateAddress, type RemoteDescription } from '../read-sdp.ts'
import { writeAnswer } from '../write-sdp.ts'
import { callYourself } from './caller.ts'
import { loadIdentity, newCredentials, type Identity } from './identity.ts'
import { openMediaSocket, type Credentials, type MediaPath, type MediaSocket } from './media-socket.ts'
import { familyOf } from '../../net/addresses.ts'
import { offeredAddresses, selfAddressOf, type MediaAddresses } from './offered-addresses.ts'
import { createWebStream } from './web-stream.ts'

export type WeriftPeersOptions = MediaAddresses & {
  /** UDP; one port of it is used, the first that is free. */
  readonly portRange: readonly [number, number]
  readonly ticker: Ticker
  /** The ticker's own time. */
  readonly now: () => number
  readonly log: Log
}

export type WeriftPeers = {
  /** Binds the socket, makes the certificate and plays one call to itself, so that the first caller does not wait for the compiler. */
  warmUp(): Promise<void>
  readonly createPeer: CreateWebPeer
  /** Idempotent; peers that are still open are closed first. */
  close(): Promise<void>
}

type Ground = { readonly socket: MediaSocket; readonly identity: Identity }

export function createWeriftPeers(options: WeriftPeersOptions): WeriftPeers {
  const peers = new Set<WebPeer>()
  let ground: Promise<Ground> | null = null
  let isClosed = false

  function prepare(): Promise<Ground> {
    if (isClosed) return Promise.reject(new Problem('SERVICE_UNAVAILABLE', 'The service is stopping.'))
    ground ??= openGround(options)
    return ground
  }

  function createPeer(handlers: RtpTransportHandlers): WebPeer {
    const hosts = () => offeredAddresses(options, networkInterfaces())
    const peer = createWeriftPeer({ ...options, handlers, hosts, prepare, closed: () => peers.delete(peer) })
    peers.add(peer)
    return peer
  }

  return {
    async warmUp() {
      await prepare()
      await callYourself(createPeer, selfAddressOf(options)).catch((error: unknown) =>
        options.log.warn('the call to itself failed', { error }),
      )
    },
    createPeer,
    async close() {
      isClosed = true
      await Promise.all([...peers].map((peer) => peer.close()))
      const opened = await ground?.catch(() => null)
      await opened?.socket.close()
    },
  }
}

async function openGround(options: WeriftPeersOptions): Promise<Ground> {
  const identity = await loadIdentity()
  return { identity, socket: await openMediaSocket(options) }
}

type PeerOptions = Pick<WeriftPeersOptions, 'ticker' | 'now' | 'log'> & {
  readonly handlers: RtpTransportHandlers
  hosts(): readonly string[]
  prepare(): Promise<Ground>
  closed(): void
}

/** What a client is connected by, until an ICE restart changes it. */
type Agreement = { readonly offer: RemoteDescription; readonly ground: Ground; readonly version: number }

function createWeriftPeer({ handlers, ticker, now, log, ...options }: PeerOptions): WebPeer {
  const stream = createWebStream({
    beat: ticker.join,
    now,
    send: (datagram) => path?.send(datagram),
    packet: (packet) => handlers.packet(packet),
    alive: () => handlers.alive?.(),
    path: {
      isTarget: (from) => path?.isTarget(from) ?? false,
      heard: (from, ssrc) => path?.heard(from, ssrc),
      sendTo: (datagram, to) => path?.sendTo(datagram, to),
      isOnly: (from) => path?.isOnly(from) ?? true,
      dropped: (details) => log.warn('a DTLS handshake failed and may be a stranger’s', { details }),
    },
  })
  let path: MediaPath | null = null
  let agreement: Agreement | null = null
  let isAccepted = false
  let isOver = false

  async function accept(sdp: string): Promise<string> {
    if (isOver) throw over()
    if (isAccepted && !agreement) throw answered()
    // The client must be able to be the DTLS client: this end is always the server.
    const offer = readSdp(sdp, ['actpass', 'active'])
    if (agreement) return restart(offer, agreement)
    isAccepted = true
    const ground = await options.prepare()
    if (isOver) throw over()
    return begin(offer, ground)
  }

  function begin(offer: RemoteDescription, ground: Ground): string {
    const credentials = newCredentials()
    path = ground.socket.open(credentials, stream.receive, () => handlers.consented?.())
    stream.agree({
      role: 'server',
      certificate: ground.identity.certificate,
      fingerprints: offer.fingerprints,
      audio: offer.audio,
      connected(from) {
        path?.secured(from)
        handlers.connected('connected')
      },
      ended: disconnected,
    })
    handlers.negotiated(offer.audio)
    return answerWith(credentials, { offer, ground, version: 2 })
  }

  /** New credentials for the same association: sound goes on by the way it has until the client has found another. */
  function restart(offer: RemoteDescription, { offer: former, ground, version }: Agreement): string {
    if (!isRestart(offer, former)) throw answered()
    if (!isSameAssociation(offer, former))
      throw new Problem('CONFLICT', 'The association of DTLS goes on: its certificate cannot change.')
    const credentials = newCredentials()
    path?.renew(credentials)
    stream.renegotiate(offer.audio)
    handlers.negotiated(offer.audio)
    return answerWith(credentials, { offer, ground, version: version + 1 })
  }

  function answerWith(credentials: Credentials, agreed: Agreement): string {
    agreement = agreed
    const { offer, ground, version } = agreed
    const { fingerprint } = ground.identity
    const candidates = options.hosts().flatMap((address) => {
      const port = ground.socket.portOf(familyOf(address))
      return port === null ? [] : [{ address, port }]
    })
    const { ssrc, cname } = stream
    return writeAnswer(offer, { ...credentials, fingerprint, candidates, ssrc, cname, version })
  }

  function disconnected(cause: 'hung_up' | 'failed', details: string): void {
    if (isOver) return
    release()
    handlers.disconnected(cause, details)
  }

  function release(): void {
    isOver = true
    try {
      stream.close()
    } finally {
      path?.close()
      options.closed()
      const { flood } = stream.stats().dropped
      if (flood > 0) log.warn('RTP was dropped', { flood })
    }
  }

  const close = async (): Promise<void> => void (isOver || release())
  const wasReached = (): boolean => path?.isReached() ?? false
  const tap = (told: RtpTap | null): void => {
    // Once: to list the interfaces of a machine takes too long for each packet.
    const hosts = told ? options.hosts() : []
    stream.tap(told && ((direction, packet, peer) => told(direction, packet, wireOf(peer, hosts))))
  }
  /** The socket is that of all addresses of this machine: the one that is offered first stands for it. */
  function wireOf(peer: CandidateAddress, hosts: readonly string[]): Parameters<RtpTap>[2] {
    const remote = peer.address === '' ? null : peer
    const host = hosts.find((address) => !remote || familyOf(address) === familyOf(remote.address))
    const port = host === undefined ? null : agreement?.ground.socket.portOf(familyOf(host))
    return { local: { address: host ?? '0.0.0.0', port: port ?? 0 }, remote }
  }
  return { accept, addCandidate, wasReached, send: stream.send, stats: stream.stats, tap, close }
}

const over = (): Problem => new Problem('CONFLICT', 'The call is over.')
const answered = (): Problem => new Problem('CONFLICT', 'An offer has been answered already.')

/** RFC 8839 §4.4.3.1.1: both change. */
const isRestart = (offer: RemoteDescription, former: RemoteDescription): boolean =>
  offer.usernameFragment !== former.usernameFragment && offer.password !== former.password

/** RFC 8842 §5.1: another certificate would be another association. */
const isSameAssociation = (offer: RemoteDescription, former: RemoteDescription): boolean =>
  isDeepStrictEqual(new Set(valuesOf(offer)), new Set(valuesOf(former)))

const valuesOf = ({ fingerprints }: RemoteDescription): readonly string[] => fingerprints.map(({ value }) => value)

async function addCandidate(candidate: IceCandidate | null): Promise<void> {
  // An empty candidate is an end mark, as browsers send it before the null.
  if (candidate === null || candidate.candidate === '' || isCandidate(candidate.candidate)) return
  const message = 'is not an ICE candidate'
  throw new Problem('VALIDATION_FAILED', `The candidate ${message}.`, [{ path: 'candidate.candidate', message }])
}
