/**
 * Owns the browser's media end: one offer answered as ICE-lite and DTLS server, then RTP both ways and RTCP. DTLS and STUN messages are
 * werift's; candidates of the client are checked for form and not needed, because its own checks show where it is.
 */
import { networkInterfaces } from 'node:os'
import type { Ticker } from '../../media/ticker/ticker.ts'
import type { Log } from '../../model/log.ts'
import { Problem } from '../../model/problem.ts'
import type { CreateWebPeer, IceCandidate, RtpTransportHandlers, WebPeer } from '../../model/rtp-transport.ts'
import { isCandidate, readSdp, type RemoteDescription } from '../read-sdp.ts'
import { writeAnswer } from '../write-sdp.ts'
import { callYourself } from './caller.ts'
import { loadIdentity, newCredentials, type Identity } from './identity.ts'
import { openMediaSocket, type MediaPath, type MediaSocket } from './media-socket.ts'
import { familyOf, isLinkLocal, isWildcard, loopbackOf, type Family } from '../../net/addresses.ts'
import { createWebStream } from './web-stream.ts'

export type WeriftPeersOptions = {
  /** An IP address; a wildcard (0.0.0.0, ::) offers the addresses of all interfaces. */
  readonly bindAddress: string
  /** What clients outside reach this host by (behind NAT); offered before the local addresses. */
  readonly publicAddress?: string | undefined
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
    const hosts = () => hostsOf(options)
    const peer = createWeriftPeer({ ...options, handlers, hosts, prepare, closed: () => peers.delete(peer) })
    peers.add(peer)
    return peer
  }

  return {
    async warmUp() {
      await prepare()
      await callYourself(createPeer, selfAddressOf(options.bindAddress)).catch((error: unknown) =>
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

function createWeriftPeer({ handlers, ticker, now, log, ...options }: PeerOptions): WebPeer {
  const stream = createWebStream({
    beat: ticker.join,
    now,
    send: (datagram) => path?.send(datagram),
    packet: (packet) => handlers.packet(packet),
  })
  let path: MediaPath | null = null
  let isAccepted = false
  let isOver = false

  async function accept(sdp: string): Promise<string> {
    if (isAccepted || isOver) throw new Problem('CONFLICT', 'An offer has been answered already.')
    // The client must be able to be the DTLS client: this end is always the server.
    const offer = readSdp(sdp, ['actpass', 'active'])
    isAccepted = true
    const ground = await options.prepare()
    if (isOver) throw new Problem('CONFLICT', 'The call is over.')
    return answer(offer, ground)
  }

  function answer(offer: RemoteDescription, { socket, identity }: Ground): string {
    const credentials = newCredentials()
    path = socket.open(credentials, stream.receive)
    stream.agree({
      role: 'server',
      certificate: identity.certificate,
      fingerprints: offer.fingerprints,
      audio: offer.audio,
      connected: () => handlers.connected('connected'),
      ended: disconnected,
    })
    handlers.negotiated(offer.audio)
    const candidates = options.hosts().map((address) => ({ address, port: socket.port }))
    const { ssrc, cname } = stream
    return writeAnswer(offer, { ...credentials, fingerprint: identity.fingerprint, candidates, ssrc, cname })
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
  return { accept, addCandidate, send: stream.send, stats: stream.stats, close }
}

async function addCandidate(candidate: IceCandidate | null): Promise<void> {
  // An empty candidate is an end mark, as browsers send it before the null.
  if (candidate === null || candidate.candidate === '' || isCandidate(candidate.candidate)) return
  const message = 'is not an ICE candidate'
  throw new Problem('VALIDATION_FAILED', `The candidate ${message}.`, [{ path: 'candidate.candidate', message }])
}

/** The addresses to offer, the public one first. Loopback is offered when nothing else is asked for, so that a browser on this host gets through. */
function hostsOf({ bindAddress, publicAddress }: WeriftPeersOptions): string[] {
  const local = isWildcard(bindAddress) ? interfaceAddresses(familyOf(bindAddress)) : [bindAddress]
  return [...new Set(publicAddress === undefined ? local : [publicAddress, ...local])]
}

/** Where this host reaches itself without a packet leaving it. */
const selfAddressOf = (bindAddress: string): string =>
  isWildcard(bindAddress) ? loopbackOf(familyOf(bindAddress)) : bindAddress

const interfaceAddresses = (family: Family): string[] =>
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    // Link-local addresses need a scope that a candidate cannot carry.
    .filter((found) => familyOf(found.address) === family && !isLinkLocal(found.address))
    .sort((a, b) => Number(a.internal) - Number(b.internal))
    .map((found) => found.address)
