/**
 * Owns the SIP messages of calls while they run: the server tells of each that it sends or takes, the edge says which of its calls a Call-ID is of, and
 * takes them when that is over. Bounded: of who is no call of ours little is kept, and not for long.
 */
import type { CallId } from '../model/ids.ts'
import type { MessageLadder, LadderEntry } from '../model/message-ladder.ts'
import { maskedMessage } from './masked-message.ts'
import { headerOf } from './server/message/header-fields.ts'
import type { SipMessage } from './server/message/message.ts'
import type { Endpoint, Flow } from './server/transport/transport.ts'

export type MessageTrail = {
  /** Never throws. */
  note(direction: 'in' | 'out', message: SipMessage, flow: Flow): void
  /** From here on messages of this Call-ID, and those there were, are the call's. */
  keep(callId: CallId, sipCallId: string): void
  /** What there is of the call, which is forgotten. */
  take(callId: CallId): MessageLadder
}

type Noted = {
  readonly at: number
  readonly direction: 'in' | 'out'
  readonly message: SipMessage
  readonly flow: Flow
}
type Kept = { readonly entries: LadderEntry[]; leftOut: number; readonly sipCallIds: string[] }

const nothing = (): Kept => ({ entries: [], leftOut: 0, sipCallIds: [] })

/** Of one call. */
const maxEntries = 100
/** Call-IDs of nobody's, and messages of each: an INVITE waits a moment for its call. */
const maxStrangers = 500
const maxOfStranger = 12
/** Of all of them together: one message may have 64 KiB. */
const maxStrangerBytes = 8 * 1024 * 1024
const maxCalls = 10_000

export function createMessageTrail({ now }: { now(): number }): MessageTrail {
  const strangers = createStrangers()
  const calls = new Map<CallId, Kept>()
  const owners = new Map<string, Kept>()

  const add = (kept: Kept, noted: Noted): void => {
    if (kept.entries.length < maxEntries) kept.entries.push(entryOf(noted))
    else kept.leftOut++
  }
  return {
    note(direction, message, flow) {
      const sipCallId = headerOf(message, 'Call-ID')
      if (sipCallId === null || sipCallId.length > 256 || isNoCalls(message)) return
      const noted = { at: now(), direction, message, flow }
      const owner = owners.get(sipCallId)
      if (owner) add(owner, noted)
      else strangers.add(sipCallId, noted)
    },
    keep(callId, sipCallId) {
      const kept = calls.get(callId) ?? nothing()
      if (!calls.has(callId) && calls.size >= maxCalls) return
      calls.set(callId, kept)
      owners.set(sipCallId, kept)
      kept.sipCallIds.push(sipCallId)
      for (const noted of strangers.take(sipCallId)) add(kept, noted)
    },
    take(callId) {
      const { entries, leftOut, sipCallIds } = calls.get(callId) ?? nothing()
      calls.delete(callId)
      for (const sipCallId of sipCallIds) owners.delete(sipCallId)
      return { entries, leftOut }
    },
  }
}

/** Messages by Call-IDs of nobody's; the oldest make room. */
function createStrangers() {
  const byCallId = new Map<string, Noted[]>()
  let bytes = 0
  const take = (sipCallId: string): readonly Noted[] => {
    const messages = byCallId.get(sipCallId) ?? []
    byCallId.delete(sipCallId)
    for (const { message } of messages) bytes -= sizeOf(message)
    return messages
  }
  const forgetOldest = (): void => {
    const [oldest] = byCallId.keys()
    if (oldest !== undefined) take(oldest)
  }
  return {
    take,
    add(sipCallId: string, noted: Noted): void {
      const known = byCallId.get(sipCallId)
      if (!known && byCallId.size >= maxStrangers) forgetOldest()
      const messages = known ?? []
      byCallId.set(sipCallId, messages)
      if (messages.length === maxOfStranger) return
      messages.push(noted)
      bytes += sizeOf(noted.message)
      while (bytes > maxStrangerBytes) forgetOldest()
    },
  }
}

const sizeOf = ({ headers, body }: SipMessage): number =>
  headers.reduce((bytes, { name, value }) => bytes + name.length + value.length, body.length)

/** Registrations and what looks after trunks. */
function isNoCalls(message: SipMessage): boolean {
  const method = message.kind === 'request' ? message.method : (headerOf(message, 'CSeq') ?? '').split(' ').at(-1)
  return method === 'REGISTER' || method === 'OPTIONS' || method === 'SUBSCRIBE'
}

const entryOf = ({ at, direction, message, flow }: Noted): LadderEntry => ({
  at,
  direction,
  protocol: flow.protocol,
  local: placeOf(flow.local),
  remote: placeOf(flow.remote),
  text: maskedMessage(message),
})

const placeOf = ({ address, port }: Endpoint): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
