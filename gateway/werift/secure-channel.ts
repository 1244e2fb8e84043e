/**
 * Owns one DTLS-SRTP association over any datagram path: handshake by werift, proof of the peer, SRTP both ways, close_notify.
 * RFC 5763, RFC 5764. States: handshaking → connected → ended; every state can end, and `ended` comes at most once.
 */
import type { AddressInfo } from 'node:net'
import { DtlsClient, DtlsServer, type RTCCertificate } from 'werift'
import type { RtpPacket } from '../../model/rtp-transport.ts'
import type { Fingerprint } from '../read-sdp.ts'
import {
  announcesAtMost,
  closeNotifyOf,
  contentType,
  isFinished,
  readAlert,
  recordsOf,
  type DtlsRecord,
} from './dtls-record.ts'
import { proveCertificate, proveClient } from './prove-peer.ts'
import { createSrtp, srtpProfiles, type Srtp } from './srtp.ts'

export type SecureChannelOptions = {
  readonly role: 'server' | 'client'
  readonly certificate: RTCCertificate
  /** Of the peer, as signaling told. */
  readonly fingerprints: readonly Fingerprint[]
  readonly ssrc: number
  send(datagram: Buffer): void
  connected(): void
  packet(packet: RtpPacket): void
  ended(cause: 'hung_up' | 'failed', details: string): void
}

export type SecureChannel = {
  /** The client end says hello; a server end waits for it. */
  start(): void
  /** DTLS, SRTP or SRTCP, as it came from an address that proved itself. Anything malformed or not authentic is dropped. */
  receive(datagram: Buffer): void
  /** The SRTP packet; null before the channel is connected and after it ended. */
  protect(packet: RtpPacket): Buffer | null
  /** Tells the peer, once. */
  close(): void
}

/** Of a whole handshake with fragments and retransmissions about a tenth. */
const maxHandshakeRecords = 300
/** Of one message, in bytes; a long chain of certificates has about 6,000. */
const maxMessageBytes = 16_384
/** Each is decrypted to be looked at. */
const maxRepeatedFlights = 20

/** Beyond every flight: werift's retransmission loops stop at their next step, at the latest 5.5 s later. */
const noMoreFlights = 99

export function createSecureChannel(options: SecureChannelOptions): SecureChannel {
  const carrier = carrierOf((datagram) => options.send(datagram))
  const dtls = createDtls(options, carrier)
  const mayPass = createHandshakeGate(dtls)
  let srtp: Srtp | null = null
  let isOver = false

  function stop(): void {
    isOver = true
    srtp = null
    dtls.dtls.flight = noMoreFlights
  }

  function end(cause: 'hung_up' | 'failed', details: string): void {
    if (isOver) return
    stop()
    options.ended(cause, details)
  }

  function handshakeDone(): void {
    if (isOver || srtp) return
    try {
      const certificate = proveCertificate(dtls, options.fingerprints)
      if (options.role === 'server') proveClient(dtls, certificate)
      srtp = createSrtp(dtls, options.ssrc)
    } catch (error) {
      return end('failed', reasonOf(error))
    }
    options.connected()
  }

  function receiveAlert(record: DtlsRecord): void {
    if (srtp && record.epoch === 0) return
    const alert = readAlert(dtls, record)
    if (alert?.description === 0) return end(srtp ? 'hung_up' : 'failed', 'DTLS close_notify')
    if (alert?.fatal) end('failed', `DTLS alert ${alert.description}`)
  }

  function receiveRecord(record: DtlsRecord): void {
    if (record.type === contentType.alert) return receiveAlert(record)
    if (record.type !== contentType.handshake || mayPass(record, srtp !== null)) carrier.onData(record.bytes)
  }

  function receive(datagram: Buffer): void {
    const first = datagram[0] ?? 0
    try {
      if (isOver) return
      if (first >= 20 && first <= 63) return recordsOf(datagram).forEach(receiveRecord)
      const packet = first >= 128 && first <= 191 && srtp?.unprotect(datagram)
      if (packet) options.packet(packet)
    } catch {
      // Malformed or not authentic. Anybody can send that at any rate, so it is neither logged nor answered.
    }
  }

  function close(): void {
    if (isOver) return
    const wasConnected = srtp !== null
    stop()
    if (wasConnected) sayGoodbye(dtls, options.send)
  }

  dtls.onConnect.subscribe(handshakeDone)
  dtls.onError.subscribe((error) => srtp ?? end('failed', reasonOf(error)))
  const start = (): void => {
    if (dtls instanceof DtlsClient) dtls.connect().catch((error: unknown) => end('failed', reasonOf(error)))
  }
  return { start, receive, protect: (packet) => srtp && srtp.protect(packet), close }
}

/**
 * werift keeps every fragment of a message that never completes, and a hello on an established association makes it forget its keys. Once
 * connected only the peer's Finished may come again, because our last flight was lost (RFC 6347 §4.2.4); before that a handshake has an end.
 */
function createHandshakeGate(dtls: DtlsServer | DtlsClient): (record: DtlsRecord, connected: boolean) => boolean {
  let records = 0
  let repeated = 0
  return (record, connected) => {
    const isPlain = record.epoch === 0
    if (connected) return !isPlain && ++repeated <= maxRepeatedFlights && isFinished(dtls, record)
    if (++records > maxHandshakeRecords) return false
    return isPlain ? announcesAtMost(record, maxMessageBytes) : isFinished(dtls, record)
  }
}

function sayGoodbye(dtls: DtlsServer | DtlsClient, send: (datagram: Buffer) => void): void {
  try {
    const farewell = closeNotifyOf(dtls)
    if (farewell) send(farewell)
  } catch {
    // A courtesy: whatever state werift's cipher is in, closing must free everything. The peer then notices the silence.
  }
}

function createDtls({ role, certificate }: SecureChannelOptions, transport: Carrier): DtlsServer | DtlsClient {
  const shared = {
    cert: certificate.certPem,
    key: certificate.privateKey,
    signatureHash: certificate.signatureHash,
    transport,
    srtpProfiles,
    extendedMasterSecret: true,
  }
  return role === 'server' ? new DtlsServer({ ...shared, certificateRequest: true }) : new DtlsClient(shared)
}

type Carrier = ReturnType<typeof carrierOf>

/** What werift's DTLS takes for a socket; it puts its own `onData` in. */
function carrierOf(send: (datagram: Buffer) => void) {
  return {
    type: 'udp',
    address: {} as AddressInfo,
    closed: false,
    onData: (_datagram: Buffer): void => undefined,
    send: async (datagram: Buffer): Promise<void> => send(datagram),
    close: async (): Promise<void> => undefined,
  }
}

/** werift rejects with strings too. */
const reasonOf = (error: unknown): string => `DTLS: ${error instanceof Error ? error.message : String(error)}`
