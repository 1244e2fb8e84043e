/**
 * Owns the embedded voice engine: it hears and speaks English on this machine, without any provider, and talks as a call script says. Its
 * threads belong to all calls together.
 */
import { availableParallelism } from 'node:os'
import type { CallWarning } from '../../../model/call.ts'
import type { Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import { EngineRefusal, type EngineConfig, type VoiceEngine } from '../../../model/voice-engine.ts'
import { createNotices } from '../notices.ts'
import { todayOf } from '../../script/today.ts'
import { voicemailMessageOf } from '../../script/voicemail-message.ts'
import { valuesOf } from '../../script/fill-in.ts'
import type { FliteVoice } from './flite.ts'
import { understandingOf, type Understanding } from './grammar.ts'
import { createAttending } from './attending.ts'
import { assumedGreeting, assumedUnderstandings, createAssumedRecognition } from './assumed-recognition.ts'
import { scriptedDetector, withScriptedCaller } from './scripted-caller.ts'
import { createRecognition, type Recognition } from './recognition.ts'
import { answeringMachinePhrases, answeringMachineTextOf } from './answering-machine.ts'
import { phrasesOf, type Meaning } from '../../script/phrases.ts'
import { readPronunciations, type Pronounce } from './pronunciations.ts'
import { hasStatements } from '../../script/notation.ts'
import { closingScript, parseScript, type Script } from '../../script/script.ts'
import { shortenedState } from '../../script/dialogue/shortened-state.ts'
import { sentencesOf } from '../../english/sentences.ts'
import { createSession } from './session.ts'
import { createSynthesiser, defaultVoice, voiceOf } from './synthesiser.ts'
import { vocabularyOf } from './vocabulary.ts'
import { createUnderstandings, type Understandings } from './understanding.ts'
import { createVoiceDetectors, type VoiceDetector } from '../../../media/vad/voice-detector.ts'

export type EmbeddedEngine = VoiceEngine & {
  /** Speaks lines before they are needed, so that calls begin at once. */
  warm(texts: readonly string[], voice?: string): Promise<void>
  /** Any text as 16-bit sound at 16 kHz: what a synthetic caller says. */
  speak(text: string, voice?: string): Promise<Int16Array>
}

type Deps = {
  readonly log: Log
  readonly clock: Clock
  /** Recognition threads; there is one synthesis thread besides, and one that takes dictation when it is needed. */
  readonly threads?: number
  readonly hearing?: HearingLevel
  /** Instructions that are written in statements of call scripts are followed as one. */
  readonly followsInstructions?: boolean
  /** Ms without work after which threads are ended until the next session. */
  readonly restAfter?: number | undefined
}

/**
 * `fsg`: what callers say is recognised by grammars. The others are for load tests: `vad` hears that somebody speaks and assumes what they say,
 * `script` does not listen at all and answers every question itself.
 */
export type HearingLevel = 'fsg' | 'vad' | 'script'

/** What a session hears with. */
type Listening = {
  readonly recognition: Recognition
  readonly understandings: Understandings
  readonly greeting: Understanding<Meaning>
  createDetector(): VoiceDetector
  close(): Promise<void>
}

const format = { encoding: 'pcm16', rateHz: 16000 } as const
const maxErrorsTold = 5
/** That hear: 40 MB each, for four who speak at the same time. */
const mostThreads = 8

const notFollowed: CallWarning = {
  type: 'INSTRUCTIONS_NOT_FOLLOWED',
  message: 'The embedded voice engine follows the call script and cannot follow instructions.',
}
const noScript = 'Hello. No call script has been set for this line, so there is nothing I can do for you yet. Goodbye.'
const promptOnly =
  'Hello, and thank you for calling. I am an automated voice that follows written scripts only, and there is none for this call. Goodbye.'

/** Resolves when all threads are ready: about a second. */
export async function createEmbeddedEngine(deps: Deps): Promise<EmbeddedEngine> {
  const { log, clock, restAfter, hearing: level = 'fsg' } = deps
  const pronounce = await readPronunciations()
  await using closing = new AsyncDisposableStack()
  const opening = [
    openListening(deps, level, pronounce).then((listening) => closing.adopt(listening, () => listening.close())),
    createSynthesiser({ clock, log, restAfter }).then((speech) => closing.adopt(speech, () => speech.close())),
  ] as const
  await Promise.allSettled(opening)
  const [{ recognition, understandings, greeting, createDetector }, synthesiser] = await Promise.all(opening)
  const tellOnce = createNotices(log)
  const owned = closing.move()

  return {
    name: 'embedded',
    hears: [format],
    speaks: [format],
    ...(!deps.followsInstructions && { ignoresWhispers: true as const }),
    async open(given, emit) {
      if (owned.disposed) throw new EngineRefusal('the embedded engine is closed', false)
      refuseLanguage(given.language)
      synthesiser.wake()
      const config = deps.followsInstructions ? withScriptOf(given) : given
      if (config.instructions !== null) emit({ type: 'warned', warning: notFollowed })
      const today = todayOf(clock.now(), config)
      const script = scriptOf(config, { pronounce, tellOnce, log })
      const start = (emitted: typeof emit) =>
        createSession({
          recognition,
          synthesiser,
          detector: createDetector(),
          voice: chosenVoice(config, log),
          setting: { script, values: valuesOf(config), today },
          memory: config.memory,
          history: config.history,
          owesReply: config.owesReply,
          rest: config.brokenOff?.rest ?? null,
          unheardMs: config.unheardMs ?? 0,
          bridges: config.bridges === true,
          announcement: announcementOf(config),
          voicemail: voicemailMessageOf(config),
          firstSpeech: config.direction === 'outbound' ? config.worker.firstSpeechTimeout * 1000 : 0,
          understandingFor: (expected) => understandings.understandingFor(expected, today),
          greetingUnderstanding: () => greeting,
          tellOnce,
          notFollowed,
          emit: emitted,
        })
      const session = level === 'script' ? withScriptedCaller(start, emit) : start(emit)
      // Not before the session is in the caller's hands.
      setImmediate(() => session.begin())
      return session
    },
    async attend({ language }, emit) {
      if (owned.disposed) throw new EngineRefusal('the embedded engine is closed', false)
      refuseLanguage(language)
      const anything = { slot: { kind: 'free' }, intents: [], confirming: false, dictate: true } as const
      const understanding = understandings.understandingFor(anything, '')
      return createAttending({ recognition, detector: createDetector(), understanding, emit })
    },
    shorten: shortenedState,
    async warm(texts, voice) {
      for (const sentence of texts.flatMap(sentencesOf))
        await synthesiser.sentence(sentence, voiceOf(voice) ?? defaultVoice)
    },
    speak: (text, voice) => synthesiser.speak(text, voice),
    close: () => owned.disposeAsync(),
  }
}

async function openListening(deps: Deps, level: HearingLevel, pronounce: Pronounce): Promise<Listening> {
  const { log, clock, threads = Math.min(mostThreads, availableParallelism()) } = deps
  const detectors = await createVoiceDetectors()
  const createDetector = level === 'script' ? () => scriptedDetector : detectors
  if (level !== 'fsg') {
    const recognition = createAssumedRecognition()
    const { close } = recognition
    return { recognition, understandings: assumedUnderstandings, greeting: assumedGreeting, createDetector, close }
  }
  const recognition = await createRecognition({ clock, log, threads, restAfter: deps.restAfter })
  const find = (words: readonly string[], isKnown: (word: string) => boolean) => {
    const text = answeringMachineTextOf(words, isKnown)
    return text === null ? null : { text, meaning: null }
  }
  const greeting = understandingOf(phrasesOf([]), pronounce, { spotting: { phrases: answeringMachinePhrases, find } })
  return {
    recognition,
    understandings: createUnderstandings(pronounce),
    greeting,
    createDetector,
    close: recognition.close,
  }
}

/** Prose stays what it is: read aloud, a prompt would be the agent's words. */
function withScriptOf(config: EngineConfig): EngineConfig {
  const { instructions } = config
  return instructions !== null && hasStatements(instructions)
    ? { ...config, script: instructions, instructions: null }
    : config
}

function refuseLanguage(language: string): void {
  if (/^en(-|$)/i.test(language) || language === '') return
  throw new EngineRefusal(`the embedded voice speaks and understands English only, not "${language}"`, false)
}

function chosenVoice({ worker }: EngineConfig, log: Log): FliteVoice {
  const voice = voiceOf(worker.voiceId)
  if (voice === null && worker.voiceId !== undefined)
    log.warn('the embedded engine has no such voice and takes its own', { voiceId: worker.voiceId })
  return voice ?? defaultVoice
}

/** Said on answer of an inbound call. docs/contract/rest.md "Worker configuration". */
function announcementOf({ direction, worker }: EngineConfig): string | null {
  const { inboundStaticMessageEnabled, inboundStaticMessageText } = worker
  return direction === 'inbound' && inboundStaticMessageEnabled ? (inboundStaticMessageText ?? null) : null
}

type Reading = { readonly pronounce: Pronounce; readonly log: Log; tellOnce(message: string): void }

/** Throws with the first errors of a script that is not fit for a call. */
function scriptOf(config: EngineConfig, { pronounce, tellOnce, log }: Reading): Script {
  if (config.instructions !== null) tellOnce('the embedded engine follows scripts and cannot follow instructions')
  if (config.script === null || config.script.trim() === '')
    return closingScript(config.instructions === null ? noScript : promptOnly)
  const nextActions = config.worker.nextActions?.map((action) => action.key)
  const options = { vocabulary: vocabularyOf(pronounce), tools: config.tools, ...(nextActions && { nextActions }) }
  const { script, errors, warnings } = parseScript(config.script, options)
  const [told, warned] = [errors, warnings].map((problems) =>
    problems.slice(0, maxErrorsTold).map(({ line, message }) => `line ${line}: ${message}`),
  )
  if (warnings.length > 0) log.warn('a call script cannot be followed everywhere', { problems: warned })
  if (errors.length === 0) return script
  throw new EngineRefusal(`the call script cannot be followed: ${told?.join('; ')}`, false)
}
