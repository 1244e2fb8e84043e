/** Owns a WebRTC caller for the self-test, tests and load tests: what a browser does with one audio track, without the browser. */
import type {
  CreateWebPeer,
  IceCandidate,
  NegotiatedAudio,
  RtpPacket,
  RtpTransportHandlers,
  TransportStats,
} from '../../model/rtp-transport.ts'
import { candidateAddressOf, readSdp } from '../read-sdp.ts'
import { writeOffer } from '../write-sdp.ts'
import { createControllingPath } from './controlling-path.ts'
import { loadIdentity, newCredentials, type Identity } from './identity.ts'
import { createWebStream, type Beat } from './web-stream.ts'

/** The WebRTC end of a caller. */
export type WebCaller = {
  /** Once; resolves with the SDP when the local candidates are in it. */
  offer(): Promise<string>
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
  const credentials = newCredentials()
  const outcome = createOutcome(options.connectTimeout ?? 10_000)
  const path = createControllingPath({
    bindAddress: options.bindAddress ?? '127.0.0.1',
    remoteAddress: options.remoteAddress,
    localUser: credentials.usernameFragment,
    receive: (datagram) => stream.receive(datagram),
    found: () => stream.start(),
  })
  const stream = createWebStream({
    beat: ownBeat,
    now: () => performance.now(),
    send: (datagram) => path.send(datagram),
    packet: (packet) => listener(packet),
  })
  let listener: (packet: RtpPacket) => void = () => undefined
  let identity: Identity | null = null

  async function offer(): Promise<string> {
    identity = await loadIdentity()
    const candidates = [await path.open()]
    const codecs = (options.codecs ?? ['opus', 'pcmu']).map((codec) => offered[codec])
    const { ssrc, cname } = stream
    return writeOffer({ ...credentials, fingerprint: identity.fingerprint, candidates, ssrc, cname }, codecs)
  }

  async function accept(sdp: string): Promise<void> {
    if (!identity) throw new Error('there is no offer to answer')
    const answer = readSdp(sdp, ['passive'])
    stream.agree({
      role: 'client',
      certificate: identity.certificate,
      fingerprints: answer.fingerprints,
      audio: answer.audio,
      connected: () => outcome.succeed(answer.audio),
      ended: (cause, details) => outcome.finish(`${cause}: ${details}`),
    })
    for (const candidate of answer.candidates) path.add(candidate)
    path.connect(answer)
  }

  async function addCandidate(candidate: IceCandidate | null): Promise<void> {
    const address = candidate && candidateAddressOf(candidate.candidate)
    if (address) path.add(address)
  }

  async function close(): Promise<void> {
    stream.close()
    outcome.finish('closed')
    await path.close()
  }

  const onPacket = (next: typeof listener): void => void (listener = next)
  const { send, stats } = stream
  const { connected, ended } = outcome
  return { offer, accept, addCandidate, onPacket, send, stats, connected, ended, close }
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
