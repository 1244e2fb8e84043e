/**
 * Owns one INVITE that we send: its provisional answers, its end, and what to do with an answer that nobody waits for any more. A CANCEL
 * and a 200 may cross (RFC 3261 §9.1): such a dialog is hung up at once.
 */
import type { Log } from '../model/log.ts'
import { chooserOf, createChallengeAnswers, numbersOf, type ChallengeAnswers } from './challenge-answers.ts'
import { tagIn } from './server/message/address.ts'
import { reasonsOf } from './server/message/numbered-fields.ts'
import type { FinalAnswer } from './call/outcome-of-answer.ts'
import { sdpIn } from './call/sdp-in.ts'
import type { InviteOptions, MessageIn, RequestOut, ResponseIn, SipDialog, SrfFace } from './stack-types.ts'
import { invitingHeaders, longerSession, refreshedByPeer } from './session-headers.ts'
import { whyUnanswered } from './unanswered.ts'

export type InvitationResult =
  | { readonly kind: 'answered'; readonly dialog: SipDialog; readonly line: string; readonly sdp: string }
  | ({ readonly kind: 'refused' } & FinalAnswer)
  | { readonly kind: 'unreachable'; readonly details: string }

export type InvitationHandlers = {
  /** As it went out; again for each that takes its place. */
  sent?(invite: RequestOut): void
  provisional(status: number, reason: string): void
  /** Once, unless it was abandoned. */
  ended(result: InvitationResult): void
}

export type Invitation = {
  /** The answer to it comes by `ended`: 487, as a rule. Idempotent. */
  cancel(): void
  /** Canceled, and nothing is told any more. */
  abandon(): void
}

type Deps = {
  readonly srf: SrfFace
  readonly onLost: (action: () => void) => () => void
  readonly hangUp: (dialog: SipDialog, reason: string) => void
  /** BYE for a dialog that is known by its id only. */
  readonly orphaned: (dialogId: string) => void
  readonly log: Log
}

export function invite(
  { srf, onLost, hangUp, orphaned, log }: Deps,
  { uri, options, handlers }: { uri: string; options: InviteOptions; handlers: InvitationHandlers },
): Invitation {
  let sent: RequestOut | null = null
  let isCanceled = false
  let isOver = false
  const early = createEarlyDescriptions()
  const answers = createChallengeAnswers(options.auth)
  let lengthenings = 0

  const end = (result: InvitationResult) => {
    forget()
    if (isOver) return
    isOver = true
    handlers.ended(result)
  }
  const forget = onLost(() => end({ kind: 'unreachable', details: 'the connection to the SIP server was lost' }))
  const answered = (dialog: SipDialog) => {
    answers.accepted()
    if (options.auth) dialog.auth = chooserOf(options.auth)
    if (isOver || isCanceled) hangUp(dialog, 'canceled')
    if (isCanceled) return end(terminated)
    const sdp = sdpIn(dialog.res) || early.of(dialog.res)
    end({ kind: 'answered', dialog, line: lineOf(dialog.res), sdp })
  }
  const failed = (asked: InviteOptions, error: unknown) => {
    const result = resultOf(error)
    const again = isOver || !sent ? null : onceMore({ uri, asked, sent, error })
    if (again && isCanceled) return end(terminated)
    if (again) return send(again)
    // The library could not read a 200 that it has acknowledged: the call exists without an owner.
    if (!isAnswer(error) && sent) orphaned(dialogIdOf(sent))
    end(result)
  }
  const onceMore = (told: Failed): InviteOptions | null => {
    const longer = lengthenings < maxLengthenings ? withLongerSession(told) : null
    if (longer) lengthenings += 1
    return longer ?? withProof(answers, told)
  }
  const cancel = () => {
    if (isCanceled || isOver) return
    isCanceled = true
    sendCancel(sent, log)
  }

  const progress = progressOf({
    early,
    begun(request) {
      sent = request
      if (isCanceled) return sendCancel(sent, log)
      if (request && !isOver) handlers.sent?.(request)
    },
    provisional({ status, reason }) {
      if (status > 100) answers.accepted()
      if (!isOver) handlers.provisional(status, reason)
    },
  })
  const send = (asked: InviteOptions) => {
    sent = null
    const { auth: _, ...plain } = { ...asked, headers: { ...asked.headers } }
    const done = (error: unknown, dialog?: SipDialog) => (dialog ? answered(dialog) : failed(asked, error))
    begin(() => srf.createUAC(uri, plain, progress, done), end)
  }

  send({ ...options, headers: { ...invitingHeaders(), ...options.headers } })
  return {
    cancel,
    abandon() {
      cancel()
      forget()
      isOver = true
    },
  }
}

type Heard = {
  readonly early: ReturnType<typeof createEarlyDescriptions>
  readonly begun: (request: RequestOut | null) => void
  readonly provisional: (response: ResponseIn) => void
}

const progressOf = ({ early, begun, provisional }: Heard) => ({
  cbRequest(_error: unknown, request: RequestOut | null = null) {
    // Where the sound of an early dialog goes may change before its 200 (RFC 3311 §5.1).
    request?.on('update', (update) => early.add(update, 'from'))
    begun(request)
  },
  cbProvisional(response: ResponseIn) {
    early.add(response, 'to')
    provisional(response)
  },
})

type Failed = {
  readonly uri: string
  readonly asked: InviteOptions
  readonly sent: RequestOut
  readonly error: unknown
}

/** The INVITE once more with the password that was asked for; null: none was, or it was wrong. */
function withProof(answers: ChallengeAnswers, { uri, asked, sent, error }: Failed): InviteOptions | null {
  const response = (error as { res?: ResponseIn } | null)?.res
  const proved = response && answers.answer({ method: 'INVITE', uri, proxy: asked.proxy, sent, response })
  if (!proved) return null
  const headers = { ...asked.headers, ...refreshedByPeer({ ...asked.headers }), ...proved.headers }
  return { ...asked, headers, ...(proved.proxy && { proxy: proved.proxy }) }
}

/** The embedded server does this by itself before we hear of it, and so often at most. */
const maxLengthenings = 2

/** The INVITE once more with the interval of sessions that the peer wants; null: it wants none that could be had. */
function withLongerSession({ asked, sent, error }: Failed): InviteOptions | null {
  const { status, res } = error as { status?: number; res?: ResponseIn }
  const longer = status === 422 && res ? longerSession(sent, res) : null
  return longer && { ...asked, headers: { ...asked.headers, ...numbersOf({ method: 'INVITE', sent }), ...longer } }
}

const maxBranches = 16

/**
 * A 200 need not repeat what a 183 of its branch has said (RFC 6337 §2.1). Of another branch it is no answer: the phone that rang there
 * is not the one that was picked up.
 */
function createEarlyDescriptions() {
  const byTag = new Map<string, string>()
  const tagOf = (message: MessageIn, side: 'from' | 'to') => tagIn(message.get(side) ?? '') ?? ''
  return {
    /** `side`: where the peer's tag stands. */
    add(message: MessageIn, side: 'from' | 'to') {
      const sdp = sdpIn(message)
      if (sdp && byTag.size < maxBranches) byTag.set(tagOf(message, side), sdp)
    },
    of: (response: MessageIn) => byTag.get(tagOf(response, 'to')) ?? '',
  }
}

/** The callee's own 487 did not come, or a 200 in its place. */
const terminated: InvitationResult = { kind: 'unreachable', details: 'the call was given up' }

function sendCancel(sent: RequestOut | null, log: Log): void {
  try {
    sent?.cancel()
  } catch (error) {
    // The connection is gone, and told so.
    log.debug('CANCEL was not sent', { error })
  }
}

/** The library throws when there is no connection. Who invites has the invitation before it hears of its end. */
function begin(send: () => void, end: (result: InvitationResult) => void): void {
  try {
    send()
  } catch (error) {
    queueMicrotask(() => end(resultOf(error)))
  }
}

/** The dialog constructor of the library keeps the 2xx as `res`. */
const lineOf = (response: Partial<ResponseIn>): string => `${response.status ?? 200} ${response.reason ?? 'OK'}`

const isAnswer = (error: unknown): boolean => typeof (error as { status?: unknown } | null)?.status === 'number'

function resultOf(error: unknown): InvitationResult {
  if (!isAnswer(error)) return { kind: 'unreachable', details: error instanceof Error ? error.message : String(error) }
  const { status, reason, res } = error as { status: number; reason?: string; res?: ResponseIn }
  const why = res ? whyUnanswered(res) : null
  if (why !== null) return { kind: 'unreachable', details: why }
  return { kind: 'refused', status, reason: reason ?? '', cause: causeOf(res) }
}

/** Q.850 cause of a Reason header. RFC 3326. */
function causeOf(response: ResponseIn | undefined): number | null {
  const value = response?.get('reason')
  if (value === undefined) return null
  const reasons = reasonsOf({ headers: [{ name: 'Reason', value }] })
  return reasons.find(({ protocol }) => protocol.toUpperCase() === 'Q.850')?.cause ?? null
}

/** As the server names dialogs; the library relies on it as well (docs/design/sip.md "Control protocol"). */
function dialogIdOf(sent: RequestOut): string {
  const value = sent.get('from') ?? ''
  return `${sent.get('call-id') ?? ''};from-tag=${tagIn(value) ?? ''}`
}
