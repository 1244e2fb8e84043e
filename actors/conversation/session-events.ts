/** Owns what an engine says in one session: it is held until the session is in our hands, and of one that was left nothing is heard any more. */
import type { EngineEvent } from '../../model/voice-engine.ts'

export type SessionEvents = {
  /** For the engine. */
  emit(event: EngineEvent): void
  /** Passes on what was held, in order, and from now on everything at once. */
  begin(): void
  leave(): void
}

/** What an engine may say before its session is in our hands. */
const maxEarly = 10_000

export function createSessionEvents(take: (event: EngineEvent) => void): SessionEvents {
  let early: EngineEvent[] | null = []
  let isLeft = false
  const emit = (event: EngineEvent): void => {
    if (isLeft) return
    if (early === null) take(event)
    else if (early.length < maxEarly) early.push(event)
  }
  return {
    emit,
    begin() {
      const held = early ?? []
      early = null
      held.forEach(emit)
    },
    leave() {
      isLeft = true
    },
  }
}
