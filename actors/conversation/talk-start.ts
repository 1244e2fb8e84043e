/** Owns what a talk between a caller and an engine is begun with, and whom it tells what becomes of it. */
import type { Bus } from '../../model/bus.ts'
import type { Clock } from '../../model/clock.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { SettledLine, StartedRecording } from '../../model/leg.ts'
import type { Log } from '../../model/log.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import type { Telemetry } from '../../model/telemetry.ts'
import type { EngineConfig, VoiceEngine } from '../../model/voice-engine.ts'
import type { CallFact } from '../call/call-event.ts'
import type { Earlier } from './earlier.ts'

export type ConversationDeps = {
  readonly callId: CallId
  readonly epoch: number
  /** Of the process; absent: the leg is in it. */
  readonly nodeId?: NodeId
  readonly bus: Bus
  readonly engine: VoiceEngine
  /** Another one is there to take its place: that it is lost is told at once. */
  readonly isReplaceable?: boolean
  readonly clock: Clock
  readonly log: Log
  readonly telemetry?: Telemetry
  /** Facts for the call's actor, in order. */
  post(fact: CallFact): void
  /** To the browser, if there is one. */
  signal(message: ServerMessage): void
  /** A frame of the leg came. */
  legSeen?(): void
}

export type ConversationStart = {
  /** `formats` are what the leg chooses. */
  readonly config: Omit<EngineConfig, 'formats'>
  /** Null: the call is not recorded. */
  readonly recording: StartedRecording | null
  /** Its recording is paused: keys that are pressed are for the engine alone. */
  readonly isPaused?: boolean
  /** Ms since the epoch. */
  readonly answeredAt: number
  /** Turns that were committed before (by an actor that was taken over). */
  readonly turns: number
  /** When the last turn of the agent among them began, ms since the answer; absent: none of them is. */
  readonly agentUntil?: number
  /** What an actor before had written down when it was gone. */
  readonly settled?: SettledLine
  /** Of what was said to the caller before the talk, or with the engine whose place is taken, when something was. */
  readonly earlier?: Earlier
}
