/**
 * Owns the model's replies: one at a time, asked for in turn, never into the caller's words, and asked for again when they did not come. Counts
 * frames of the caller's line.
 */
import { frameMs } from '../../../model/frame.ts'
import type { WireEvent } from '../hosted/wire.ts'
import { codeOf, isFatal, isPassing, isRateLimit } from './error-codes.ts'
import { objectOf, textOf, type Message } from './fields.ts'
import { createReplyQueue, type Request, type Wish } from './reply-queue.ts'

export type Replies = {
  ask(wish: Wish): void
  /** A plain reply, when no tool is at work any more. */
  askAfterTools(): void
  created(message: Message): void
  /** Sound of it has gone to the caller. */
  sounded(): void
  /** It has called a tool. */
  called(): void
  done(message: Message): void
  /** The provider breaks its reply off by itself. */
  callerSpeaks(): void
  callerStopped(): void
  /** The caller cut it off. */
  cancel(): void
  /** An `error`; false when it is to be told. */
  refused(error: Message): boolean
  /** 20 ms have passed. */
  frame(): void
  /** Asks for what waits, when it can. */
  pump(): void
  /** The reply that is under way. */
  activeId(): string | null
}

type Deps = {
  toolsAtWork(): boolean
  send(message: object): void
  emit(event: WireEvent): void
  onBegun(responseId: string): void
  /** What comes of it is not to be heard. */
  onCut(responseId: string): void
  /** The items of a reply are over before it is. */
  onDone(): void
}

type Active = {
  readonly id: string
  /** Null: nobody asked for it, the provider answers the caller. */
  request: Request | null
  /** It did not say whose it is: the request of this event, if that is not refused yet. */
  readonly assumedOf: string | null
  isCut: boolean
  hasSound: boolean
  hasCalled: boolean
  frames: number
}

/** One that was asked for and does not begin is asked for again. */
const maxUnanswered = 10_000 / frameMs
/** One whose end nobody told is over. */
const maxReply = 300_000 / frameMs
/** Speech whose end nobody told is over. */
const maxSpeech = 60_000 / frameMs
/** A provider that is busy with a reply of its own is asked again when that is done, or after so long. */
const busyFrames = 500 / frameMs
/** A caller who has spoken is answered by the provider itself; when it does not begin within this, it is asked. */
const answersWithin = 500 / frameMs

export function createReplies(deps: Deps): Replies {
  const queue = createReplyQueue(deps.toolsAtWork)
  let active: Active | null = null
  let asked: { readonly eventId: string; readonly request: Request; frames: number } | null = null
  let count = 0
  /** Frames until it is asked again. */
  let rest = 0
  /** Frames that the caller speaks on at most; 0: they are silent. */
  let speaking = 0
  /** The provider tells whose a reply is. */
  let tellsWhose = false

  const pump = (): void => {
    if (active !== null || asked !== null || rest > 0 || speaking > 0) return
    const request = queue.next()
    if (request === null) return
    const event_id = `ask_${++count}`
    asked = { eventId: event_id, request, frames: 0 }
    const instructions = request.instructions && { instructions: request.instructions() }
    deps.send({ type: 'response.create', event_id, response: { ...instructions, metadata: { reply: request.id } } })
  }
  /** The provider answers: what was to be said before the caller spoke is only asked for when it does not. */
  const callerStopped = (): void => {
    if (speaking === 0) return
    speaking = 0
    queue.overtake()
    rest = Math.max(rest, answersWithin)
  }
  /** Replies to the caller's speech come unasked and may be quicker than ours: ours carry the name of their request. */
  const requestOf = ({ metadata }: Message): Pick<Active, 'request' | 'assumedOf'> => {
    const name = textOf(objectOf(metadata).reply)
    if (metadata !== undefined) tellsWhose = true
    if (name !== '' && name !== asked?.request.id) return { request: queue.take(name), assumedOf: null }
    if (asked === null || (name === '' && tellsWhose)) return { request: null, assumedOf: null }
    const { request, eventId } = asked
    asked = null
    return { request, assumedOf: name === '' ? eventId : null }
  }
  const cancel = (): void => {
    if (active === null || active.isCut) return
    active.isCut = true
    deps.send({ type: 'response.cancel', response_id: active.id })
  }
  /** The end of a reply may lead to the next request: what is owed goes before that. */
  const over = ({ request, hasSound }: Pick<Active, 'request' | 'hasSound'>): void => {
    if (request && !hasSound) queue.unsaid(request)
    deps.onDone()
    deps.emit({ type: 'reply_done' })
  }
  const end = (): void => {
    const ended = active
    if (ended === null) return
    active = null
    rest = 0
    over(ended)
  }
  const giveUp = (code: string): void =>
    deps.emit({ type: 'failed', details: `the model failed (${code})`, isRetryable: !isFatal(code) })
  const failed = ({ request, hasSound }: Active, code: string): void => {
    const after = isFatal(code) ? null : queue.again(request, code)
    active = null
    rest = after ?? 0
    over({ request: null, hasSound })
    if (after === null) giveUp(code)
  }
  /** It has not even begun. */
  const again = (request: Request, code: string): void => {
    const after = isFatal(code) ? null : queue.again(request, code)
    if (after === null) giveUp(code)
    else rest = after
  }
  return {
    ask(wish) {
      queue.add(wish)
      pump()
    },
    askAfterTools() {
      queue.addAfterTools()
      pump()
    },
    created({ response: given }) {
      const response = objectOf(given)
      const { request, assumedOf } = requestOf(response)
      const id = textOf(response.id)
      // The end of the one before was not told.
      const before = active
      active = { id, request, assumedOf, isCut: false, hasSound: false, hasCalled: false, frames: 0 }
      if (before) over(before)
      if (request === null) queue.dropOvertaken()
      deps.onBegun(id)
      deps.emit({ type: 'reply_started', says: request?.isOwed === true })
      if (request === null || speaking === 0) return
      // The caller began to speak while it was asked for.
      cancel()
      deps.onCut(id)
    },
    sounded() {
      if (active) active.hasSound = true
    },
    called() {
      if (active) active.hasCalled = true
    },
    done({ response: given }) {
      const response = objectOf(given)
      if (active === null || active.id !== textOf(response.id)) return
      const { error } = objectOf(response.status_details)
      if (response.status === 'failed') failed(active, codeOf(objectOf(error)))
      else {
        if (leavesSilence(active, response)) queue.emptied(active.request)
        end()
      }
      pump()
    },
    callerSpeaks() {
      speaking = maxSpeech
      if (active) active.isCut = true
    },
    callerStopped,
    cancel,
    refused(error) {
      const code = textOf(error.code)
      if (code === 'response_cancel_not_active') return true
      const eventId = textOf(error.event_id)
      const isBusy = code === 'conversation_already_has_active_response'
      const isUnnamed = eventId === '' && (isBusy || isRateLimit(code))
      const isOf = (ours: string): boolean => eventId === ours || isUnnamed
      if (isBusy && active?.request && active.assumedOf !== null && isOf(active.assumedOf)) {
        queue.putBack(active.request)
        active.request = null
        return true
      }
      if (asked === null || !isOf(asked.eventId)) return isBusy
      const { request } = asked
      asked = null
      if (isBusy) {
        // A reply that the provider began by itself was quicker.
        queue.putBack(request)
        rest = busyFrames
        return true
      }
      const passing = isPassing(code, textOf(error.type))
      if (passing) again(request, codeOf(error))
      pump()
      return passing
    },
    frame() {
      if (rest > 0 && --rest === 0) pump()
      if (speaking === 1) callerStopped()
      else if (speaking > 0) speaking--
      if (active && ++active.frames >= maxReply) {
        end()
        pump()
      }
      if (asked === null || active !== null || ++asked.frames < maxUnanswered) return
      const { request } = asked
      asked = null
      again(request, 'no answer')
      pump()
    },
    pump,
    activeId: () => active?.id ?? null,
  }
}

/** It is over by itself, and the caller would hear nothing, or half of it: nothing came, or the provider's filter cut it off. */
function leavesSilence({ isCut, hasSound, hasCalled }: Active, { status, status_details }: Message): boolean {
  if (isCut || hasCalled || (status !== 'completed' && status !== 'incomplete')) return false
  return !hasSound || objectOf(status_details).reason === 'content_filter'
}
