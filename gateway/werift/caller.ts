/** Owns a WebRTC caller for the self-test, tests and load tests: what a browser does with one audio track, without the browser. */
import type {
  CreateWebPeer,
  IceCandidate,
  NegotiatedAudio,
  RtpPacket,
  RtpTransportHandlers,
  TransportStats,
} from '../../model/rtp-transport.ts'
import { candidateAddressOf, readSdp, type CandidateAddress, type RemoteDescription } from '../read-sdp.ts'
import { writeOffer } from '../write-sdp.ts'
import { createControllingPath, type ControllingPath } from './controlling-path.ts'
import { loadIdentity, newCredentials, type Identity } from './identity.ts'
import { createWebStream, type Beat } from './web-stream.ts'

/** The WebRTC end of a caller. */
export type WebCaller = {
  /** Resolves with the SDP when the local candidates are in it. Asked again, it restarts ICE from another socket. */
  offer(): Promise<string>
  /** The way before goes on until there is a new one. */
  accept(answer: string): Promise<void>
  addCandidate(candidate: IceCandidate | null): Promise<void>
  /** The one listener; a later one takes its place. */
  onPacket(listener: (packet: RtpPacket) => void): void
  /** Dropped before `connected` and after the end. */
  send(packet: RtpPacket): void
  stats(): TransportStats
  /** Rejects when the call ended before or the time was over; nobody has to handle that. */
  readonly connected: Promise<NegotiatedAudio>
  /** What ended it, from either side. */
  readonly ended: Promise<string>
  /** Idempotent. */
  close(): Promise<void>
}

export type WeriftCallerOptions = {
  /** Local address of the socket; loopback when not given. */
  readonly bindAddress?: string
  /** The only address to call, whatever the answer offers besides. */
  readonly remoteAddress?: string
  /** What is offered, preferred first; Opus and PCMU when not given. */
  readonly codecs?: readonly ('opus' | 'pcmu')[]
  /** How long `connected` may take. */
  readonly connectTimeout?: number
}

const reportCheckEvery = 250

const asBrowsersDo = { comfortNoisePayloadType: null, packetMs: 20, silence: 'sparse' } as const
const offered = {
  opus: { ...asBrowsersDo, codec: 'opus', payloadType: 111, clockRateHz: 48000, telephoneEventPayloadType: 110 },
  pcmu: { ...asBrowsersDo, codec: 'pcmu', payloadType: 0, clockRateHz: 8000, telephoneEventPayloadType: 126 },
} as const satisfies Record<string, NegotiatedAudio>

export function createWeriftCaller(options: WeriftCallerOptions = {}): WebCaller {
  const outcome = createOutcome(options.connectTimeout ?? 10_000)
  const paths = createPaths(options, {
    receive: (datagram) => stream.receive(datagram),
    found: () => stream.start(),
  })
  const stream = createWebStream({
    beat: ownBeat,
    now: () => performance.now(),
    send: paths.send,
    packet: (packet) => listener(packet),
  })
  let listener: (packet: RtpPacket) => void = () => undefined
  let identity: Identity | null = null
  let version = 1
  let isAgreed = false

  async function offer(): Promise<string> {
    identity = await loadIdentity()
    const { credentials, candidates } = await paths.begin()
    const codecs = (options.codecs ?? ['opus', 'pcmu']).map((codec) => offered[codec])
    const { ssrc, cname } = stream
    const { fingerprint } = identity
    return writeOffer({ ...credentials, fingerprint, candidates, ssrc, cname, version: (version += 1) }, codecs)
  }

  async function accept(sdp: string): Promise<void> {
    if (!identity) throw new Error('there is no offer to answer')
    const answer = readSdp(sdp, ['passive'])
    if (!isAgreed) agree(answer, identity)
    isAgreed = true
    paths.connect(answer)
  }

  function agree({ fingerprints, audio }: RemoteDescription, { certificate }: Identity): void {
    stream.agree({
      role: 'client',
      certificate,
      fingerprints,
      audio,
      connected: () => outcome.succeed(audio),
      ended: (cause, details) => outcome.finish(`${cause}: ${details}`),
    })
  }

  async function addCandidate(candidate: IceCandidate | null): Promise<void> {
    const address = candidate && candidateAddressOf(candidate.candidate)
    if (address) paths.add(address)
  }

  async function close(): Promise<void> {
    stream.close()
    outcome.finish('closed')
    await paths.close()
  }

  const onPacket = (next: typeof listener): void => void (listener = next)
  const { send, stats } = stream
  const { connected, ended } = outcome
  return { offer, accept, addCandidate, onPacket, send, stats, connected, ended, close }
}

type PathHandlers = {
  receive(datagram: Buffer): void
  /** The first way was found. */
  found(): void
}

/** The way through the network, and the one after a restart until it is found. */
function createPaths({ bindAddress = '127.0.0.1', remoteAddress }: WeriftCallerOptions, handlers: PathHandlers) {
  let current: ControllingPath | null = null
  let next: ControllingPath | null = null

  function open({ usernameFragment, password }: ReturnType<typeof newCredentials>): ControllingPath {
    const path = createControllingPath({
      bindAddress,
      remoteAddress,
      localUser: usernameFragment,
      localPassword: password,
      receive: handlers.receive,
      found() {
        const former = current
        current = path
        next = null
        if (former) void former.close()
        else handlers.found()
      },
    })
    return path
  }

  return {
    async begin() {
      const credentials = newCredentials()
      await next?.close()
      next = open(credentials)
      return { credentials, candidates: [await next.open()] }
    },
    connect(answer: RemoteDescription): void {
      for (const candidate of answer.candidates) next?.add(candidate)
      next?.connect(answer)
    },
    add: (candidate: CandidateAddress) => (next ?? current)?.add(candidate),
    send: (datagram: Buffer) => current?.send(datagram),
    close: async () => void (await Promise.all([current?.close(), next?.close()])),
  }
}

/** Of one caller, for its reports: nothing else here waits for a time. */
const ownBeat: Beat = (onTick) => {
  const timer = setInterval(() => onTick(performance.now()), reportCheckEvery).unref()
  return () => clearInterval(timer)
}

/** How the call went, as promises; the first of success, end and deadline counts for `connected`. */
function createOutcome(connectTimeout: number) {
  const connected = Promise.withResolvers<NegotiatedAudio>()
  const ended = Promise.withResolvers<string>()
  const deadline = setTimeout(() => finish('not connected in time'), connectTimeout).unref()
  // Whoever does not wait for the connection must not be killed by its failure.
  connected.promise.catch(() => undefined)

  function finish(details: string): void {
    clearTimeout(deadline)
    connected.reject(new Error(details))
    ended.resolve(details)
  }

  function succeed(audio: NegotiatedAudio): void {
    clearTimeout(deadline)
    connected.resolve(audio)
  }
  return { connected: connected.promise, ended: ended.promise, succeed, finish }
}

/** One call between a peer of ours and a caller in this process, over `address` only, until a packet went through. */
export async function callYourself(createPeer: CreateWebPeer, address: string): Promise<void> {
  const caller = createWeriftCaller({ bindAddress: address, remoteAddress: address })
  const heard = Promise.withResolvers<void>()
  const giveUp = setTimeout(() => heard.reject(new Error('the packet was lost')), 5000)
  const handlers: RtpTransportHandlers = {
    negotiated: () => undefined,
    connected: () => undefined,
    packet: () => heard.resolve(),
    disconnected: (_cause, details) => heard.reject(new Error(details)),
  }
  const peer = createPeer(handlers)
  heard.promise.catch(() => undefined)
  try {
    await caller.accept(await peer.accept(await caller.offer()))
    const { payloadType } = await Promise.race([caller.connected, heard.promise.then(() => caller.connected)])
    caller.send({ payloadType, marker: true, sequenceNumber: 1, timestamp: 0, payload: new Uint8Array(60) })
    await heard.promise
  } finally {
    clearTimeout(giveUp)
    await Promise.all([caller.close(), peer.close()])
  }
}
