/** Owns what happens to a call (past facts, fed to the machine) and what the machine asks for (effects). Both are JSON, both are logged. */
import type { LegQuality } from '../../model/call-quality.ts'
import type { EvidenceByKey } from '../../model/extraction.ts'
import type { CallWarning, Direction, ProgressStatus, RecordingState, Transport, Turn } from '../../model/call.ts'
import type { RecordedParts, SettledLine } from '../../model/leg.ts'
import type { Disclosure } from '../../model/disclosure.ts'
import type { Json, JsonObject } from '../../model/json.ts'
import type { JsonPatch } from '../../model/json-patch.ts'
import type { EndedBy, Outcome, TerminalStatus } from '../../model/outcome.ts'
import type { CallUsage } from '../../model/usage.ts'
import type { ToolResult } from '../../model/tool.ts'
import type { Note } from '../../model/voice-engine.ts'
import type { LlmProvider } from '../../model/worker.ts'
import type { WorkerConfig } from '../../model/worker.ts'

/** What a call is born with. Times are ms since the epoch. */
export type CallBirth = {
  readonly direction: Direction
  readonly transport: Transport
  /** When a scheduled outbound call is to be dialed; null means now. */
  readonly scheduledAt: number | null
  /** The traceparent of who asked for it; absent: there was none. */
  readonly trace?: string
  /** By which rules it ends (machine/call-end.ts); absent: those of before they were told apart. */
  readonly rules?: 2
}

/** As a leg tells it (LegEvent), or whoever found that the leg is gone. Absent in logs of before it was told. */
export type LegEnd = { readonly endedBy?: EndedBy; readonly endCause?: string | null; readonly silentFor?: number }

/**
 * `toolCallId` is what subscribers and the integrator know it by: one of the integrator that has it is asked only behind its `tool_asked`. Absent in logs
 * of older versions, which asked without a word.
 */
export type CalledTool = {
  readonly id: string
  readonly name: string
  readonly arguments: JsonObject
  readonly toolCallId?: string
}

export type CallFact =
  | ({ readonly type: 'created' } & CallBirth)
  /**
   * A browser took the token and opened the signaling socket, or the leg of an inbound phone call is there. `isUnasked`: nobody was subscribed to
   * call.worker_request when the call was born; absent: it is found out, as in logs of before it was told.
   */
  | { readonly type: 'client_connected'; readonly isUnasked?: true }
  | { readonly type: 'token_expired' }
  | { readonly type: 'dial_time_reached' }
  /** The account and the worker have room for one more call. */
  | { readonly type: 'slot_granted' }
  /** The answer of call.worker_request, or the absence of a receiver (then everything is null). Tool secrets are sealed. */
  | {
      readonly type: 'worker_request_answered'
      readonly config: WorkerConfig | null
      readonly locale?: string | null
      readonly instructions: string | null
      readonly tools: readonly JsonObject[] | null
      readonly metadata: JsonObject | null
    }
  | { readonly type: 'worker_request_failed'; readonly required: boolean; readonly details: string }
  | { readonly type: 'ringing'; readonly providerStatus: string | null }
  | ({ readonly type: 'dial_failed'; readonly outcome: Outcome; readonly providerStatus: string | null } & LegEnd)
  /** Media flows both ways: answered. */
  | { readonly type: 'leg_connected'; readonly providerStatus: string | null }
  | ({
      readonly type: 'leg_disconnected'
      readonly cause: 'hung_up' | 'media_lost' | 'failed'
      readonly details: string
      /** Nobody ended it: the process that had it is not there any more. A browser may come back by another one. */
      readonly gone?: true
      /** A telephone may come over to another one as well. Absent in logs of before it could. */
      readonly awaited?: true
    } & LegEnd)
  /** The browser has come back to a call that talks, or the telephone has been asked over to another process: by another leg. */
  | { readonly type: 'leg_returned' }
  /**
   * `recordedMs`: null when the leg did not tell; `quality` absent when it did not, as in logs of before it was told. `endedAt`: when the talk was
   * over, before the caller's last words were heard out; absent in logs of before they were.
   */
  | {
      readonly type: 'leg_closed'
      readonly recordedMs: number | null
      readonly quality?: LegQuality
      readonly silentFor?: number
      readonly endedAt?: number
    }
  /**
   * `hasSpoken`: the agent was heard before. `fallsBack`: the embedded engine may take its place, by leave of the account. `fallsBackTo`: this one takes
   * its place, as the call's configuration names it.
   */
  | {
      readonly type: 'engine_failed'
      readonly details: string
      readonly hasSpoken?: boolean
      readonly fallsBack?: true
      readonly fallsBackTo?: LlmProvider
    }
  /** The caller has been passed on. */
  | ({ readonly type: 'transferred'; readonly providerStatus: string | null } & LegEnd)
  | { readonly type: 'transfer_failed'; readonly providerStatus: string | null }
  /** No person answered. `signs`: what told so, two at least. `leavesMessage`: the agent has something to say to an answering machine. */
  | { readonly type: 'voicemail_detected'; readonly signs: readonly string[]; readonly leavesMessage?: true }
  /**
   * `usage`: of the time since the turn before; absent in logs of before it was counted.
   * `memory`: all that the engine remembers after it, as it comes from the conversation and as logs of before there were changes always have it;
   * `memoryChange`: what is new of it since the turn before; neither: nothing is. `settled`: of the caller's line, with this turn of theirs; absent where
   * the leg keeps nothing, and in logs of before it was told.
   */
  | {
      readonly type: 'turn_committed'
      readonly turn: Turn
      readonly memory?: Json
      readonly memoryChange?: JsonPatch
      readonly usage?: CallUsage
      readonly settled?: SettledLine
    }
  /**
   * A former actor had kept this turn on the disk of its node while it could not reach the database, and it was found there when this one had the call.
   * `epoch`: of that one; `version`: of the step that it was to be written with.
   */
  | {
      readonly type: 'turn_found'
      readonly epoch: number
      readonly version: number
      readonly turn: Turn
      readonly usage?: CallUsage
    }
  /** What was used since the last turn; of a talk that is over. */
  | { readonly type: 'used'; readonly usage: CallUsage }
  /** What the caller is saying, as far as it is understood; null: it was nothing. It is a turn when nobody is left to hear the end of it. */
  | { readonly type: 'caller_heard'; readonly words: CallerWords | null }
  /** The agent is saying this, under the number that it will have; told where somebody wants to read along. */
  | { readonly type: 'turn_shown'; readonly index: number; readonly turn: ShownTurn }
  /** The engine wants a tool run; `id` is never used again in the call. */
  | ({ readonly type: 'tool_called' } & CalledTool)
  | {
      readonly type: 'tool_answered'
      readonly id: string
      readonly status: ToolResult['status']
      readonly tookMs: number
    }
  /** Nobody waits for it any more. */
  | { readonly type: 'tool_canceled'; readonly id: string }
  /** A tool of the integrator is about to be asked, and not before this is written: whoever subscribed is told by this step. */
  | { readonly type: 'tool_asked'; readonly toolCallId: string; readonly name: string; readonly arguments: JsonObject }
  /** The engine does not do all that the call was asked for. */
  | { readonly type: 'warned'; readonly warning: CallWarning }
  | { readonly type: 'noted'; readonly key: string; readonly value: Json }
  | { readonly type: 'agent_finished'; readonly nextAction: string | null }
  /** By the caller's last words, behind which nothing more is said. */
  | { readonly type: 'action_chosen'; readonly nextAction: string }
  /** The talk begins without a recording: the call is configured so. */
  | { readonly type: 'not_recorded' }
  /** The call's configuration has something to be said first, in the language of the call. */
  | { readonly type: 'disclosure_due'; readonly text: string }
  /** It has been heard to its end, or as far as the caller stayed. */
  | ({ readonly type: 'disclosure_played' } & Disclosure)
  | { readonly type: 'recording_pause_requested' }
  | { readonly type: 'recording_resume_requested' }
  /** `by` absent: the service. */
  | { readonly type: 'hang_up_requested'; readonly by?: EndedBy }
  | { readonly type: 'cancel_requested' }
  | { readonly type: 'deadline_passed'; readonly deadline: Deadline }
  | ({ readonly type: 'post_processed' } & TalkAnalysis)
  /** `analysis`: what could be had all the same; absent in logs of before it was. */
  | { readonly type: 'post_processing_failed'; readonly details: string; readonly analysis?: TalkAnalysis }
  /** Somebody of the account listens to the call, under an id of this listening. */
  | { readonly type: 'supervisor_joined'; readonly id: string; readonly userId: string }
  /** `lost`: their browser is gone. */
  | { readonly type: 'supervisor_left'; readonly id: string; readonly lost?: true }
  /** The agent is told this, and the caller hears nothing of it. */
  | { readonly type: 'whispered'; readonly userId: string; readonly text: string }
  /** This supervisor speaks with the caller in the agent's place, and gives the call back to it. */
  | { readonly type: 'voice_taken'; readonly id: string }
  | { readonly type: 'voice_returned'; readonly id: string }
  /** Nothing comes of the supervisor who speaks. */
  | { readonly type: 'voice_lost' }
  /** Another actor took the call over: what was under way in this state is asked for again. */
  /** `hearsAgain`: the leg has kept what the caller was saying, and it is said anew what was understood of it. */
  /** `keepsTools`: those that were under way get a result under their ids, and are not run again; logs of before it forgot them. */
  /** `seeksLeg`: a browser that is missed may be back already; in logs of before it the actor went on waiting. */
  | {
      readonly type: 'taken_over'
      readonly hearsAgain?: true
      readonly keepsTools?: true
      readonly seeksLeg?: true
    }

/** A turn that is not over. */
export type ShownTurn = Pick<Turn, 'role' | 'text' | 'confidence' | 'source'>

/** A turn of the caller's that is not over, and the values that it establishes if it is. */
export type CallerWords = { readonly turn: Turn; readonly notes: readonly Note[] }

/** What a talk established. Logs of before there was evidence have none of the last three. */
export type TalkAnalysis = {
  readonly recordedMs: number | null
  readonly dimensions: JsonObject
  readonly nextAction: NextActionTaken | null
  readonly evidence?: EvidenceByKey
  readonly summary?: string | null
  readonly warnings?: readonly CallWarning[]
}

export type NextActionTaken = { readonly key: string; readonly name: string; readonly data?: JsonObject }

/** Short waits of the machine. They live in its context as absolute times, so that they survive the actor. */
export type Deadline =
  | 'connect'
  | 'arrive'
  | 'hook'
  | 'ring'
  | 'answer'
  | 'redirect'
  | 'duration'
  | 'disclosure'
  | 'return'
  | 'message'
  | 'close'

export type Effect =
  // Written in the transaction of the step.
  | { readonly type: 'announce_status'; readonly status: ProgressStatus; readonly providerStatus: string | null }
  | {
      readonly type: 'store_worker_request'
      readonly config: WorkerConfig | null
      readonly locale?: string | null
      readonly instructions: string | null
      readonly tools: readonly JsonObject[] | null
      readonly metadata: JsonObject | null
    }
  /** `isFound`: a former actor's, and not of this talk. `isLate`: the end of the call has been announced, and nothing is behind it. */
  | {
      readonly type: 'store_turn'
      readonly index: number
      readonly turn: Turn
      readonly isFound?: true
      readonly isLate?: true
    }
  /** A turn as far as it is known; told to those who want to read along. */
  | { readonly type: 'show_turn'; readonly index: number; readonly turn: ShownTurn }
  | {
      readonly type: 'store_outcome'
      readonly outcome: Outcome
      readonly answeredAt: number | null
      readonly endedAt: number
      /** These two: absent in logs of before they were told. */
      readonly endedBy?: EndedBy
      readonly endCause?: string | null
      readonly quality?: LegQuality
      /** Absent: nothing was counted. */
      readonly usage?: CallUsage
    }
  /** Once for each type. */
  | { readonly type: 'store_warning'; readonly warning: CallWarning }
  | { readonly type: 'store_recording_state'; readonly state: RecordingState }
  | ({ readonly type: 'store_disclosure' } & Disclosure)
  | { readonly type: 'schedule_post_processing' }
  | ({ readonly type: 'store_analysis' } & TalkAnalysis)
  | { readonly type: 'fail_post_processing' }
  | { readonly type: 'announce_ended' }
  | {
      readonly type: 'announce_tool_call'
      readonly toolCallId: string
      readonly name: string
      readonly arguments: JsonObject
    }
  // Carried out after the commit; what comes of them returns as facts.
  | { readonly type: 'ask_worker_request' }
  | { readonly type: 'dial' }
  /** Takes an inbound phone call, once a voice session could be had. `engine` absent: the one that the call's configuration chooses. */
  | { readonly type: 'answer'; readonly engine?: LlmProvider }
  /** Passes the caller on to the number for the time that the service is down. Comes back as `transferred` or `transfer_failed`. */
  | { readonly type: 'redirect' }
  /** Is the leg connected already? Its event may have been lost with a former actor. */
  | { readonly type: 'look_for_leg' }
  /** The talk goes on with the leg by which the browser has come back. */
  | { readonly type: 'rejoin_leg' }
  /** `engine` absent: the one that the call's configuration chooses. */
  | {
      readonly type: 'start_conversation'
      readonly turns: number
      readonly memory: Json
      readonly answeredAt: number
      readonly engine?: LlmProvider
      /** It takes the place of one that was heard: it says so in one sentence before it goes on. */
      readonly bridges?: true
      /** As it was decided before; absent: it is recorded if the call's configuration says so. */
      readonly recording?: RecordingState
      /** The caller has been told what is to be said first: so many turns. Absent: not yet. */
      readonly disclosedTurns?: number
      /** It takes up the word again, whoever spoke last. Absent: as its history has it. */
      readonly isDue?: true
      /** What the agent is told besides, oldest first. Absent: nothing. */
      readonly whispers?: readonly string[]
      /** Tools that a former actor had under way: nobody knows what became of them. Absent: none. */
      readonly lostTools?: readonly string[]
      /** What a former actor had written down of the caller's line. Absent: nothing, or nobody knows. */
      readonly settled?: SettledLine
    }
  /** Says this to its end, whatever the caller does: ends in `disclosure_played`. */
  | {
      readonly type: 'disclose'
      readonly text: string
      readonly answeredAt: number
      readonly engine?: LlmProvider
      readonly recording?: RecordingState
    }
  /** What of the call is recorded from here on. */
  | { readonly type: 'record'; readonly parts: RecordedParts }
  /** Who hears the call, and which of them speaks in the agent's place; the newest counts. */
  | { readonly type: 'supervise'; readonly supervisors: readonly string[]; readonly voice: string | null }
  /** The agent falls silent and hears nothing any more, until a conversation is started. */
  | { readonly type: 'step_aside' }
  | { readonly type: 'whisper'; readonly text: string }
  /** What the script has for an answering machine, after its tone: ends in `agent_finished`. */
  | { readonly type: 'leave_message' }
  /** Once: an actor that takes the call over runs it only where nobody can have been asked. Comes back as `tool_answered`. */
  | ({ readonly type: 'run_tool' } & CalledTool)
  | { readonly type: 'cancel_tool'; readonly id: string }
  /** Silences the agent, closes the leg and hears the caller's last words out: ends in `leg_closed`. */
  | { readonly type: 'wind_up'; readonly reason: WindUpReason }

export type WindUpReason = TerminalStatus
