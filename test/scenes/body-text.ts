/** Owns the body of a SIP message as text. */
import type { SipMessage } from '../../sip/server/message/message.ts'

/** Of UTF-8, as SDP is. */
export const bodyText = (message: SipMessage): string => Buffer.from(message.body).toString('utf8')
