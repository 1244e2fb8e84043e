/**
 * Owns one call of the embedded engine: what the caller says goes into the script, what the script wants is said. The agent speaks first on an
 * inbound call; on an outbound one the callee may answer the telephone first. Everything that waits counts frames of the caller's line, not a clock.
 */
import { randomUUID } from 'node:crypto'
import type { CallWarning } from '../../../model/call.ts'
import { frameMs, samplesOf } from '../../../model/frame.ts'
import type { Json } from '../../../model/json.ts'
import type { ToolResult } from '../../../model/tool.ts'
import type { EngineEvent, EngineSession, Said } from '../../../model/voice-engine.ts'
import { initialState } from '../../script/dialogue/dialogue-state.ts'
import type { Setting } from '../../script/dialogue/dialogue-turn.ts'
import type { Expected } from '../../script/expected.ts'
import type { Meaning } from '../../script/phrases.ts'
import { createCallerActivity } from '../../../media/vad/caller-activity.ts'
import { createOwnEcho } from '../../../media/vad/own-echo.ts'
import type { VoiceDetector } from '../../../media/vad/voice-detector.ts'
import { createAgentSpeech, type AgentSpeech } from './agent-speech.ts'
import { createCallerUtterances, type Heard } from './caller-utterances.ts'
import { finalTextOf } from './final-text.ts'
import type { FliteVoice } from './flite.ts'
import type { Understanding } from './grammar.ts'
import { createKeypad } from './keypad.ts'
import { understandTyped } from './typed-words.ts'
import type { Recognition } from './recognition.ts'
import { createScriptRun } from './script-run.ts'
import type { Synthesiser } from './synthesiser.ts'

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
  /** What was still to be said when the agent was broken off by the loss of its process; null: it was not. */
  readonly rest: string | null
  /** Ms of what was said before that are still being played. */
  readonly unheardMs: number
  /** It goes on in place of another engine's, and says so before its script. */
  readonly bridges: boolean
  /** Said word for word before anything else, and not again by a session that goes on; null: nothing. */
  readonly announcement: string | null
  /** For an answering machine; null: nothing. */
  readonly voicemail: string | null
  /** How long the caller may speak first, ms. */
  readonly firstSpeech: number
  understandingFor(expected: Expected): Understanding<Meaning>
  /** For the first words of who takes an outbound call: whatever they are, the agent begins after them. */
  greetingUnderstanding(): Understanding<Meaning>
  /** Told to who asks for it in the middle of a call. */
  readonly notFollowed?: CallWarning
  /** A word to the operator, once. */
  tellOnce?(message: string): void
  emit(event: EngineEvent): void
}

const rateHz = 16_000
const silence = new Int16Array(320)
/** A script begins anew behind it: where the other engine was in it nobody knows. */
const bridge = 'I am sorry, the line was interrupted for a moment.'
/** Results of tools that come while the caller speaks. */
const maxHeld = 16
/** Texts that are typed while the caller speaks, or before the agent listens. */
const maxTyped = 8
/** Shorter speech that is not understood is a backchannel while nothing is asked, ms. */
const shortestAnswer = 700
/** A cough over the agent's words is heard as a "nope" of less than this. */
const sureNo = 0.7

export function createSession(deps: SessionDeps): EngineSession & { begin(): void } {
  const id = randomUUID().slice(0, 8)
  const { memory, history } = deps
  const goesOn = memory !== null || history.length > 0
  const announcement = (goesOn ? (deps.bridges ? bridge : null) : deps.announcement) ?? ''
  let closed = false
  /** The last words are being said. */
  let isLeaving = false
  /** The line is closed: what the caller said still counts, and nobody hears an answer to it. */
  let isHungUp = false
  /** The announcement, if there is one, has been heard: before that nobody is listened to. */
  let isAnnounced = announcement.trim() === ''
  /** The dialogue has begun, with the agent's first line or after the caller's first words. */
  let isOpened = false
  /** Ms of the caller's line in which nothing has happened. */
  let quiet = -deps.unheardMs
  /** The step over which a short sound was passed over. */
  let coughedAt: number | null = null
  const echo = createOwnEcho(rateHz)
  const held: { readonly id: string; readonly result: ToolResult }[] = []
  const typed: string[] = []

  const emit = (event: EngineEvent): void => {
    if (closed) return
    if (event.type === 'audio') echo.says(samplesOf(event.payload))
    deps.emit(event)
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
  const over = (): boolean => closed || isLeaving || run.phase() === 'ended'

  const open = (): void => {
    isOpened = true
    const rest = run.phase() === 'speaking' || run.phase() === 'ended' ? deps.rest?.trim() : ''
    if (rest) speech.say(rest, () => run.phase() === 'ended' && run.dispatch({ type: 'opened' }))
    else run.dispatch({ type: 'opened', isOwed: history.length === 0 || deps.owesReply })
    releaseResults()
    hearTyped()
  }
  /** What was typed is heard without doubt, once nobody speaks. */
  const hearTyped = (): void => {
    while (typed.length > 0 && isOpened && !over() && !caller.busy()) {
      const at = caller.at()
      const understood = understandTyped(typed.shift()!, deps.understandingFor(run.expected()))
      emit({ type: 'user_speech_started', at })
      speech.fallSilent(at)
      emit({ type: 'user_speech_stopped', at })
      quiet = 0
      emit(finalTextOf({ ...understood, step: run.step(), from: at, to: at }))
      // It is as long as an answer: nobody types a cough.
      reactTo({ ...understood, step: run.step(), from: at, to: at + shortestAnswer })
    }
  }
  /** The agent's first line comes when the time of the caller's first words is over. */
  const openAt = (ms: number): void => {
    if (!isOpened && ms >= (goesOn ? 0 : deps.firstSpeech)) open()
  }
  const endAnnouncement = (): void => {
    isAnnounced = true
    openAt(0)
  }
  /** The caller's words come first: they may be what the tool is left for. */
  const releaseResults = (): void => {
    for (const { id: call, result } of held.splice(0)) run.dispatch({ type: 'tool_result', id: call, result })
  }
  /** 20 ms in which the caller was silent: a missing answer, and a slow tool, are not waited for longer than their limit. */
  const countSilence = (): void => {
    const limit = run.silenceLimit()
    quiet = limit === null || speech.speaking() ? 0 : quiet + frameMs
    if (limit === null || quiet < limit) return
    quiet = 0
    run.dispatch({ type: 'silence' })
  }
  /** An answer goes to the script; after a backchannel the agent goes on. */
  const reactTo = (heard: Heard): void => {
    const { meaning, confidence, step } = heard
    if (isBackchannel(heard, run.isAsking())) {
      if (!isHungUp && !speech.goOn() && run.phase() === 'speaking') run.dispatch({ type: 'played' })
      return
    }
    // A cough over a question: it is asked on, once.
    if (!isHungUp && meaning === null && isShort(heard) && step === run.step() && step !== coughedAt && speech.goOn()) {
      coughedAt = step
      return
    }
    speech.forget()
    // The answer to a question that is over is none.
    const isAnswer = meaning?.kind === 'choice' || meaning?.kind === 'value' || meaning?.kind === 'free'
    if (isAnswer && step !== run.step()) return
    run.dispatch({ type: 'heard', meaning, confidence })
  }

  const speech = createAgentSpeech({ ...deps, itemPrefix: `item-${id}-`, emit, onFailed })
  const setting = { ...deps.setting, idPrefix: `${id}-` }
  const lines: Pick<AgentSpeech, 'say'> = {
    say(text, onSaid) {
      if (isHungUp) onSaid()
      else speech.say(text, onSaid)
    },
  }
  const run = createScriptRun({ ...deps, setting, speech: lines, emit, onKeys: (keys) => keypad.took(keys) })
  const caller = createCallerUtterances({
    ...deps,
    activity: createCallerActivity(deps.detector, echo),
    expected: () => ({
      step: run.step(),
      isHeldBack: isOpened,
      understanding: isOpened ? deps.understandingFor(run.expected()) : deps.greetingUnderstanding(),
    }),
    onStarted(at) {
      emit({ type: 'user_speech_started', at })
      speech.fallSilent(at)
    },
    onPartial(text, meaning, from, to) {
      const notes = isOpened && run.isAsking() ? run.notesOf(meaning) : []
      const words = { type: 'user_text', text, isFinal: false, confidence: null, from, to } as const
      emit({ ...words, ...(notes.length > 0 && { notes }) })
    },
    onStopped: (at) => emit({ type: 'user_speech_stopped', at }),
    onHeard(heard) {
      quiet = 0
      emit(finalTextOf(heard))
      if (over()) return keypad.flush()
      if (isOpened) reactTo(heard)
      else if (!isHungUp) open()
      if (caller.busy()) return
      keypad.flush()
      if (isHungUp) return
      releaseResults()
      hearTyped()
      speech.sayAdded()
    },
  })
  const keypad = createKeypad({ emit, caller, speech, run })

  const notFollowing = (): void => {
    deps.tellOnce?.('the embedded engine follows scripts and cannot follow instructions')
    if (deps.notFollowed) emit({ type: 'warned', warning: deps.notFollowed })
  }
  return {
    begin() {
      if (closed || isLeaving) return
      if (isAnnounced) return openAt(0)
      // That it was said is remembered with its own turn, which is written when it has been heard.
      emit({ type: 'memory', memory: initialState })
      speech.say(announcement, () => undefined)
    },
    hear(payload) {
      if (closed || isHungUp) return
      // Whoever was speaking when the last words began is still heard out, as silent from then on.
      caller.hear(isAnnounced && !over() ? samplesOf(payload) : silence)
      speech.tick(caller.at())
      if (over() || caller.busy() || !isAnnounced) return
      openAt(caller.at())
      countSilence()
    },
    interrupt(heard) {
      if (closed) return
      echo.cut()
      const isUnasked = speech.interrupted(heard)
      if (over()) return
      if (!isAnnounced) return endAnnouncement()
      if (!isUnasked || caller.busy()) return
      speech.forget()
      run.dispatch({ type: 'interrupted' })
    },
    played(itemId) {
      if (closed || !speech.played(itemId) || isLeaving) return
      if (!isAnnounced) return endAnnouncement()
      // A caller who speaks over the end of a line goes on with the next one by that.
      if (!caller.busy() || run.isAsking()) run.dispatch({ type: 'played' })
    },
    dtmf(digit) {
      if (over() || !isOpened) return
      quiet = 0
      keypad.press(digit)
    },
    typed(text) {
      if (typed.length < maxTyped) typed.push(text)
      hearTyped()
    },
    say(text) {
      if (!over() && text.trim() !== '') speech.add(text, caller.busy() || !isOpened)
    },
    toolResult(call, _name, result) {
      if (over()) return
      if (!caller.busy() && isOpened) return run.dispatch({ type: 'tool_result', id: call, result })
      if (held.length < maxHeld) held.push({ id: call, result })
    },
    instruct: notFollowing,
    // Who whispers is refused before, where the process that is asked knows the engine: docs/supervision.md.
    whisper: notFollowing,
    // Where it is in its script no words can change: docs/limits.md "Voices".
    recall: () => undefined,
    voicemail: deps.voicemail,
    sayLast(text) {
      if (closed || isLeaving) return
      isLeaving = true
      speech.sayLast(text, () => emit({ type: 'finished', nextAction: null }))
    },
    async hearOut() {
      if (closed || isHungUp) return
      isHungUp = true
      speech.close()
      await caller.hearOut()
      // No more keys come.
      if (!over() && run.isPressing()) run.dispatch({ type: 'silence' })
    },
    close,
  }
}

/** Noise; and while nothing is asked, "okay", "uh-huh", "hello?" or a short sound. Such a caller did not want to interrupt. */
function isBackchannel(heard: Heard, isAsked: boolean): boolean {
  const { meaning, isNoise } = heard
  if (isNoise) return true
  if (isAsked) return false
  if (meaning === null) return isShort(heard)
  if (meaning.kind !== 'request') return false
  return ['yes', 'nod', 'hello'].includes(meaning.request) || (meaning.request === 'no' && heard.confidence < sureNo)
}

const isShort = ({ from, to }: Heard): boolean => to - from < shortestAnswer
