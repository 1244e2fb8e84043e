/**
 * Owns what the caller says without a sound: keys and typed words, told to the model and as the caller's turn as if they had been spoken. Pure.
 */
import { frameMs } from '../../../model/frame.ts'
import { textOfKeys } from '../../../model/transcript-marks.ts'
import { endingHeard, endingSpokenOver, isDeaf } from './ending.ts'
import { initialIdle } from './idle-prompts.ts'
import { areKeysDue, initialKeys } from './keys.ts'
import { greetingHeard, isOpen } from './opening.ts'
import { resumptionHeard } from './resumption.ts'
import { emit, step, type Advanced, type TalkAction, type TalkState } from './talk-state.ts'
import { initialTyped, isTypedDue, isTyping, textOfTyped, typedBegun } from './typed-words.ts'

/** The keys, when they are complete. */
export function tellKeys(state: TalkState): Advanced {
  const { keys, now } = state
  return areKeysDue(keys, now) ? toldKeys(state) : step(state)
}

export function toldKeys(state: TalkState): Advanced {
  const { keys, now } = state
  const text = textOfKeys(keys.pressed)
  const words = spokenNow(text, now)
  return step(state, { keys: initialKeys }, ...words, { type: 'tell', text }, { type: 'reply', hint: null })
}

/** The end of what the caller said without a sound. */
function spokenNow(text: string, now: number): readonly TalkAction[] {
  const at = now * frameMs
  return [
    emit({ type: 'user_speech_stopped', at }),
    emit({ type: 'user_text', text, isFinal: true, confidence: null, from: at, to: at }),
  ]
}

/** What was typed counts as spoken as soon as the caller may speak, and is told when the agent is silent. */
export function tellTyped(state: TalkState): Advanced {
  const { typed, now, ending, opening } = state
  if (!isTyping(typed) || isDeaf(ending) || !isOpen(opening)) return step(state)
  if (isTypedDue(typed, now)) return toldTyped(state)
  if (typed.since !== null) return step(state)
  const change = { typed: typedBegun(typed, now), idle: initialIdle, ending: endingSpokenOver(ending) }
  return step(state, change, emit({ type: 'user_speech_started', at: now * frameMs }))
}

function toldTyped(state: TalkState): Advanced {
  const { typed, now, resumption, ending, opening } = state
  const text = textOfTyped(typed)
  const heard = {
    resumption: resumptionHeard(resumption, text),
    ending: endingHeard(ending, text),
    opening: greetingHeard(opening, text),
  }
  const words = spokenNow(text, now)
  return step(state, { ...heard, typed: initialTyped }, ...words, { type: 'tell', text }, { type: 'reply', hint: null })
}

export const toldLast = ({ typed, now }: TalkState): readonly TalkAction[] => [
  ...(typed.since === null ? [emit({ type: 'user_speech_started', at: now * frameMs })] : []),
  ...spokenNow(textOfTyped(typed), now),
]
