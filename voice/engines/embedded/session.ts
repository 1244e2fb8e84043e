/**
 * Owns one call of the embedded engine: what the caller says goes into the dialogue, what the dialogue wants is said. The agent speaks first on
 * an inbound call; on an outbound one it lets the callee answer the telephone.
 */
import { frameMs, samplesOf } from '../../../model/frame.ts'
import type { Json } from '../../../model/json.ts'
import type { EngineEvent, EngineSession } from '../../../model/voice-engine.ts'
import { createAgentMouth } from './agent-mouth.ts'
import { createCallerEar, type Heard } from './caller-ear.ts'
import {
  advance,
  choicesOf,
  stateOf,
  type DialogueAction,
  type DialogueEvent,
  type DialogueState,
  type Setting,
} from './dialogue.ts'
import type { FliteVoice } from './flite.ts'
import type { Understanding } from './grammar.ts'
import type { Hearing } from './hearing.ts'
import type { Choice, Meaning } from './phrases.ts'
import type { Speaker } from './speaker.ts'
import type { VoiceDetector } from './voice-detector.ts'

export type SessionDeps = {
  readonly hearing: Hearing
  readonly speaker: Speaker
  readonly detector: VoiceDetector
  readonly voice: FliteVoice
  readonly setting: Setting
  readonly memory: Json
  /** How long the caller may speak first, ms. */
  readonly firstSpeech: number
  understandingOf(choices: readonly Choice[]): Understanding<Meaning>
  emit(event: EngineEvent): void
}

/** Silence after a question that is a missing answer, ms of the caller's line. */
const noInput = 6000
/** After the agent was told to fall silent, this long is waited for word of it before it speaks again, ms of the caller's line. */
const maxYielding = 1000
/** Stands in a transcript for speech that was not understood. */
const unclear = '[unclear]'

export function createSession(deps: SessionDeps): EngineSession & { begin(): void } {
  const { setting } = deps
  const fresh = deps.memory === null
  let state: DialogueState = stateOf(deps.memory, setting.script)
  /** Before this time the caller may speak first; null once the agent has begun. */
  let beginBy: number | null = fresh ? deps.firstSpeech : 0
  let silence = 0
  /** The agent was asked to fall silent; what it says next waits for the answer. */
  let yielding: { since: number; next: (() => void) | null } | null = null
  let closed = false

  const emit = (event: EngineEvent): void => {
    if (!closed) deps.emit(event)
  }
  const mouth = createAgentMouth({
    ...deps,
    itemPrefix: fresh ? 'item-' : `item-${state.step}-`,
    emit,
    onFailed(error) {
      emit({ type: 'failed', details: error instanceof Error ? error.message : String(error) })
      close()
    },
  })
  const ear = createCallerEar({
    ...deps,
    expected: () => ({ step: state.step, understanding: deps.understandingOf(choicesOf(setting.script, state)) }),
    onStarted(at) {
      emit({ type: 'user_speech_started', at })
      fallSilent()
    },
    onPartial: (text, from, to) => emit({ type: 'user_text', text, isFinal: false, confidence: null, from, to }),
    onStopped: (at) => emit({ type: 'user_speech_stopped', at }),
    onHeard: heard,
  })

  function heard({ text, meaning, confidence, isNoise, step, from, to }: Heard): void {
    silence = 0
    if (!isNoise) emit({ type: 'user_text', text: text || unclear, isFinal: true, confidence, from, to })
    if (beginBy !== null) return dispatch({ type: 'opened' })
    // Noise while the agent listens is no answer, and neither is the answer to a question that is over.
    if (isNoise && state.phase === 'listening') return
    if (meaning?.kind === 'choice' && step !== state.step) return
    dispatch({ type: 'heard', meaning })
  }
  /** What has no sound yet is not said at all; what has is cut off by who plays it, and `interrupt` tells. */
  function fallSilent(): void {
    const item = mouth.current()
    if (item?.hasSound) yielding ??= { since: ear.at(), next: null }
    else mouth.stop()
  }
  function speakAgain(): void {
    const next = yielding?.next
    yielding = null
    next?.()
  }
  function dispatch(event: DialogueEvent): void {
    if (event.type === 'opened') beginBy = null
    silence = 0
    const before = state
    const { state: after, actions } = advance(setting, state, event)
    state = after
    for (const action of actions)
      if (action.type === 'note') emit({ type: 'noted', key: action.key, value: action.value })
    if (after !== before || event.type === 'opened') emit({ type: 'memory', memory: after })
    const speak = (): void => say(actions)
    if (yielding && actions.length > 0) yielding.next = speak
    else speak()
  }
  function say(actions: readonly DialogueAction[]): void {
    const text = actions.find((action) => action.type === 'say')?.text
    const finish = actions.find((action) => action.type === 'finish')
    const onSaid = (): void => {
      if (finish) emit({ type: 'finished', nextAction: finish.nextAction })
    }
    if (text !== undefined) mouth.say(text, onSaid)
    else onSaid()
  }
  function close(): void {
    closed = true
    mouth.stop()
    ear.close()
  }
  /** Everything that waits waits for frames, not for a clock. */
  function countFrame(): void {
    if (yielding && ear.at() - yielding.since >= maxYielding) {
      mouth.stop()
      speakAgain()
    }
    if (ear.busy()) return
    if (beginBy !== null && ear.at() >= beginBy) return dispatch({ type: 'opened' })
    if (state.phase !== 'listening') return
    silence += frameMs
    if (silence >= noInput) dispatch({ type: 'silence' })
  }

  return {
    begin() {
      if (!closed && beginBy === 0) dispatch({ type: 'opened' })
    },
    hear(payload) {
      if (closed || state.phase === 'ended') return
      ear.hear(samplesOf(payload))
      countFrame()
    },
    interrupt() {
      if (closed || state.phase === 'ended') return
      const wasCut = mouth.current() !== null
      mouth.stop()
      if (yielding) return speakAgain()
      if (wasCut && !ear.busy()) dispatch({ type: 'interrupted' })
    },
    played(itemId) {
      if (closed || !mouth.played(itemId)) return
      if (yielding) speakAgain()
      else if (!ear.busy() || choicesOf(setting.script, state).length > 0) dispatch({ type: 'played' })
    },
    dtmf(digit) {
      if (closed || state.phase === 'ended' || beginBy !== null) return
      if (mouth.current()?.hasSound) {
        emit({ type: 'user_speech_started', at: ear.at() })
        emit({ type: 'user_speech_stopped', at: ear.at() })
      }
      fallSilent()
      dispatch({ type: 'dtmf', digit })
    },
    close,
  }
}
