/** Owns ICE connectivity checks on the wire: reading, answering and making STUN binding requests. RFC 8489, RFC 8445 §7. */
import { classes, Message, methods, parseMessage } from 'werift'
import type { CandidateAddress } from '../read-sdp.ts'

export type Check = {
  /** Of this one request; the same when it is sent again. */
  readonly transactionId: Buffer
  readonly answer: Buffer
}

/** The first two bits and the magic cookie. RFC 7983 §7. */
export const isStun = (datagram: Buffer): boolean =>
  datagram.length >= 20 && (datagram[0] ?? 255) < 4 && datagram.readUInt32BE(4) === 0x2112a442

/** A check with all its attributes has about 100 bytes; longer ones are made to cost, and parsing them would. */
const maxCheckBytes = 600
const bindingRequest = 0x0001
const usernameType = 0x0006

/**
 * The receiver's own part of USERNAME, in clear, to find out whose check this is; null for anything but a binding request. Anybody can send
 * these at any rate, so nothing is parsed but the heads of attributes (RFC 8489 §14) until the user is known.
 */
export function checkedUserOf(datagram: Buffer): string | null {
  if (datagram.length > maxCheckBytes || datagram.readUInt16BE(0) !== bindingRequest) return null
  for (let at = 20; at + 4 <= datagram.length;) {
    const end = at + 4 + datagram.readUInt16BE(at + 2)
    if (end > datagram.length) return null
    if (datagram.readUInt16BE(at) === usernameType) return datagram.toString('utf8', at + 4, end).split(':')[0] ?? null
    // Attributes begin at multiples of four.
    at = end + ((4 - (end % 4)) % 4)
  }
  return null
}

/** Null when the request was not signed with `password`: such a request gets no answer, so nothing can be bounced off this port. */
export function readCheck(datagram: Buffer, password: string, from: CandidateAddress): Check | null {
  const key = Buffer.from(password)
  const request = parseMessage(datagram, key)
  if (!request) return null
  const answer = new Message(methods.BINDING, classes.RESPONSE, request.transactionId).setAttribute(
    'XOR-MAPPED-ADDRESS',
    [from.address, from.port],
  )
  answer.addMessageIntegrity(key).addFingerprint()
  const { transactionId } = request
  return { transactionId, answer: answer.bytes }
}

export type CheckRequest = { readonly bytes: Buffer; isAnsweredBy(datagram: Buffer): boolean }

/** The check of a controlling agent that nominates at once, or one for consent only. RFC 8445 §7.2.2, RFC 7675 §5.1. */
export function makeCheck(
  remote: { usernameFragment: string; password: string },
  localUser: string,
  { nominates = true } = {},
): CheckRequest {
  const key = Buffer.from(remote.password)
  const request = new Message(methods.BINDING, classes.REQUEST)
  request.setAttribute('USERNAME', `${remote.usernameFragment}:${localUser}`)
  request.setAttribute('PRIORITY', 1845501695)
  request.setAttribute('ICE-CONTROLLING', 1n)
  if (nominates) request.setAttribute('USE-CANDIDATE', null)
  request.addMessageIntegrity(key).addFingerprint()
  const isAnsweredBy = (datagram: Buffer): boolean => {
    const response = parseMessage(datagram, key)
    return response?.messageClass === classes.RESPONSE && response.transactionId.equals(request.transactionId)
  }
  return { bytes: request.bytes, isAnsweredBy }
}
