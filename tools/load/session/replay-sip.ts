/**
 * Owns a recorded call by telephone that is made again. Its INVITE opens the call; further requests go at their distance from the answer, and not from the
 * beginning, because another service answers sooner or later. ACKs, answers and repetitions are ours, and what came before the answer has no place.
 */
import { randomBytes } from 'node:crypto'
import { headerOf, valuesOf, withHeader } from '../../../sip/server/message/header-fields.ts'
import { tagOf } from '../../../sip/server/message/address.ts'
import { cseqOf } from '../../../sip/server/message/numbered-fields.ts'
import type { SipRequest, SipResponse } from '../../../sip/server/message/message.ts'
import { parseMessage } from '../../../sip/server/message/parse-message.ts'
import { writeMessage } from '../../../sip/server/message/write-message.ts'
import type { SipExchange } from '../../callers/sip-exchange.ts'
import { soundPlaceOf } from '../../callers/raw-sip-caller.ts'
import type { AllowedHosts } from '../allowed-hosts.ts'
import type { LoadLine } from '../load-line.ts'
import { untilOrStopped } from '../run-load.ts'
import { openSound } from '../sip-line.ts'
import { describedSound, descriptionOf, type DescribedCodec } from './described-sound.ts'
import { rewriteRequest, type NewCall } from './rewrite-sip.ts'
import type { Session } from './session-format.ts'

export type ReplayedSip = {
  readonly line: LoadLine
  /** What of the recording the answer is, ms. */
  readonly anchor: number
  /** Sends what the caller sent behind the answer, at its distance from it; resolves behind the last, or when `over` is aborted. */
  act(over: AbortSignal): Promise<void>
}

type SipReplayDeps = {
  readonly session: Session
  readonly exchange: SipExchange
  readonly allowed: AllowedHosts
  /** In place of the recorded numbers; null: as they were. */
  readonly called: string | null
  readonly calling: string | null
  /** A further request was not taken, as it was then. */
  refused(words: string): void
}

type Recorded = { readonly at: number; readonly request: SipRequest }

/** Rejects when the call is refused. */
export async function replaySip(deps: SipReplayDeps): Promise<ReplayedSip> {
  const { session, exchange, allowed, refused } = deps
  const requests = requestsOf(session)
  // A service that asked for a password, or another interval, had it sent again: the last one is that of the call.
  const invite = requests.findLast(({ request }) => request.method === 'INVITE' && tagOf(request, 'To') === null)
  if (!invite) throw new Error(`${session.file}: its INVITE cannot be read`)
  const sound = await openSound(exchange.local().address)
  const dialog = createDialog(deps, { rtpPort: sound.port, requests })
  const { promise: ended, resolve: end } = Promise.withResolvers<string>()
  let isOver = false
  const unhear = exchange.hear(dialog.callId, (message) => {
    if (message.kind !== 'request' || message.method !== 'BYE') return
    isOver = true
    end('the other side hung up')
  })
  let last = cseqOf(invite.request)?.number ?? 1
  const hangUp = () => dialog.send(byeOf(invite.request, last + 1)).catch(() => undefined)
  const close = async (): Promise<void> => {
    unhear()
    await sound.close()
  }
  let { payloadType } = session.head
  try {
    const answer = await dialog.open(invite.request)
    const place = soundPlaceOf(answer, exchange.target.host)
    const codec = codecIn(answer, { session, isChosen: descriptionOf(invite.request) !== null })
    if (typeof codec === 'string' || !allowed.allows(place.address)) await hangUp()
    allowed.check(place.address, 'the sound of the call')
    if (typeof codec === 'string') throw new Error(codec)
    payloadType = codec.payloadType
    sound.sendTo(place)
  } catch (error) {
    await close()
    throw error
  }
  const anchor = takenAt(session, (_number, method) => method === 'INVITE') ?? invite.at
  let hasHungUp = false
  return {
    anchor,
    line: {
      callId: null,
      audio: { payloadType, clockRateHz: session.head.clockRateHz, codec: 'pcmu' },
      onPacket: sound.onPacket,
      send: sound.send,
      ended,
      async hangUp() {
        if (!isOver && !hasHungUp) await hangUp()
        hasHungUp = true
        await close()
      },
    },
    async act(over) {
      const began = performance.now()
      for (const { at, request } of requests.filter((one) => isLater(one, anchor))) {
        await untilOrStopped(began + (at - anchor) - performance.now(), over)
        if (over.aborted) return
        last = Math.max(last, cseqOf(request)?.number ?? 0)
        hasHungUp ||= request.method === 'BYE'
        const answer = await dialog.send(request)
        if (answer.status >= 300 && wasTaken(session, request))
          refused(`the ${request.method} within the call was refused: ${answer.status} ${answer.reason}`)
      }
    },
  }
}

type DialogParts = { readonly rtpPort: number; readonly requests: readonly Recorded[] }

/** The call as it is made now. */
function createDialog({ exchange, called, calling }: SipReplayDeps, { rtpPort, requests }: DialogParts) {
  const fresh = randomBytes(8).toString('hex')
  const callId = `replay-${fresh}`
  const local = exchange.local()
  const { target } = exchange
  const ends = { callId, fromTag: fresh, toTag: null, contact: null, routes: [] }
  let call: NewCall = { target, local, rtpPort, ...ends, called, calling }

  function acknowledge(request: SipRequest): void {
    const ack = answeringAck(request, requests)
    const made = ack ? rewriteRequest(ack, call, newBranch()) : ackOf(request, call)
    exchange.acknowledged(callId, headerOf(request, 'CSeq') ?? '', writeMessage(made))
  }

  /** The final answer; that to an INVITE has its ACK. */
  async function send(request: SipRequest): Promise<SipResponse> {
    const sent = rewriteRequest(request, call, newBranch())
    const answer = await exchange.ask(callId, headerOf(request, 'CSeq') ?? '', writeMessage(sent))
    if (request.method !== 'INVITE') return answer
    const answered = { ...call, toTag: tagOf(answer, 'To') }
    if (answer.status >= 300) {
      exchange.send(writeMessage(refusalAck(request, sent, answered)))
      return answer
    }
    // The first one begins the dialog.
    if (call.toTag === null) call = { ...answered, contact: contactOf(answer), routes: routesOf(answer) }
    acknowledge(request)
    return answer
  }
  return {
    callId,
    send,
    /** Rejects when the call is refused. */
    async open(invite: SipRequest): Promise<SipResponse> {
      const answer = await send(invite)
      if (answer.status < 300) return answer
      throw new Error(`the call was refused: ${answer.status} ${answer.reason}`)
    },
  }
}

/** In the order of a caller. RFC 3261 §12.1.2. */
const routesOf = (answer: SipResponse): string[] => valuesOf(answer, 'Record-Route').toReversed()

const newBranch = (): string => `z9hG4bK-${randomBytes(8).toString('hex')}`

/** Behind the answer, and to be sent by us. */
const isLater = ({ at, request }: Recorded, anchor: number): boolean =>
  at >= anchor && tagOf(request, 'To') !== null && request.method !== 'ACK' && request.method !== 'CANCEL'

/** A string says why not. `isChosen`: by the service, and not by the caller in its ACK. */
function codecIn(
  answer: SipResponse,
  { session: { head }, isChosen }: { readonly session: Session; readonly isChosen: boolean },
): DescribedCodec | string {
  const offered = describedSound(answer)?.codecs ?? []
  const found = offered.find(({ codec }) => codec === head.codec)
  if (found && (!isChosen || found === offered[0])) return found
  return `the service chose ${offered[0]?.name ?? 'no sound'}, and ${head.codec} was recorded`
}

/** Of an INVITE without an offer the ACK has the answer. RFC 3261 §13.2.1. */
function answeringAck(invite: SipRequest, requests: readonly Recorded[]): SipRequest | null {
  if (descriptionOf(invite) !== null) return null
  const number = cseqOf(invite)?.number
  const found = requests.find(({ request }) => request.method === 'ACK' && cseqOf(request)?.number === number)
  return found && descriptionOf(found.request) !== null ? found.request : null
}

/** It has the branch of its INVITE, and goes where that went. RFC 3261 §17.1.1.3. */
function refusalAck(invite: SipRequest, sent: SipRequest, call: NewCall): SipRequest {
  const ack = ackOf(invite, call)
  return withHeader({ ...ack, uri: sent.uri }, 'Via', headerOf(sent, 'Via') ?? '')
}

function ackOf(invite: SipRequest, call: NewCall): SipRequest {
  const rewritten = rewriteRequest({ ...withoutBody(invite), method: 'ACK' }, call, newBranch())
  return withHeader(rewritten, 'CSeq', `${cseqOf(invite)?.number ?? 1} ACK`)
}

function byeOf(invite: SipRequest, number: number): SipRequest {
  return withHeader({ ...withoutBody(invite), method: 'BYE' }, 'CSeq', `${number} BYE`)
}

const kept = ['Via', 'Max-Forwards', 'From', 'To', 'Call-ID', 'CSeq', 'Contact', 'User-Agent']
const withoutBody = (message: SipRequest): SipRequest => ({
  ...message,
  headers: message.headers.filter(({ name }) => kept.includes(name)),
  body: new Uint8Array(0),
})

/** Of the caller, each once: the same CSeq again is a repetition. */
function requestsOf({ sip }: Session): Recorded[] {
  const seen = new Set<string>()
  return sip.flatMap(({ at, by, message }) => {
    const read = by === 'caller' ? parseMessage(Buffer.from(message)) : null
    if (read?.kind !== 'message' || read.message.kind !== 'request') return []
    const key = headerOf(read.message, 'CSeq') ?? ''
    if (seen.has(key)) return []
    seen.add(key)
    return [{ at, request: read.message }]
  })
}

/** When the service of then took it; null: it never did. */
function takenAt({ sip }: Session, isAsked: (number: string, method: string) => boolean): number | null {
  const taken = sip.find(({ by, message }) => {
    const [, number = '', method = ''] = /^CSeq\s*:\s*(\d+)\s+(\S+)/im.exec(message) ?? []
    return by === 'service' && /^SIP\/2\.0 2\d\d /.test(message) && isAsked(number, method)
  })
  return taken?.at ?? null
}

const wasTaken = (session: Session, request: SipRequest): boolean => {
  const cseq = cseqOf(request)
  return takenAt(session, (number, method) => Number(number) === cseq?.number && method === cseq.method) !== null
}

const contactOf = (answer: SipResponse): string | null =>
  /<([^>]*)>/.exec(headerOf(answer, 'Contact') ?? '')?.[1] ?? headerOf(answer, 'Contact')
