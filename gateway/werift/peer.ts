/**
 * Owns the browser's media end: one offer answered as ICE-lite and DTLS server, then RTP both ways. DTLS, SRTP and STUN messages are
 * werift's; candidates of the client are checked for form and not needed, because its own checks show where it is.
 */
import { randomInt } from 'node:crypto'
import { networkInterfaces } from 'node:os'
import type { Log } from '../../model/log.ts'
import { Problem } from '../../model/problem.ts'
import type {
  CreateWebPeer,
  IceCandidate,
  RtpPacket,
  RtpTransportHandlers,
  TransportStats,
  WebPeer,
} from '../../model/rtp-transport.ts'
import { isCandidate, readSdp, type RemoteDescription } from '../read-sdp.ts'
import { writeAnswer } from '../write-sdp.ts'
import { callYourself } from './caller.ts'
import { loadIdentity, newCredentials, type Identity } from './identity.ts'
import { openMediaSocket, type Credentials, type MediaSocket } from './media-socket.ts'
import { familyOf, isLinkLocal, isWildcard, loopbackOf, type Family } from '../../net/addresses.ts'
import { createRateLimit, perSecond } from '../../net/token-bucket.ts'
import { createSecureChannel } from './secure-channel.ts'

export type WeriftPeersOptions = {
  /** An IP address; a wildcard (0.0.0.0, ::) offers the addresses of all interfaces. */
  readonly bindAddress: string
  /** What clients outside reach this host by (behind NAT); offered before the local addresses. */
  readonly publicAddress?: string | undefined
  /** UDP; one port of it is used, the first that is free. */
  readonly portRange: readonly [number, number]
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
    const peer = createWeriftPeer({ handlers, hosts, prepare, log: options.log, closed: () => peers.delete(peer) })
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

type PeerOptions = {
  readonly log: Log
  readonly handlers: RtpTransportHandlers
  hosts(): readonly string[]
  prepare(): Promise<Ground>
  closed(): void
}

function createWeriftPeer(options: PeerOptions): WebPeer {
  const counts = { packetsReceived: 0, packetsSent: 0, bytesReceived: 0, bytesSent: 0 }
  let isAccepted = false
  let isOver = false
  let link: Link | null = null

  async function accept(sdp: string): Promise<string> {
    if (isAccepted || isOver) throw new Problem('CONFLICT', 'An offer has been answered already.')
    // The client must be able to be the DTLS client: this end is always the server.
    const offer = readSdp(sdp, ['actpass', 'active'])
    isAccepted = true
    const ground = await options.prepare()
    if (isOver) throw new Problem('CONFLICT', 'The call is over.')
    return answer(offer, ground)
  }

  function answer(offer: RemoteDescription, ground: Ground): string {
    const credentials = newCredentials()
    const ssrc = randomInt(1, 2 ** 32)
    const handlers = { ...options.handlers, packet, disconnected }
    link = openLink({ ground, log: options.log, credentials, ssrc, offer, handlers })
    options.handlers.negotiated(offer.audio)
    const candidates = options.hosts().map((address) => ({ address, port: ground.socket.port }))
    return writeAnswer(offer, { ...credentials, fingerprint: ground.identity.fingerprint, candidates, ssrc })
  }

  function packet(received: RtpPacket): void {
    counts.packetsReceived += 1
    counts.bytesReceived += received.payload.length
    options.handlers.packet(received)
  }

  function disconnected(cause: 'hung_up' | 'failed', details: string): void {
    if (isOver) return
    release()
    options.handlers.disconnected(cause, details)
  }

  function send(sent: RtpPacket): void {
    if (!link?.send(sent)) return
    counts.packetsSent += 1
    counts.bytesSent += sent.payload.length
  }

  function release(): void {
    isOver = true
    try {
      link?.close()
    } finally {
      options.closed()
    }
  }

  const stats = (): TransportStats => ({ ...counts })
  const close = async (): Promise<void> => void (isOver || release())
  return { accept, addCandidate, send, stats, close }
}

type Link = { send(packet: RtpPacket): boolean; close(): void }

type LinkOptions = {
  readonly log: Log
  readonly ground: Ground
  readonly credentials: Credentials
  readonly ssrc: number
  readonly offer: RemoteDescription
  readonly handlers: Omit<RtpTransportHandlers, 'negotiated'>
}

/** Audio has 50 to 100 packets a second; what a caller sends beyond this would cost the others their sound. */
const packetsPerSecond = 250

/** The path over the shared socket and the secure channel on it. */
function openLink({ ground, log, credentials, ssrc, offer, handlers }: LinkOptions): Link {
  const { payloadType, telephoneEventPayloadType } = offer.audio
  const mayPass = createRateLimit(perSecond(packetsPerSecond))
  let dropped = 0
  const path = ground.socket.open(credentials, (datagram) => {
    if (mayPass(performance.now())) channel.receive(datagram)
    else dropped += 1
  })
  const channel = createSecureChannel({
    role: 'server',
    certificate: ground.identity.certificate,
    fingerprints: offer.fingerprints,
    ssrc,
    send: (datagram) => path.send(datagram),
    connected: () => handlers.connected('connected'),
    packet(packet) {
      if (packet.payloadType === payloadType || packet.payloadType === telephoneEventPayloadType)
        handlers.packet(packet)
    },
    ended: (cause, details) => handlers.disconnected(cause, details),
  })
  return {
    send(packet) {
      const datagram = channel.protect(packet)
      if (datagram) path.send(datagram)
      return datagram !== null
    },
    close() {
      try {
        channel.close()
      } finally {
        path.close()
        if (dropped > 0) log.warn('datagrams above the rate were dropped', { dropped })
      }
    },
  }
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
