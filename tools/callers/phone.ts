/**
 * Owns a telephone made of software: it calls and is called, with sound, over a SIP server of its own. What a carrier or a desk phone is to
 * the service, for its self-test and its load tests. It has no keys and no business rules: who uses it sends and hears RTP packets.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'
import { openPhoneLine, type OpenPhoneLine } from '../../media/plane/phone-line.ts'
import { createPhoneMedia, type MediaWishes, type PhoneMedia } from '../../sip/call/phone-media.ts'
import type { MediaPorts } from '../../media/rtp/media-ports.ts'
import type { Protocol } from '../../sip/server/transport/transport.ts'
import { createSipServer } from '../../sip/server/sip-server.ts'
import { connectStack, type SipStack } from '../../sip/stack.ts'
import type { Reply, RequestIn, SipDialog } from '../../sip/stack-types.ts'

export type PhoneDeps = {
  readonly address: string
  /** 0 takes a free one. */
  readonly port: number
  readonly protocol: Exclude<Protocol, 'tls'>
  readonly media: MediaPorts
  readonly ticker: Ticker
  readonly clock: Clock
  readonly log: Log
  readonly wishes: MediaWishes
  /** Without it calls to this phone are refused as busy. */
  readonly onCall?: (call: CallToPhone) => void
}

/** A call that has been answered. */
export type PhoneLine = {
  readonly audio: NegotiatedAudio
  /** The one listener; a later one takes its place. */
  onPacket(listener: (packet: RtpPacket) => void): void
  /** Dropped after the end. */
  send(packet: RtpPacket): void
  /** Who ended it, in words. */
  readonly ended: Promise<string>
  /** Idempotent. */
  hangUp(): Promise<void>
}

export type CallToPhone = {
  readonly request: Pick<RequestIn, 'get' | 'uri'>
  ring(): void
  /** Rejects when the caller went before. */
  answer(): Promise<PhoneLine>
  refuse(status: number): void
}

export type Phone = {
  readonly port: number
  /** Rejects with the SIP line of the refusal. `fromNumber` stands in From. */
  call(uri: string, fromNumber: string): Promise<PhoneLine>
  /** Hangs up what is left. Idempotent. */
  close(): Promise<void>
}

const connectWithin = 10_000

export async function openPhone(deps: PhoneDeps): Promise<Phone> {
  const { address, port, protocol, clock, log } = deps
  await using opening = new AsyncDisposableStack()
  const server = await createSipServer({
    listen: [{ protocol, address, port }],
    secret: randomBytes(32).toString('base64url'),
    clock,
    log,
  })
  opening.defer(() => server.close())
  const lines = new Set<PhoneLine>()
  const invite = (request: RequestIn, reply: Reply): void => {
    if (deps.onCall) deps.onCall(callToPhone(deps, stack, lines, { request, reply }))
    else reply.send(486, undefined, {})
  }
  const stack = await connectStack({ control: server.control, routes: { invite }, clock, log, connectWithin })
  opening.defer(() => stack.close())
  opening.defer(async () => void (await Promise.all([...lines].map((line) => line.hangUp()))))
  const parts = opening.move()
  let closing: Promise<void> | null = null
  return {
    port: server.listening[0]?.local.port ?? port,
    call: (uri, fromNumber) => placeCall(deps, stack, lines, { uri, fromNumber }),
    close: () => (closing ??= parts.disposeAsync()),
  }
}

async function placeCall(
  deps: PhoneDeps,
  stack: SipStack,
  lines: Set<PhoneLine>,
  { uri, fromNumber }: { readonly uri: string; readonly fromNumber: string },
): Promise<PhoneLine> {
  const media = await mediaOf(deps)
  const { promise, resolve, reject } = Promise.withResolvers<PhoneLine>()
  const options = { localSdp: media.offer(), headers: { From: `<sip:${fromNumber}@localhost>` } }
  stack.invite(uri, options, {
    provisional: () => undefined,
    ended(result) {
      if (result.kind === 'unreachable') return reject(new Error(result.details))
      if (result.kind === 'refused') return reject(new Error(`${result.status} ${result.reason}`))
      const read = media.readAnswer(result.sdp)
      if ('refused' in read) {
        result.dialog.destroy({}, () => undefined)
        return reject(new Error(read.refused))
      }
      resolve(lineOf(media, result.dialog, read.session.audio, lines))
      media.use(read.session)
    },
  })
  return promise.catch(async (error: unknown) => {
    await media.line.close()
    throw error
  })
}

function callToPhone(
  deps: PhoneDeps,
  stack: SipStack,
  lines: Set<PhoneLine>,
  { request, reply }: { readonly request: RequestIn; readonly reply: Reply },
): CallToPhone {
  let isCanceled = false
  request.on('cancel', () => (isCanceled = true))
  return {
    request,
    ring: () => reply.send(180, undefined, {}),
    refuse: (status) => reply.send(status, undefined, {}),
    async answer() {
      const media = await mediaOf(deps)
      const agreed = media.answer(request.body ?? '')
      const { promise, resolve, reject } = Promise.withResolvers<PhoneLine>()
      if (isCanceled) reject(new Error('the caller went'))
      else if ('refused' in agreed) reject(new Error(agreed.refused))
      else
        stack.accept(request, reply, agreed.sdp, (answer) => {
          if ('details' in answer) return reject(new Error(answer.details))
          resolve(lineOf(media, answer.dialog, agreed.session.audio, lines))
          media.use(agreed.session)
        })
      return promise.catch(async (error: unknown) => {
        await media.line.close()
        throw error
      })
    },
  }
}

type CallerMedia = PhoneMedia<OpenPhoneLine>

const mediaOf = async ({ media, ticker, log, wishes }: PhoneDeps): Promise<CallerMedia> =>
  createPhoneMedia(await openPhoneLine({ ports: media, ticker, log }), wishes)

function lineOf(media: CallerMedia, dialog: SipDialog, audio: NegotiatedAudio, lines: Set<PhoneLine>): PhoneLine {
  const { promise: ended, resolve } = Promise.withResolvers<string>()
  let hear: (packet: RtpPacket) => void = () => undefined
  let isOver = false
  const end = async (reason: string): Promise<void> => {
    isOver = true
    lines.delete(line)
    await media.line.close()
    resolve(reason)
  }
  const line: PhoneLine = {
    audio,
    onPacket: (listener) => void (hear = listener),
    send: (packet) => media.line.transport.send(packet),
    ended,
    async hangUp() {
      if (isOver) return void (await ended)
      await new Promise<void>((done) => dialog.destroy({}, () => done()))
      await end('hung up here')
    },
  }
  lines.add(line)
  media.line.tell({
    negotiated: () => undefined,
    packet: (packet) => hear(packet),
    alive: () => undefined,
    held: () => undefined,
  })
  dialog.on('destroy', (_bye, reason) => void end(reason ?? 'the other side hung up'))
  dialog.on('modify', (request, reply) => {
    const agreed = media.answer(request.body ?? '')
    if ('refused' in agreed) return reply.send(488, undefined, {})
    media.use(agreed.session)
    reply.send(200, undefined, { body: agreed.sdp, headers: { 'Content-Type': 'application/sdp' } })
  })
  return line
}
