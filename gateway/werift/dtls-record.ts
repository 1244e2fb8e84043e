/** Owns DTLS 1.2 records around werift's handshake: cutting datagrams, and alerts, which werift neither sends nor authenticates. RFC 6347 §4.1. */
import type { DtlsSocket } from 'werift'

export const contentType = { alert: 21, handshake: 22 } as const
const clientHello = 1
const finished = 20
const version = 0xfefd
const headerBytes = 13
const messageHeaderBytes = 12
/** Beyond every MTU. A fragment that werift keeps would keep the memory of its whole datagram. */
const maxDatagramBytes = 4096

export type DtlsRecord = {
  readonly type: number
  readonly epoch: number
  readonly sequenceNumber: number
  readonly fragment: Buffer
  /** Header and fragment. */
  readonly bytes: Buffer
}

/** The whole records of a datagram; a cut-off rest is ignored, and so is a datagram larger than any network carries. */
export function recordsOf(datagram: Buffer): DtlsRecord[] {
  if (datagram.length > maxDatagramBytes) return []
  const records: DtlsRecord[] = []
  for (let at = 0; at + headerBytes <= datagram.length;) {
    const end = at + headerBytes + datagram.readUInt16BE(at + 11)
    if (end > datagram.length) break
    records.push({
      type: datagram.readUInt8(at),
      epoch: datagram.readUInt16BE(at + 3),
      sequenceNumber: datagram.readUIntBE(at + 5, 6),
      fragment: datagram.subarray(at + headerBytes, end),
      bytes: datagram.subarray(at, end),
    })
    at = end
  }
  return records
}

/** The very first message of a client, without a cookie: message 0 of the handshake. RFC 6347 §4.2.1, §4.2.2. */
export function beginsHandshake(datagram: Buffer): boolean {
  const [first] = recordsOf(datagram)
  if (first?.type !== contentType.handshake || first.epoch !== 0) return false
  const { fragment } = first
  return fragment.length >= messageHeaderBytes && fragment[0] === clientHello && fragment.readUInt16BE(4) === 0
}

/** One encrypted Finished and nothing behind it; false for what is not authentic. RFC 6347 §4.2.2: 12 bytes of head, 12 of verify data. */
export function isFinished(dtls: DtlsSocket, record: DtlsRecord): boolean {
  const plain = decrypted(dtls, record)
  // The lengths are looked at too: an empty fragment would leave room for a hello behind it.
  return plain?.length === 24 && plain[0] === finished && plain.readUIntBE(1, 3) === 12 && plain.readUIntBE(9, 3) === 12
}

/** Whether all messages of a handshake record in clear announce at most `maxBytes`: werift allocates what a fragment announces, up to 16 MB. */
export function announcesAtMost({ fragment }: DtlsRecord, maxBytes: number): boolean {
  for (let at = 0; at < fragment.length; at += messageHeaderBytes + fragment.readUIntBE(at + 9, 3)) {
    const isCut = at + messageHeaderBytes > fragment.length
    if (isCut || fragment.readUIntBE(at + 1, 3) > maxBytes) return false
  }
  return true
}

export type Alert = { readonly fatal: boolean; readonly description: number }

/** Null for an alert that is encrypted and not authentic. Before the handshake is over alerts are in clear. */
export function readAlert(dtls: DtlsSocket, record: DtlsRecord): Alert | null {
  const plain = record.epoch === 0 ? record.fragment : decrypted(dtls, record)
  const [level, description] = plain ?? []
  return level === undefined || description === undefined ? null : { fatal: level === 2, description }
}

/** A warning close_notify under the keys of the handshake: the peer learns at once that nothing follows. RFC 5246 §7.2.1. Null without keys. */
export function closeNotifyOf(dtls: DtlsSocket): Buffer | null {
  if (!dtls.cipher.cipher) return null
  const sequenceNumber = ++dtls.dtls.recordSequenceNumber
  const header = { type: contentType.alert, version, epoch: 1, sequenceNumber }
  const fragment = dtls.cipher.cipher.encrypt(dtls.sessionType, Buffer.from([1, 0]), header)
  const head = Buffer.alloc(headerBytes)
  head.writeUInt8(header.type, 0)
  head.writeUInt16BE(version, 1)
  head.writeUInt16BE(header.epoch, 3)
  head.writeUIntBE(sequenceNumber, 5, 6)
  head.writeUInt16BE(fragment.length, 11)
  return Buffer.concat([head, fragment])
}

function decrypted(dtls: DtlsSocket, record: DtlsRecord): Buffer | null {
  const { type, epoch, sequenceNumber, fragment } = record
  try {
    return dtls.cipher.cipher.decrypt(dtls.sessionType, fragment, { type, version, epoch, sequenceNumber })
  } catch {
    // Not encrypted with our keys: a datagram of another sender.
    return null
  }
}
