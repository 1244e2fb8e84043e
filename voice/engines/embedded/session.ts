/**
 * Owns one call of the embedded engine: what the caller says goes into the script, what the script wants is said. The agent speaks first on an
 * inbound call; on an outbound one it lets the callee answer the telephone. Everything that waits counts frames of the caller's line, not a clock.
 */
import { randomUUID } from 'node:crypto'
import { samplesOf } from '../../../model/frame.ts'
import type { Json } from '../../../model/json.ts'
import type { EngineEvent, EngineSession, Said } from '../../../model/voice-engine.ts'
import { createAgentSpeech } from './agent-speech.ts'
import { createCallerUtterances } from './caller-utterances.ts'
import type { Setting } from '../../script/dialogue/dialogue-turn.ts'
import type { Expected } from '../../script/expected.ts'
import type { FliteVoice } from './flite.ts'
import type { Understanding } from './grammar.ts'
import type { Recognition } from './recognition.ts'
import type { Meaning } from '../../script/phrases.ts'
import { createScriptRun } from './script-run.ts'
import { createKeypad } from './session-keypad.ts'
import { createAnnouncement, createOpening } from './session-opening.ts'
import { finalTextOf, reactTo } from './session-reaction.ts'
import { createHeldResults, createSilenceTimer } from './session-waits.ts'
import type { Synthesiser } from './synthesiser.ts'
import type { VoiceDetector } from '../../../media/vad/voice-detector.ts'

export type SessionDeps = {
  readonly recognition: Recognition
  readonly synthesiser: Synthesiser
  readonly detector: VoiceDetector
  readonly voice: FliteVoice
  readonly setting: Omit<Setting, 'idPrefix'>
  readonly memory: Json
  /** Oldest first; empty at the start of a call. */
  readonly history: readonly Said[]
  /** Of a call that goes on: the last line was not heard, or not answered. */
  readonly owesReply: boolean
  /** Said word for word before anything else, and not again by a session that goes on; null: nothing. */
  readonly announcement: string | null
  /** For an answering machine; null: nothing. */
  readonly voicemail: string | null
  /** How long the caller may speak first, ms. */
  readonly firstSpeech: number
  understandingFor(expected: Expected): Understanding<Meaning>
  /** For the first words of who takes an outbound call: whatever they are, the agent begins after them. */
  greetingUnderstanding(): Understanding<Meaning>
  /** A word to the operator, once. */
  tellOnce?(message: string): void
  emit(event: EngineEvent): void
}

const silence = new Int16Array(320)

export function createSession(deps: SessionDeps): EngineSession & { begin(): void } {
  let closed = false
  const emit = (event: EngineEvent): void => {
    if (!closed) deps.emit(event)
  }
  const close = (): void => {
    closed = true
    speech.close()
    caller.close()
  }
  const onFailed = (error: unknown): void => {
    emit({ type: 'failed', details: error instanceof Error ? error.message : String(error), isRetryable: true })
    close()
  }
  let isLeaving = false
  const over = (): boolean => closed || isLeaving || run.phase() === 'ended'
  const parts = createParts(deps, { emit, onFailed, over })
  const { speech, run, caller, opening, announcement, silenceTimer } = parts

  return {
    begin() {
      if (!closed && !isLeaving && !announcement.begin()) opening.at(0)
    },
    hear(payload) {
      if (closed) return
      // Whoever was speaking when the last words began is still heard out, as silent from then on.
      caller.hear(announcement.isSaid() && !over() ? samplesOf(payload) : silence)
      speech.tick(caller.at())
      if (over() || caller.busy() || !announcement.isSaid()) return
      opening.at(caller.at())
      silenceTimer.frame()
    },
    interrupt(heard) {
      if (closed) return
      const isUnasked = speech.interrupted(heard)
      if (over()) return
      if (!announcement.isSaid()) return announcement.end()
      if (!isUnasked || caller.busy()) return
      speech.forget()
      run.dispatch({ type: 'interrupted' })
    },
    played(itemId) {
      if (closed || !speech.played(itemId) || isLeaving) return
      if (!announcement.isSaid()) return announcement.end()
      // Who speaks over the end of a line goes on with the next one by that.
      if (!caller.busy() || run.isAsking()) run.dispatch({ type: 'played' })
    },
    ...besideSpeech(deps, parts, over),
    voicemail: deps.voicemail,
    sayLast(text) {
      if (closed || isLeaving) return
      isLeaving = true
      speech.sayLast(text, () => emit({ type: 'finished', nextAction: null }))
    },
    close,
  }
}

/** What comes into the conversation otherwise than by the caller's voice. */
function besideSpeech(deps: SessionDeps, parts: ReturnType<typeof createParts>, over: () => boolean) {
  const { caller, keypad, speech, opening, silenceTimer, held, run } = parts
  return {
    dtmf(digit) {
      if (over() || opening.waits()) return
      silenceTimer.renew()
      keypad.press(digit)
    },
    say(text) {
      if (!over() && text.trim() !== '') speech.add(text, caller.busy() || opening.waits())
    },
    toolResult(id, _name, result) {
      if (over()) return
      if (caller.busy() || opening.waits()) held.hold(id, result)
      else run.dispatch({ type: 'tool_result', id, result })
    },
    instruct: () => deps.tellOnce?.('the embedded engine follows scripts and cannot follow instructions'),
  } satisfies Partial<EngineSession>
}

type Shared = { emit(event: EngineEvent): void; onFailed(error: unknown): void; over(): boolean }

function createParts(deps: SessionDeps, { emit, onFailed, over }: Shared) {
  const { memory, history, understandingFor, greetingUnderstanding } = deps
  const sessionId = randomUUID().slice(0, 8)
  const goesOn = memory !== null || history.length > 0
  const isOwed = history.length === 0 || deps.owesReply
  const speech = createAgentSpeech({ ...deps, itemPrefix: `item-${sessionId}-`, emit, onFailed })
  const setting = { ...deps.setting, idPrefix: `${sessionId}-` }
  const run = createScriptRun({ ...deps, setting, speech, emit, onKeys: (keys) => keypad.took(keys) })
  const held = createHeldResults(run)
  const opening = createOpening(goesOn ? 0 : deps.firstSpeech, () => {
    run.dispatch({ type: 'opened', isOwed })
    held.release()
  })
  const announcement = createAnnouncement({ text: goesOn ? null : deps.announcement, speech, emit }, () =>
    opening.at(0),
  )
  const silenceTimer = createSilenceTimer(run, speech)
  const caller = createCallerUtterances({
    ...deps,
    expected: () => ({
      step: run.step(),
      understanding: opening.waits() ? greetingUnderstanding() : understandingFor(run.expected()),
    }),
    onStarted(at) {
      emit({ type: 'user_speech_started', at })
      speech.fallSilent(at)
    },
    onPartial: (text, from, to) => emit({ type: 'user_text', text, isFinal: false, confidence: null, from, to }),
    onStopped: (at) => emit({ type: 'user_speech_stopped', at }),
    onHeard(heard) {
      silenceTimer.renew()
      emit(finalTextOf(heard))
      if (over()) return keypad.flush()
      if (!opening.begin()) reactTo(heard, run, speech)
      if (caller.busy()) return
      keypad.flush()
      held.release()
      speech.sayAdded()
    },
  })
  const keypad = createKeypad({ emit, caller, speech, run })
  return { speech, run, caller, keypad, opening, announcement, silenceTimer, held }
}
