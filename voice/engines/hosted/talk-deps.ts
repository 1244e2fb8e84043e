/** Owns what a hosted talk is given (talk.ts). */
import type { Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import type { EngineConfig, EngineEvent } from '../../../model/voice-engine.ts'
import type { OpenWire } from './wire.ts'

export type TalkDeps = {
  readonly config: EngineConfig
  readonly openWire: OpenWire
  /** The provider says words while it waits for a tool: then a filler is asked for. */
  readonly speaksWhileToolsRun: boolean
  readonly log: Log
  readonly clock: Clock
  emit(event: EngineEvent): void
}
