/**
 * Owns which INVITE of a peer a CANCEL is for. The library knows those that wait for an answer by their Call-ID alone: of two callers who share one (a
 * PBX that counts from the start again, a forking proxy that forgets who asked) it would cancel the newer one, whoever hung up, and let go of both with
 * the first answer. RFC 3261 §9.1, §12.
 */
import { tagIn } from './server/message/address.ts'
import { readCSeq } from './server/message/numbered-fields.ts'
import type { MessageIn, SrfFace } from './stack-types.ts'

type Invite = MessageIn & {
  emit(event: string, message: MessageIn, ...more: unknown[]): unknown
  listenerCount(event: string): number
}

/** `status`: of the last answer that was sent. */
type Pending = { readonly req: Invite; readonly res: { readonly status?: number } }

/** As much of a Map as the library asks for. */
export type PendingInvites = {
  readonly size: number
  has(callId: string): boolean
  set(callId: string, pending: Pending): void
  /** Stands for all of them: what is told to it is told to the one that it is for. */
  get(callId: string): Pick<Pending, 'req'> | undefined
  /** Those that have their final answer or were canceled just now. */
  delete(callId: string): void
}

export function createPendingInvites(): PendingInvites {
  const byCallId = new Map<string, readonly Pending[]>()
  let canceled: Pending | null = null

  const keep = (callId: string, left: readonly Pending[]): void => {
    if (left.length > 0) byCallId.set(callId, left)
    else byCallId.delete(callId)
  }
  const facadeOf = (all: readonly Pending[]): Invite => ({
    get: (name) => all[0]?.req.get(name),
    listenerCount: (event) => Math.max(...all.map(({ req }) => req.listenerCount(event))),
    emit(event, message, ...more) {
      const meant = all.length === 1 ? all[0] : all.find(({ req }) => isOfSame(req, message))
      if (event === 'cancel') canceled = meant ?? null
      return meant?.req.emit(event, message, ...more)
    },
  })
  return {
    get size() {
      return byCallId.size
    },
    has: (callId) => byCallId.has(callId),
    set: (callId, pending) => keep(callId, [...(byCallId.get(callId) ?? []), pending]),
    get(callId) {
      const all = byCallId.get(callId)
      return all && { req: facadeOf(all) }
    },
    delete(callId) {
      const gone = canceled
      canceled = null
      const left = byCallId.get(callId)?.filter((one) => one !== gone && !((one.res.status ?? 0) >= 200))
      keep(callId, left ?? [])
    },
  }
}

/** A CANCEL has From and number of its INVITE (§9.1); an UPDATE has the From only. */
function isOfSame(invite: MessageIn, message: MessageIn): boolean {
  const [one, other] = [invite, message].map((read) => readCSeq(read.get('cseq') ?? ''))
  if (tagIn(invite.get('from') ?? '') !== tagIn(message.get('from') ?? '')) return false
  return other?.method !== 'CANCEL' || one?.number === other.number
}

/** Of a connection that has just been made: nothing has come by it yet. */
export function matchCancels(servers: SrfFace['app']['client']['mapServer']): void {
  for (const server of servers.values()) server.pendingNetworkInvites = createPendingInvites()
}
