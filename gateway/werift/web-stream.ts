/**
 * Owns the media of one web call over a path that ICE proved: the DTLS association and, under its keys, RTP and RTCP, all on one port
 * (RFC 7983). A browser's end and that of our own caller differ in the role of DTLS only. RFC 5764, RFC 8834.
 */
import type { NegotiatedAudio, RtpPacket, TransportStats } from '../../model/rtp-transport.ts'
import { createPathSource, pathEnd, type PathSourceDeps } from '../../media/rtp/path-source.ts'
import type { Address } from '../../media/rtp/peer-source.ts'
import { createRtpStream, type StreamTap } from '../../media/rtp/rtp-stream.ts'
import type { SrtpKeys } from './dtls-keys.ts'
import { createHandshakes, type Handshakes, type HandshakesOptions } from './handshakes.ts'

/** Calls back every now and then with the time, from its first call until the result is called. */
export type Beat = (onTick: (at: number) => void) => () => void

export type WebStreamDeps = {
  readonly beat: Beat
  /** The beat's own time: milliseconds that never jump. */
  readonly now: () => number
  send(datagram: Buffer): void
  packet(packet: RtpPacket): void
  /** Authentic RTCP came. */
  alive?(): void
  /** Of a path whose end may move. */
  readonly path?: MovingPath
}

export type MovingPath = PathSourceDeps & Pick<HandshakesOptions, 'sendTo' | 'isOnly' | 'dropped'>

export type Agreed = Pick<HandshakesOptions, 'role' | 'certificate' | 'fingerprints' | 'ended'> & {
  readonly audio: NegotiatedAudio
  /** `from`: where the client proved itself. */
  connected(from: Address): void
}

export type WebStream = {
  /** For our description. */
  readonly ssrc: number
  readonly cname: string
  /** Once, when offer and answer are known. */
  agree(agreed: Agreed): void
  /** The client end says hello; a server end waits for it. */
  start(): void
  /** Of an ICE restart: the codec may be another one, the association goes on. */
  renegotiate(audio: NegotiatedAudio): void
  /** From an address that proved itself; media may also come from another one, and proves itself. */
  receive(datagram: Buffer, from?: Address): void
  /** Dropped before the association is there and after it ended. */
  send(packet: RtpPacket): void
  /** Null takes it off; an outgoing packet goes to `pathEnd`. */
  tap(tap: StreamTap | null): void
  stats(): Required<TransportStats>
  /** Tells the peer. Idempotent. */
  close(): void
}

/** Of a path that has one end. */
const onlyEnd = { isTarget: () => true, heard: () => undefined, isOnly: () => true, dropped: () => undefined }

export function createWebStream({ beat, now, ...deps }: WebStreamDeps): WebStream {
  const path: MovingPath = deps.path ?? { ...onlyEnd, sendTo: (datagram) => deps.send(datagram) }
  const stream = createRtpStream({
    source: createPathSource(path),
    now,
    packet: (packet) => deps.packet(packet),
    alive: () => deps.alive?.(),
    learned: () => undefined,
    sendRtp: (datagram) => deps.send(datagram),
    sendRtcp: (datagram) => deps.send(datagram),
  })
  let handshakes: Handshakes | null = null
  let leave: (() => void) | null = null
  let audio: NegotiatedAudio | null = null
  let keys: SrtpKeys | null = null

  /** As soon as both are known, and again when they change. */
  function flow(): void {
    if (audio && keys) stream.use({ remote: null, audio, direction: 'sendrecv', srtp: keys, rtcpMux: true })
  }

  function renegotiate(next: NegotiatedAudio): void {
    audio = next
    flow()
  }

  /** False: there was nothing to fall silent. */
  function fallSilent(): boolean {
    const wasLive = leave !== null
    leave?.()
    leave = null
    return wasLive
  }

  function agree({ connected, ended, ...association }: Agreed): void {
    audio = association.audio
    handshakes = createHandshakes({
      ...association,
      now,
      sendTo: path.sendTo,
      isOnly: path.isOnly,
      dropped: path.dropped,
      send: (datagram) => deps.send(datagram),
      connected(srtp, from) {
        keys = srtp
        flow()
        leave = beat(stream.tick)
        connected(from)
      },
      ended(cause, details) {
        fallSilent()
        ended(cause, details)
      },
    })
  }

  return {
    ssrc: stream.ssrc,
    cname: stream.cname,
    agree,
    renegotiate,
    start: () => handshakes?.start(),
    receive(datagram, from = pathEnd) {
      if (isDtls(datagram)) handshakes?.receive(datagram, from)
      else if (leave !== null) stream.receive(datagram, from)
    },
    send(packet) {
      if (leave !== null) stream.send(packet)
    },
    stats: stream.stats,
    tap: stream.tap,
    close() {
      if (fallSilent()) stream.goodbye()
      handshakes?.close()
    },
  }
}

/** RFC 7983 §7. */
const isDtls = ({ 0: first = 0 }: Buffer): boolean => first >= 20 && first <= 63
