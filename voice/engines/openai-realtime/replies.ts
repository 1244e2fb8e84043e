/**
 * Owns the model's replies: one at a time, asked for in turn, never into the caller's words, and asked for again when they did not come. Counts
 * frames of the caller's line.
 */
import { frameMs } from '../../../model/frame.ts'
import type { WireEvent } from '../hosted/wire.ts'
import { codeOf, isFatal, isPassing } from './error-codes.ts'
import { objectOf, textOf, type Message } from './fields.ts'
import { createReplyQueue, type ReplyQueue, type Request, type Wish } from './reply-queue.ts'

export type Replies = {
  ask(wish: Wish): void
  /** A plain reply, when no tool is at work any more. */
  askAfterTools(): void
  created(message: Message): void
  /** Sound of it has gone to the caller. */
  sounded(): void
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
  frames: number
}

type State = {
  readonly deps: Deps
  readonly queue: ReplyQueue
  active: Active | null
  asked: { readonly eventId: string; readonly request: Request; frames: number } | null
  count: number
  /** Frames until it is asked again. */
  rest: number
  /** Frames that the caller speaks on at most; 0: they are silent. */
  speaking: number
  /** The provider tells whose a reply is. */
  tellsWhose: boolean
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
  const nothing = { active: null, asked: null, count: 0, rest: 0, speaking: 0, tellsWhose: false }
  const state: State = { deps, queue, ...nothing }
  return {
    ask(wish) {
      queue.add(wish)
      pump(state)
    },
    askAfterTools() {
      queue.addAfterTools()
      pump(state)
    },
    created: (message) => created(state, objectOf(message.response)),
    sounded() {
      if (state.active) state.active.hasSound = true
    },
    done: (message) => done(state, objectOf(message.response)),
    callerSpeaks() {
      state.speaking = maxSpeech
      if (state.active) state.active.isCut = true
    },
    callerStopped: () => callerStopped(state),
    cancel: () => cancel(state),
    refused: (error) => refused(state, error),
    frame: () => frame(state),
    pump: () => pump(state),
    activeId: () => state.active?.id ?? null,
  }
}

function pump(state: State): void {
  const { queue, deps } = state
  if (state.active !== null || state.asked !== null || state.rest > 0 || state.speaking > 0) return
  const request = queue.next()
  if (request === null) return
  const event_id = `ask_${++state.count}`
  state.asked = { eventId: event_id, request, frames: 0 }
  const instructions = request.instructions && { instructions: request.instructions() }
  deps.send({ type: 'response.create', event_id, response: { ...instructions, metadata: { reply: request.id } } })
}

function frame(state: State): void {
  if (state.rest > 0 && --state.rest === 0) pump(state)
  if (state.speaking === 1) callerStopped(state)
  else if (state.speaking > 0) state.speaking--
  if (state.active && ++state.active.frames >= maxReply) {
    end(state)
    pump(state)
  }
  if (state.asked === null || state.active !== null || ++state.asked.frames < maxUnanswered) return
  const { request } = state.asked
  state.asked = null
  again(state, request, 'no answer')
  pump(state)
}

/** The provider answers: what was to be said before the caller spoke is only asked for when it does not. */
function callerStopped(state: State): void {
  if (state.speaking === 0) return
  state.speaking = 0
  state.queue.overtake()
  state.rest = Math.max(state.rest, answersWithin)
}

function created(state: State, response: Message): void {
  const { request, assumedOf } = requestOf(state, response)
  const id = textOf(response.id)
  // The end of the one before was not told.
  const { active: before, deps, queue } = state
  state.active = { id, request, assumedOf, isCut: false, hasSound: false, frames: 0 }
  if (before) over(state, before)
  if (request === null) queue.dropOvertaken()
  deps.onBegun(id)
  deps.emit({ type: 'reply_started', says: request?.isOwed === true })
  if (request === null || state.speaking === 0) return
  // The caller began to speak while it was asked for.
  cancel(state)
  deps.onCut(id)
}

/** Replies to the caller's speech come unasked and may be quicker than ours: ours carry the name of their request. */
function requestOf(state: State, { metadata }: Message): Pick<Active, 'request' | 'assumedOf'> {
  const { asked, queue } = state
  const name = textOf(objectOf(metadata).reply)
  if (metadata !== undefined) state.tellsWhose = true
  if (name !== '' && name !== asked?.request.id) return { request: queue.take(name), assumedOf: null }
  if (asked === null || (name === '' && state.tellsWhose)) return { request: null, assumedOf: null }
  state.asked = null
  return { request: asked.request, assumedOf: name === '' ? asked.eventId : null }
}

function done(state: State, { id, status, status_details }: Message): void {
  const { active } = state
  if (active === null || active.id !== textOf(id)) return
  if (status === 'failed') failed(state, active, codeOf(objectOf(objectOf(status_details).error)))
  else end(state)
  pump(state)
}

function cancel({ active, deps }: State): void {
  if (active === null || active.isCut) return
  active.isCut = true
  deps.send({ type: 'response.cancel', response_id: active.id })
}

function end(state: State): void {
  const { active } = state
  if (active === null) return
  state.active = null
  state.rest = 0
  over(state, active)
}

/** Who hears of its end may ask for the next one: what is owed goes before that. */
function over({ deps, queue }: State, { request, hasSound }: Active): void {
  if (request && !hasSound) queue.unsaid(request)
  deps.onDone()
  deps.emit({ type: 'reply_done' })
}

function failed(state: State, active: Active, code: string): void {
  const rest = isFatal(code) ? null : state.queue.again(active.request, code)
  state.active = null
  state.rest = rest ?? 0
  over(state, { ...active, request: null })
  if (rest === null) giveUp(state, code)
}

/** It has not even begun. */
function again(state: State, request: Request, code: string): void {
  const rest = isFatal(code) ? null : state.queue.again(request, code)
  if (rest === null) giveUp(state, code)
  else state.rest = rest
}

const giveUp = ({ deps }: State, code: string): void =>
  deps.emit({ type: 'failed', details: `the model failed (${code})`, isRetryable: !isFatal(code) })

function refused(state: State, error: Message): boolean {
  const code = textOf(error.code)
  if (code === 'response_cancel_not_active') return true
  const { asked, active, queue } = state
  const eventId = textOf(error.event_id)
  const isBusy = code === 'conversation_already_has_active_response'
  const isOf = (ours: string): boolean => eventId === ours || (isBusy && eventId === '')
  if (isBusy && active?.request && active.assumedOf !== null && isOf(active.assumedOf)) {
    queue.putBack(active.request)
    active.request = null
    return true
  }
  if (asked === null || !isOf(asked.eventId)) return isBusy
  state.asked = null
  if (isBusy) {
    // A reply that the provider began by itself was quicker.
    queue.putBack(asked.request)
    state.rest = busyFrames
    return true
  }
  const passing = isPassing(code, textOf(error.type))
  if (passing) again(state, asked.request, codeOf(error))
  pump(state)
  return passing
}
