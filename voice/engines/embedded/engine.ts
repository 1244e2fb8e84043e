/**
 * Owns the embedded voice engine: it hears and speaks English on this machine, without any provider, and talks as a call script says. Its
 * threads belong to all calls together.
 */
import { availableParallelism } from 'node:os'
import type { Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import { EngineRefusal, type EngineConfig, type VoiceEngine } from '../../../model/voice-engine.ts'
import { createNotices } from '../notices.ts'
import { contextOf, type Values } from './fill-in.ts'
import type { FliteVoice } from './flite.ts'
import { understandingOf } from './grammar.ts'
import { createHearing } from './hearing.ts'
import { machinePhrases, machineTextOf } from './machine-phrases.ts'
import { phrasesOf } from './phrases.ts'
import { readPronunciations, type Pronounce } from './pronunciations.ts'
import { parseScript, type Script } from './script.ts'
import { sentencesOf } from './sentences.ts'
import { createSession } from './session.ts'
import { createSpeaker, defaultVoice, voiceOf } from './speaker.ts'
import { createVoiceDetectors } from './voice-detector.ts'

export type EmbeddedEngine = VoiceEngine & {
  /** Speaks lines before they are needed, so that calls begin at once. */
  warm(texts: readonly string[], voice?: string): Promise<void>
  /** Any text as 16-bit sound at 16 kHz: what a synthetic caller says. */
  speak(text: string, voice?: string): Promise<Int16Array>
}

type Deps = {
  readonly log: Log
  readonly clock: Clock
  /** Hearing threads; there is one speaking thread besides. */
  readonly threads?: number
}

const spotting = { phrases: machinePhrases, textOf: machineTextOf }
const format = { encoding: 'pcm16', rateHz: 16000 } as const
const maxErrorsTold = 5

const noInstructions = 'the embedded engine follows scripts and cannot follow instructions'
const noScript = 'Hello. No call script has been set for this line, so there is nothing I can do for you yet. Goodbye.'
const promptOnly =
  'Hello, and thank you for calling. I am an automated voice that follows written scripts only, and there is none for this call. Goodbye.'

/** Resolves when all threads are ready: about a second. */
export async function createEmbeddedEngine(deps: Deps): Promise<EmbeddedEngine> {
  const { log, clock, threads = availableParallelism() > 2 ? 2 : 1 } = deps
  await using closing = new AsyncDisposableStack()
  const hearing = createHearing({ clock, log, threads }).then((opened) => closing.adopt(opened, () => opened.close()))
  const speaker = createSpeaker({ clock, log }).then((opened) => closing.adopt(opened, () => opened.close()))
  await Promise.allSettled([hearing, speaker])
  const parts = { hearing: await hearing, speaker: await speaker }
  const [createDetector, pronounce] = await Promise.all([createVoiceDetectors(), readPronunciations()])
  const tellOnce = createNotices(log)
  const owned = closing.move()
  let sessions = 0

  return {
    name: 'embedded',
    hears: [format],
    speaks: [format],
    async open(config, emit) {
      refuseLanguage(config.language)
      const session = createSession({
        ...parts,
        detector: createDetector(),
        voice: chosenVoice(config, log),
        setting: { script: scriptOf(config, pronounce, tellOnce), values: valuesOf(config) },
        itemPrefix: `item-${++sessions}-`,
        memory: config.memory,
        announcement: announcementOf(config),
        firstSpeech: config.direction === 'outbound' ? config.worker.firstSpeechTimeout * 1000 : 0,
        understandingOf: (choices) => understandingOf(phrasesOf(choices), pronounce),
        greetingUnderstanding: () => understandingOf(phrasesOf([]), pronounce, spotting),
        cannotFollow: () => tellOnce(noInstructions),
        emit,
      })
      // Not before the session is in the caller's hands.
      setImmediate(() => session.begin())
      return session
    },
    async warm(texts, voice) {
      for (const sentence of texts.flatMap(sentencesOf))
        await parts.speaker.sentence(sentence, voiceOf(voice) ?? defaultVoice)
    },
    speak: (text, voice) => parts.speaker.speak(text, voice),
    close: () => owned.disposeAsync(),
  }
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

/** decisions.md, Worker configuration: on answer of an inbound call. */
function announcementOf({ direction, worker }: EngineConfig): string | null {
  const { inboundStaticMessageEnabled, inboundStaticMessageText } = worker
  return direction === 'inbound' && inboundStaticMessageEnabled ? (inboundStaticMessageText ?? null) : null
}

/** Throws with the first errors of a script that is not fit for a call. */
function scriptOf(config: EngineConfig, pronounce: Pronounce, tellOnce: (message: string) => void): Script {
  if (config.instructions !== null) tellOnce(noInstructions)
  if (config.script === null || config.script.trim() === '')
    return closingWords(config.instructions === null ? noScript : promptOnly)
  const nextActions = config.worker.nextActions?.map((action) => action.key)
  const { script, errors } = parseScript(config.script, { pronounce, ...(nextActions && { nextActions }) })
  if (errors.length === 0) return script
  const told = errors.slice(0, maxErrorsTold).map(({ line, message }) => `line ${line}: ${message}`)
  throw new EngineRefusal(`the call script cannot be followed: ${told.join('; ')}`, false)
}

const closingWords = (text: string): Script => ({
  steps: [{ kind: 'end', line: 1, when: null, text, nextAction: null }],
})

const valuesOf = ({ customer, context }: EngineConfig): Values => ({
  customer:
    customer === null
      ? null
      : Object.fromEntries(Object.entries(customer).map(([name, value]) => [name, value ?? null])),
  context: contextOf(context),
})
