/** Owns the model's replies: one at a time, asked for in turn, and asked for once more when the provider failed. Counts frames of the caller's line. */
import { frameMs } from '../../../model/frame.ts'
import type { WireEvent } from '../hosted/wire.ts'
import { isFatal, isPassing } from './error-codes.ts'
import { objectOf, textOf, type Message } from './fields.ts'

export type Replies = {
  /** `instructions` take the place of the session's for this reply; null: those of the session. */
  ask(instructions: Instructions): void
  /** As `ask(null)`, when no tool is at work any more. */
  askAfterTools(): void
  created(message: Message): void
  done(message: Message): void
  /** The provider breaks its reply off by itself. */
  callerSpeaks(): void
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

type Instructions = (() => string) | null
type Request = { readonly instructions: Instructions; tries: number }

type Deps = {
  toolsAtWork(): boolean
  send(message: object): void
  emit(event: WireEvent): void
  /** The items of a reply are over before it is. */
  onDone(): void
}

type State = {
  readonly deps: Deps
  readonly waiting: Request[]
  afterTools: boolean
  active: { readonly id: string; readonly request: Request; isCut: boolean; frames: number } | null
  asked: { readonly eventId: string; readonly request: Request; frames: number } | null
  count: number
  /** Frames until it is asked again. */
  rest: number
}

const maxWaiting = 16
/** One that was asked for and does not begin never will. */
const maxUnanswered = 10_000 / frameMs
/** One whose end nobody told is over. */
const maxReply = 300_000 / frameMs
/** A provider that is busy with a reply of its own is asked again when that is done, or after so long. */
const busyFrames = 500 / frameMs
const maxTries = 2

export function createReplies(deps: Deps): Replies {
  const state: State = { deps, waiting: [], afterTools: false, active: null, asked: null, count: 0, rest: 0 }
  return {
    ask(instructions) {
      if (state.waiting.length < maxWaiting) state.waiting.push({ instructions, tries: 0 })
      pump(state)
    },
    askAfterTools() {
      state.afterTools = true
      pump(state)
    },
    created(message) {
      end(state)
      const request = state.asked?.request ?? { instructions: null, tries: 0 }
      state.asked = null
      state.active = { id: textOf(objectOf(message.response).id), request, isCut: false, frames: 0 }
      deps.emit({ type: 'reply_started' })
    },
    done(message) {
      const { id, status, status_details } = objectOf(message.response)
      if (state.active === null || state.active.id !== textOf(id)) return
      const { request } = state.active
      end(state)
      if (status === 'failed') again(state, request, objectOf(objectOf(status_details).error))
      pump(state)
    },
    callerSpeaks() {
      if (state.active) state.active.isCut = true
    },
    cancel() {
      if (state.active === null || state.active.isCut) return
      state.active.isCut = true
      deps.send({ type: 'response.cancel', response_id: state.active.id })
    },
    refused: (error) => refused(state, error),
    frame() {
      if (state.rest > 0 && --state.rest === 0) pump(state)
      if (state.active && ++state.active.frames >= maxReply) end(state)
      if (state.asked === null || ++state.asked.frames < maxUnanswered) return
      state.asked = null
      pump(state)
    },
    pump: () => pump(state),
    activeId: () => state.active?.id ?? null,
  }
}

function pump(state: State): void {
  const { waiting, deps } = state
  if (state.active !== null || state.asked !== null || state.rest > 0) return
  if (waiting.length === 0 && state.afterTools && !deps.toolsAtWork()) {
    state.afterTools = false
    waiting.push({ instructions: null, tries: 0 })
  }
  const request = waiting.shift()
  if (request === undefined) return
  const event_id = `reply_${++state.count}`
  state.asked = { eventId: event_id, request, frames: 0 }
  const response = request.instructions === null ? {} : { response: { instructions: request.instructions() } }
  deps.send({ type: 'response.create', event_id, ...response })
}

function end(state: State): void {
  if (state.active === null) return
  state.active = null
  state.rest = 0
  state.deps.onDone()
  state.deps.emit({ type: 'reply_done' })
}

/** What failed once may succeed a moment later; what fails twice is for a new session. */
function again({ deps, waiting }: State, request: Request, error: Message): void {
  const code = textOf(error.code) || textOf(error.type)
  const fatal = isFatal(code)
  if (!fatal && ++request.tries < maxTries) return void waiting.unshift(request)
  deps.emit({ type: 'failed', details: `the model failed (${code})`, isRetryable: !fatal })
}

function refused(state: State, error: Message): boolean {
  const code = textOf(error.code)
  if (code === 'response_cancel_not_active') return true
  const busy = code === 'conversation_already_has_active_response'
  if (state.asked === null || textOf(error.event_id) !== state.asked.eventId) return busy
  const { request } = state.asked
  state.asked = null
  if (busy) {
    // A reply that the provider began by itself was quicker.
    state.waiting.unshift(request)
    state.rest = busyFrames
    return true
  }
  const passing = isPassing(code, textOf(error.type))
  if (passing) again(state, request, error)
  pump(state)
  return passing
}
