/**
 * Owns key presses in INFO requests, for peers without telephone events: `application/dtmf-relay`, which is in no RFC and in every PBX,
 * and the shorter `application/dtmf`.
 */
import type { MessageIn, ResponseIn } from '../stack-types.ts'

const pressMs = 160
/** A key takes some 30 characters; a body of thousands of line ends is hostile. */
const maxBodyLength = 500
const maxWaiting = 64

/** The key an INFO speaks of; null when it speaks of something else. */
export function keyIn(info: MessageIn): string | null {
  const type = (info.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase()
  const body = (info.body ?? '').slice(0, maxBodyLength)
  if (type === 'application/dtmf-relay') return keyOf(/^\s*signal\s*=\s*(\S+)/im.exec(body)?.[1])
  return type === 'application/dtmf' ? keyOf(/^\s*(?:signal\s*=\s*)?(\S+)/i.exec(body)?.[1]) : null
}

/** Some write the event codes of RFC 4733 §3.2: 10 is `*`, 11 is `#`, 12 to 15 are A to D. */
function keyOf(text: string | undefined): string | null {
  if (text === undefined) return null
  if (/^1[0-5]$/.test(text)) return '*#ABCD'.charAt(Number(text) - 10)
  return /^[0-9A-D*#]$/i.test(text) ? text.toUpperCase() : null
}

type SendInfo = (
  options: { method: string; headers: Record<string, string>; body: string },
  done: (error: unknown, response?: ResponseIn) => void,
) => void

/** One after the other, each when the one before has been answered. False: too many wait already. */
export function createKeysByInfo(send: SendInfo): (digits: string) => boolean {
  const waiting: string[] = []
  let isSending = false
  const next = () => {
    const digit = waiting.shift()
    isSending = digit !== undefined
    if (digit === undefined) return
    const body = `Signal=${digit}\r\nDuration=${pressMs}\r\n`
    send({ method: 'INFO', headers: { 'Content-Type': 'application/dtmf-relay' }, body }, next)
  }
  return (digits) => {
    if (waiting.length + digits.length > maxWaiting) return false
    waiting.push(...digits.split(''))
    if (!isSending) next()
    return true
  }
}

/** An Allow header that leaves INFO out means it. RFC 3261 §20.5. */
export const takesInfo = (message: MessageIn): boolean => {
  const allowed = message.get('allow')
  return allowed === undefined || /\binfo\b/i.test(allowed)
}
