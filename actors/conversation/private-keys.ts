/**
 * Owns that keys which a caller presses while the recording is paused are for the engine alone: whatever it says of them, in words, values, arguments
 * or memory, has a dot for each digit before anybody stores, tells or logs it. docs/contract/rest.md "Pausing a recording".
 */
import type { Json } from '../../model/json.ts'
import { keyDot, keysOf, textOfKeys } from '../../model/transcript-marks.ts'
import type { EngineEvent, Note, VoiceEngine } from '../../model/voice-engine.ts'
import { createKeyMask } from './key-mask.ts'

export type PrivateKeys = {
  paused(isPaused: boolean): void
  /** `isHidden`: the recording was paused then. */
  pressed(key: string, isHidden: boolean): void
  /** The same engine, which says nothing of them. */
  keptBy(engine: VoiceEngine): VoiceEngine
}

type Press = { readonly key: string; readonly isPrivate: boolean }

/** Keys that the engine has not told of; more are of no question any more. */
const maxUntold = 64

export function createPrivateKeys(startsPaused: boolean): PrivateKeys {
  const mask = createKeyMask()
  let isPaused = startsPaused
  let untold: Press[] = []

  /** Engines tell of keys in the order in which they were pressed, and not of all. True: one of these was private. */
  const tell = (keys: string): boolean => {
    const told = untold
      .map(({ key }) => key)
      .join('')
      .indexOf(keys)
    const isPrivate = (presses: readonly Press[]): boolean => presses.some((press) => press.isPrivate)
    if (told === -1) return isPrivate(untold)
    const taken = untold.slice(told, told + keys.length)
    untold = untold.slice(told + keys.length)
    return isPrivate(taken)
  }
  const userText = (text: string, isFinal: boolean): string => {
    const keys = keysOf(text)
    // No engine tells of dots: they were typed so.
    if (keys === null || keys.includes(keyDot)) return mask.text(text, { isPaused, isWhole: isFinal })
    if (!tell(keys)) return text
    mask.add(keys)
    return textOfKeys(Array.from(keys, () => keyDot))
  }
  const value = (given: Json): Json => mask.json(given, 'value')
  const masked = (event: EngineEvent): EngineEvent => {
    if (mask.isEmpty()) return event
    switch (event.type) {
      case 'agent_text':
        return { ...event, text: mask.text(event.text, { isPaused, isWhole: false }) }
      case 'user_text': {
        const notes = event.notes?.map((note): Note => ({ ...note, value: value(note.value) }))
        return { ...event, text: userText(event.text, event.isFinal), ...(notes && { notes }) }
      }
      case 'noted':
        return { ...event, value: value(event.value) }
      case 'tool_call':
        return { ...event, arguments: value(event.arguments) as typeof event.arguments }
      case 'memory':
        return { ...event, memory: mask.json(event.memory, 'memory') }
      case 'failed':
        return { ...event, details: mask.text(event.details, { isPaused, isWhole: true }) }
      case 'audio':
      case 'item_done':
      case 'user_speech_started':
      case 'user_speech_stopped':
      case 'tool_canceled':
      case 'warned':
      case 'finished':
      case 'expiring':
      case 'used':
        return event
    }
  }

  return {
    paused(paused) {
      isPaused = paused
      mask.end()
    },
    pressed(key, isHidden) {
      const isPrivate = isPaused || isHidden
      untold = [...untold, { key, isPrivate }].slice(-maxUntold)
      if (isPrivate) mask.key(key)
    },
    keptBy: (engine) => ({ ...engine, open: (config, emit) => engine.open(config, (event) => emit(masked(event))) }),
  }
}
