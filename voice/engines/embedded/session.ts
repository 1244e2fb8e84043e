/**
 * Owns one call of the embedded engine: what the caller says goes into the script, what the script wants is said. The agent speaks first on an
 * inbound call; on an outbound one it lets the callee answer the telephone. Everything that waits counts frames of the caller's line, not a clock.
 */
import { frameMs, samplesOf } from '../../../model/frame.ts'
import type { Json } from '../../../model/json.ts'
import type { EngineEvent, EngineSession } from '../../../model/voice-engine.ts'
import { createAgentMouth, type AgentMouth } from './agent-mouth.ts'
import { createCallerEar, type CallerEar, type Heard } from './caller-ear.ts'
import { initialState, type Setting } from './dialogue.ts'
import type { FliteVoice } from './flite.ts'
import type { Understanding } from './grammar.ts'
import type { Hearing } from './hearing.ts'
import type { Choice, Meaning } from './phrases.ts'
import { createScriptRun, type ScriptRun } from './script-run.ts'
import type { Speaker } from './speaker.ts'
import type { VoiceDetector } from './voice-detector.ts'

export type SessionDeps = {
  readonly hearing: Hearing
  readonly speaker: Speaker
  readonly detector: VoiceDetector
  readonly voice: FliteVoice
  readonly setting: Setting
  /** Items of two sessions have different names. */
  readonly itemPrefix: string
  readonly memory: Json
  /** Said word for word before anything else, and not again by a session that goes on; null: nothing. */
  readonly announcement: string | null
  /** How long the caller may speak first, ms. */
  readonly firstSpeech: number
  understandingOf(choices: readonly Choice[]): Understanding<Meaning>
  /** For the first words of who takes an outbound call: whatever they are, the agent begins after them. */
  greetingUnderstanding(): Understanding<Meaning>
  /** It was given instructions. */
  cannotFollow(): void
  emit(event: EngineEvent): void
}

/** Silence after a question that is a missing answer, ms of the caller's line. */
const noInput = 6000
const maxBesides = 16
/** Stands in a transcript for speech that was not understood. */
const unclear = '[unclear]'
const silence = new Int16Array(320)

export function createSession(deps: SessionDeps): EngineSession & { begin(): void } {
  let closed = false
  const emit = (event: EngineEvent): void => {
    if (!closed) deps.emit(event)
  }
  const close = (): void => {
    closed = true
    mouth.close()
    ear.close()
  }
  const onFailed = (error: unknown): void => {
    emit({ type: 'failed', details: error instanceof Error ? error.message : String(error), isRetryable: true })
    close()
  }
  const mouth = createAgentMouth({ ...deps, emit, onFailed })
  const run = createScriptRun({ ...deps, mouth, emit })
  const opening = createOpening(deps.memory === null ? deps.firstSpeech : 0, () => run.dispatch({ type: 'opened' }))
  const announcement = createAnnouncement({ ...deps, mouth, emit }, () => opening.at(0))
  const patience = createPatience(run)
  const ear = openEar({ deps, emit, mouth, run, opening, patience })
  const besides = createBesides(mouth)
  const over = (): boolean => closed || run.phase() === 'ended'

  return {
    begin() {
      if (!closed && !announcement.begin()) opening.at(0)
    },
    hear(payload) {
      if (over()) return
      ear.hear(announcement.isSaid() ? samplesOf(payload) : silence)
      mouth.tick(ear.at())
      if (ear.busy() || !announcement.isSaid()) return
      opening.at(ear.at())
      patience.frame()
    },
    interrupt() {
      if (!announcement.isSaid()) {
        mouth.interrupted()
        return announcement.end()
      }
      if (!over() && mouth.interrupted() && !ear.busy()) run.dispatch({ type: 'interrupted' })
    },
    played(itemId) {
      if (closed || !mouth.played(itemId)) return
      if (!announcement.isSaid()) return announcement.end()
      if (besides.next()) return
      // Who speaks over the end of a line goes on with the next one by that.
      if (!ear.busy() || run.choices().length > 0) run.dispatch({ type: 'played' })
    },
    dtmf(digit) {
      if (over() || opening.waits()) return
      if (mouth.speaking()) interruptedByKey({ emit, ear, mouth })
      patience.renew()
      run.dispatch({ type: 'dtmf', digit })
    },
    say: (text) => (over() ? undefined : besides.say(text)),
    // Scripts call no tools.
    toolResult: () => {},
    instruct: () => deps.cannotFollow(),
    close,
  }
}

type Parts = {
  readonly deps: SessionDeps
  readonly mouth: AgentMouth
  readonly run: ScriptRun
  readonly opening: ReturnType<typeof createOpening>
  readonly patience: ReturnType<typeof createPatience>
  emit(event: EngineEvent): void
}

function openEar({ deps, emit, mouth, run, opening, patience }: Parts): CallerEar {
  return createCallerEar({
    ...deps,
    expected: () => ({
      step: run.step(),
      understanding: opening.waits() ? deps.greetingUnderstanding() : deps.understandingOf(run.choices()),
    }),
    onStarted(at) {
      emit({ type: 'user_speech_started', at })
      mouth.fallSilent(at)
    },
    onPartial: (text, from, to) => emit({ type: 'user_text', text, isFinal: false, confidence: null, from, to }),
    onStopped: (at) => emit({ type: 'user_speech_stopped', at }),
    onHeard(heard) {
      patience.renew()
      emit(finalTextOf(heard))
      if (!opening.begin()) react(run, heard)
    },
  })
}

/** A key pressed over the agent silences it, as a word does. */
function interruptedByKey({ emit, ear, mouth }: Pick<Parts, 'emit' | 'mouth'> & { readonly ear: CallerEar }): void {
  const at = ear.at()
  emit({ type: 'user_speech_started', at })
  emit({ type: 'user_speech_stopped', at })
  emit({ type: 'user_text', text: '', isFinal: true, confidence: null, from: at, to: at })
  mouth.fallSilent(at)
}

/** Lines besides the script, each said after what is being said. */
function createBesides(mouth: AgentMouth) {
  const waiting: string[] = []
  return {
    say(text: string): void {
      if (!mouth.speaking()) mouth.say(text, () => {})
      else if (waiting.length < maxBesides) waiting.push(text)
    },
    /** True when there was one. */
    next(): boolean {
      const text = waiting.shift()
      if (text !== undefined) mouth.say(text, () => {})
      return text !== undefined
    },
  }
}

function react(run: ScriptRun, { meaning, isNoise, step }: Heard): void {
  // Noise while the agent listens is no answer, and neither is the answer to a question that is over.
  if (isNoise && run.phase() === 'listening') return
  if (meaning?.kind === 'choice' && step !== run.step()) return
  run.dispatch({ type: 'heard', meaning })
}

function finalTextOf({ text, isNoise, confidence, from, to }: Heard): EngineEvent {
  const known = text === '' && !isNoise ? unclear : text
  return { type: 'user_text', text: known, isFinal: true, confidence, from, to }
}

/**
 * Every word of it is to be heard: nobody is listened to until it has been played, so that neither noise nor speech cuts it off. That it was
 * said is remembered with its own turn, which is written when it has been heard.
 */
function createAnnouncement(
  deps: Pick<SessionDeps, 'announcement' | 'memory' | 'emit'> & { readonly mouth: AgentMouth },
  goOn: () => void,
) {
  const { announcement: text, mouth } = deps
  let isSaid = deps.memory !== null || text === null || text.trim() === ''
  return {
    isSaid: () => isSaid,
    /** True when there is something to say. */
    begin(): boolean {
      if (isSaid || text === null) return false
      deps.emit({ type: 'memory', memory: initialState })
      mouth.say(text, () => {})
      return true
    },
    end(): void {
      isSaid = true
      goOn()
    },
  }
}

/** The agent's first line comes when the time of the caller's first words is over, or after them; once. */
function createOpening(by: number, open: () => void) {
  let waits = true
  const begin = (): boolean => {
    if (!waits) return false
    waits = false
    open()
    return true
  }
  return {
    begin,
    waits: () => waits,
    at(ms: number): void {
      if (ms >= by) begin()
    },
  }
}

/** Counts the silence after a question. */
function createPatience(run: ScriptRun) {
  let silence = 0
  return {
    renew(): void {
      silence = 0
    },
    frame(): void {
      silence = run.phase() === 'listening' ? silence + frameMs : 0
      if (silence < noInput) return
      silence = 0
      run.dispatch({ type: 'silence' })
    },
  }
}
