/**
 * Owns how much any engine may remember of a call: what it tells is written with its turns and read by whoever takes the call over, so it is JSON that
 * can be stored, of `maxMemoryBytes` at most. What is too much the engine shortens as it knows best, or it is not taken. It never fails a call.
 */
import { flawOf, type Json } from '../../model/json.ts'
import type { Log } from '../../model/log.ts'
import { maxMemoryBytes, type EngineEvent, type VoiceEngine } from '../../model/voice-engine.ts'

export type MemoryBound = {
  /** What of it is kept; undefined: nothing, and what was remembered before counts on. */
  kept(memory: Json): Json | undefined
  /** The same engine, which remembers no more. */
  boundedIn(engine: VoiceEngine): VoiceEngine
}

/** Of one talk. `shorten` is the engine's. */
export function createMemoryBound({ name, shorten }: VoiceEngine, log: Log): MemoryBound {
  let isTold = false
  const tellOnce = (message: string, error?: unknown): void => {
    if (!isTold) log.warn(message, { engine: name, maxMemoryBytes, ...(error !== undefined && { error }) })
    isTold = true
  }
  const shortened = (memory: Json): Json | undefined => {
    try {
      return shorten && storable(shorten(memory, maxMemoryBytes))
    } catch (error) {
      tellOnce('an engine could not shorten what it remembers of a call, and it is not kept', error)
      return undefined
    }
  }
  const kept = (memory: Json): Json | undefined => {
    const whole = storable(memory)
    if (whole !== undefined) return whole
    const less = shortened(memory)
    if (less === undefined) tellOnce('what an engine remembers of a call cannot be kept')
    else tellOnce('an engine remembers more of a call than is kept: it was shortened')
    return less
  }
  const bounded = (event: EngineEvent): EngineEvent | null => {
    if (event.type !== 'memory') return event
    const memory = kept(event.memory)
    return memory === undefined ? null : { ...event, memory }
  }
  return {
    kept,
    boundedIn: (engine) => ({
      ...engine,
      open: (config, emit) =>
        engine.open(config, (event) => {
          const told = bounded(event)
          if (told) emit(told)
        }),
    }),
  }
}

/** A copy, which the engine does not change any more; undefined for what is too large, no JSON, or such as can never be stored. */
function storable(memory: Json): Json | undefined {
  const text = textOf(memory)
  if (text === undefined || Buffer.byteLength(text) > maxMemoryBytes) return undefined
  const copy = JSON.parse(text) as Json
  return flawOf(copy) === null ? copy : undefined
}

function textOf(memory: unknown): string | undefined {
  try {
    return JSON.stringify(memory)
  } catch {
    // It goes in a circle, or too deep.
    return undefined
  }
}
