/**
 * Owns one DTLS association over any datagram path: handshake by werift, proof of the peer, keys for its media, close_notify.
 * RFC 5763, RFC 5764. States: handshaking → connected → ended; every state can end, and `ended` comes at most once.
 */
import { DtlsClient, DtlsServer, type RTCCertificate } from 'werift'
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
import { srtpKeysOf, srtpProfiles, type SrtpKeys } from './dtls-keys.ts'
import { proveCertificate, proveClient } from './prove-peer.ts'

export type SecureChannelOptions = {
  readonly role: 'server' | 'client'
  readonly certificate: RTCCertificate
  /** Of the peer, as signaling told. */
  readonly fingerprints: readonly Fingerprint[]
  send(datagram: Buffer): void
  connected(srtp: SrtpKeys): void
  ended(cause: 'hung_up' | 'failed', details: string): void
}

export type SecureChannel = {
  /** The client end says hello; a server end waits for it. */
  start(): void
  /** DTLS, as it came from an address that proved itself. Anything malformed or not authentic is dropped. */
  receive(datagram: Buffer): void
  /** Tells the peer, once. */
  close(): void
}

/** Of a whole handshake with fragments and retransmissions about a tenth. */
const maxHandshakeRecords = 300
/** Of one message, in bytes; a long chain of certificates has about 6,000. */
const maxMessageBytes = 16_384
/** Each is decrypted to be looked at. */
const maxRepeatedFlights = 20

/** Beyond every flight. */
const noMoreFlights = 99

export function createSecureChannel(options: SecureChannelOptions): SecureChannel {
  const carrier = carrierOf((datagram) => options.send(datagram))
  const dtls = createDtls(options, carrier)
  const mayPass = createHandshakeGate(dtls)
  let isConnected = false
  let isOver = false

  function stop(): void {
    isOver = true
    stopFlights(dtls)
  }

  function end(cause: 'hung_up' | 'failed', details: string): void {
    if (isOver) return
    stop()
    options.ended(cause, details)
  }

  function handshakeDone(): void {
    const srtp = isOver || isConnected ? null : keysOfProvenPeer()
    if (srtp === null) return
    isConnected = true
    options.connected(srtp)
  }

  function keysOfProvenPeer(): SrtpKeys | null {
    try {
      const certificate = proveCertificate(dtls, options.fingerprints)
      if (options.role === 'server') proveClient(dtls, certificate)
      return srtpKeysOf(dtls)
    } catch (error) {
      end('failed', reasonOf(error))
      return null
    }
  }

  function receiveAlert(record: DtlsRecord): void {
    if (isConnected && record.epoch === 0) return
    const alert = readAlert(dtls, record)
    if (alert?.description === 0) return end(isConnected ? 'hung_up' : 'failed', 'DTLS close_notify')
    if (alert?.fatal) end('failed', `DTLS alert ${alert.description}`)
  }

  function receiveRecord(record: DtlsRecord): void {
    if (record.type === contentType.alert) return receiveAlert(record)
    if (record.type !== contentType.handshake || mayPass(record, isConnected)) carrier.onData(record.bytes)
  }

  function receive(datagram: Buffer): void {
    try {
      if (!isOver) recordsOf(datagram).forEach(receiveRecord)
    } catch {
      // Malformed or not authentic. Anybody can send that at any rate, so it is neither logged nor answered.
    }
  }

  function close(): void {
    if (isOver) return
    stop()
    if (isConnected) sayGoodbye(dtls, options.send)
  }

  dtls.onConnect.subscribe(handshakeDone)
  dtls.onError.subscribe((error) => isConnected || end('failed', reasonOf(error)))
  const start = (): void => {
    if (dtls instanceof DtlsClient) dtls.connect().catch((error: unknown) => end('failed', reasonOf(error)))
  }
  return { start, receive, close }
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
    // Sent where werift's cipher allows it; closing must free everything in any case. Without it the peer notices the silence.
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

/** werift's retransmission loops stop at their next step, at the latest 5.5 s later; by themselves after 33 s. */
export function stopFlights({ dtls }: DtlsServer | DtlsClient): void {
  dtls.flight = noMoreFlights
}

type Carrier = ReturnType<typeof carrierOf>

/** What werift's DTLS takes for a socket; it puts its own `onData` in. */
export function carrierOf(send: (datagram: Buffer) => void) {
  return {
    type: 'udp',
    address: { address: '', family: '', port: 0 },
    closed: false,
    onData: (_datagram: Buffer): void => undefined,
    send: async (datagram: Buffer): Promise<void> => send(datagram),
    close: async (): Promise<void> => undefined,
  }
}

/** werift rejects with strings too. */
const reasonOf = (error: unknown): string => `DTLS: ${error instanceof Error ? error.message : String(error)}`
