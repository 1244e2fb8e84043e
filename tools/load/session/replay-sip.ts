/**
 * Owns a recorded call by telephone that is made again. Its INVITE opens the call; further requests go at their distance from the answer, and not from the
 * beginning, because another service answers sooner or later. ACKs, answers and repetitions are ours.
 */
import { randomBytes } from 'node:crypto'
import { headerOf, valuesOf } from '../../../sip/server/message/header-fields.ts'
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
}

type Recorded = { readonly at: number; readonly request: SipRequest }

/** Rejects when the call is refused. */
export async function replaySip(deps: SipReplayDeps): Promise<ReplayedSip> {
  const { session, exchange, allowed, called, calling } = deps
  const requests = requestsOf(session)
  const invite = requests.find(({ request }) => request.method === 'INVITE')
  if (!invite) throw new Error(`${session.file}: its INVITE cannot be read`)
  const sound = await openSound(exchange.local().address)
  const fresh = randomBytes(8).toString('hex')
  let call: NewCall = {
    target: exchange.target,
    local: exchange.local(),
    rtpPort: sound.port,
    callId: `replay-${fresh}`,
    fromTag: fresh,
    toTag: null,
    contact: null,
    routes: [],
    called,
    calling,
  }
  const { promise: ended, resolve: end } = Promise.withResolvers<string>()
  let isOver = false
  const unhear = exchange.hear(call.callId, (message) => {
    if (message.kind !== 'request' || message.method !== 'BYE') return
    isOver = true
    end('the other side hung up')
  })
  const send = async (request: SipRequest): Promise<SipResponse> => {
    const branch = `z9hG4bK-${randomBytes(8).toString('hex')}`
    return exchange.ask(
      call.callId,
      headerOf(request, 'CSeq') ?? '',
      writeMessage(rewriteRequest(request, call, branch)),
    )
  }
  const acknowledge = (request: SipRequest): void => {
    const number = cseqOf(request)?.number ?? 1
    const ack = ackOf(request, call, number)
    exchange.acknowledged(call.callId, `${number} INVITE`, writeMessage(ack))
  }
  let last = cseqOf(invite.request)?.number ?? 1
  const close = async (): Promise<void> => {
    unhear()
    await sound.close()
  }
  try {
    const answer = await openCall(invite.request, { call, exchange })
    call = {
      ...call,
      toTag: tagOf(answer, 'To'),
      contact: contactOf(answer),
      routes: valuesOf(answer, 'Record-Route').toReversed(),
    }
    acknowledge(invite.request)
    const place = soundPlaceOf(answer, exchange.target.host)
    if (!allowed.allows(place.address)) {
      await send(byeOf(invite.request, last + 1)).catch(() => undefined)
      allowed.check(place.address, 'the sound of the call')
    }
    sound.sendTo(place)
  } catch (error) {
    await close()
    throw error
  }
  const anchor = answerAt(session) ?? invite.at
  let hasHungUp = false
  return {
    anchor,
    line: {
      callId: null,
      audio: { payloadType: session.head.payloadType, clockRateHz: session.head.clockRateHz, codec: 'pcmu' },
      onPacket: sound.onPacket,
      send: sound.send,
      ended,
      async hangUp() {
        if (!isOver && !hasHungUp) await send(byeOf(invite.request, last + 1)).catch(() => undefined)
        hasHungUp = true
        await close()
      },
    },
    async act(over) {
      const began = performance.now()
      for (const { at, request } of requests) {
        if (request === invite.request || request.method === 'ACK' || request.method === 'CANCEL') continue
        await untilOrStopped(began + (at - anchor) - performance.now(), over)
        if (over.aborted) return
        last = Math.max(last, cseqOf(request)?.number ?? 0)
        hasHungUp ||= request.method === 'BYE'
        const answer = await send(request)
        if (request.method === 'INVITE' && answer.status < 300) acknowledge(request)
      }
    },
  }
}

/** The ACK of a refusal has the branch of its INVITE (RFC 3261 §17.1.1.3). */
async function openCall(
  invite: SipRequest,
  { call, exchange }: { readonly call: NewCall; readonly exchange: SipExchange },
): Promise<SipResponse> {
  const branch = `z9hG4bK-${randomBytes(8).toString('hex')}`
  const sent = rewriteRequest(invite, call, branch)
  const answer = await exchange.ask(call.callId, headerOf(invite, 'CSeq') ?? '', writeMessage(sent))
  if (answer.status < 300) return answer
  const refused = {
    ...ackOf(invite, { ...call, toTag: tagOf(answer, 'To') }, cseqOf(invite)?.number ?? 1),
    uri: sent.uri,
  }
  const via = { name: 'Via', value: headerOf(sent, 'Via') ?? '' }
  exchange.send(
    writeMessage({ ...refused, headers: refused.headers.map((field) => (field.name === 'Via' ? via : field)) }),
  )
  throw new Error(`the call was refused: ${answer.status} ${answer.reason}`)
}

function ackOf(invite: SipRequest, call: NewCall, number: number): SipRequest {
  const branch = `z9hG4bK-${randomBytes(8).toString('hex')}`
  const rewritten = rewriteRequest({ ...withoutBody(invite), method: 'ACK' }, call, branch)
  return {
    ...rewritten,
    headers: rewritten.headers.map((field) => (field.name === 'CSeq' ? { ...field, value: `${number} ACK` } : field)),
  }
}

function byeOf(invite: SipRequest, number: number): SipRequest {
  const bare = withoutBody(invite)
  return {
    ...bare,
    method: 'BYE',
    headers: bare.headers.map((field) => (field.name === 'CSeq' ? { ...field, value: `${number} BYE` } : field)),
  }
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

/** Null: it was never answered. */
const answerAt = ({ sip }: Session): number | null =>
  sip.find(
    ({ by, message }) =>
      by === 'service' && /^SIP\/2\.0 2\d\d /.test(message) && /^CSeq:\s*\d+\s+INVITE\s*$/im.test(message),
  )?.at ?? null

const contactOf = (answer: SipResponse): string | null =>
  /<([^>]*)>/.exec(headerOf(answer, 'Contact') ?? '')?.[1] ?? headerOf(answer, 'Contact')
