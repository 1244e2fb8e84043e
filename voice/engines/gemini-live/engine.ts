/** Owns the hosted engine over Gemini Live: its sessions, and what they share. */
import type { Clock } from '../../../model/clock.ts'
import type { AudioFormat } from '../../../model/frame.ts'
import type { Log } from '../../../model/log.ts'
import { EngineRefusal, type EngineConfig, type EngineSession, type VoiceEngine } from '../../../model/voice-engine.ts'
import { createVoiceDetectors } from '../../../media/vad/voice-detector.ts'
import { openAttending } from '../hosted/attend.ts'
import { openTalk } from '../hosted/talk.ts'
import type { OpenWire } from '../hosted/wire.ts'
import { createNotices } from '../notices.ts'
import { unfitnessOf } from './live-models.ts'
import { createGeminiWire } from './open-session.ts'
import { shortenedMemory } from './setup.ts'
import { prebuiltVoice } from './voices.ts'

type Deps = {
  /** Of the provider, without a path: wss://generativelanguage.googleapis.com. */
  readonly url: string
  readonly apiKey: string
  readonly model: string
  /** Of workers that name no voice of the provider; null: the provider's own choice. */
  readonly voice: string | null
  readonly log: Log
  readonly clock: Clock
}

const hears: AudioFormat = { encoding: 'pcm16', rateHz: 16000 }
const speaks: AudioFormat = { encoding: 'pcm16', rateHz: 24000 }

export function createGeminiLiveEngine(deps: Deps): VoiceEngine {
  const { log, clock } = deps
  const tellOnce = createNotices(log)
  const sessions = new Set<Pick<EngineSession, 'close'>>()
  const refusedLanguages = new Set<string>()
  const unfitness = unfitnessOf(deps.model)
  if (unfitness !== null) log.error(unfitness)
  let detectors: ReturnType<typeof createVoiceDetectors> | null = null
  let closed = false

  const voiceOf = ({ worker }: EngineConfig): string | null => {
    const voice = worker.voiceId === undefined ? null : prebuiltVoice(worker.voiceId)
    if (voice === null && worker.voiceId !== undefined)
      tellOnce('the provider has no voice of the name that a worker asks for: its usual one speaks')
    return voice ?? deps.voice
  }
  const openWireOf = async (voice: string | null): Promise<OpenWire> => {
    if (unfitness !== null) throw new EngineRefusal(unfitness, false)
    detectors ??= createVoiceDetectors()
    const createDetector = await detectors
    return createGeminiWire({ ...deps, voice, tellOnce, refusedLanguages, createDetector })
  }
  /** The same session, which is closed with the engine. */
  const owned = <Session extends Pick<EngineSession, 'close'>>(session: Session): Session => {
    const close = (): void => {
      sessions.delete(session)
      session.close()
    }
    sessions.add(session)
    if (closed) close()
    return { ...session, close }
  }
  return {
    name: 'voice_provider_b',
    hears: [hears],
    speaks: [speaks],
    async open(config, emit) {
      const openWire = await openWireOf(voiceOf(config))
      const talk = await openTalk({
        config,
        openWire,
        speaksWhileToolsRun: false,
        log,
        clock,
        emit(event) {
          if (event.type === 'failed') sessions.delete(talk)
          emit(event)
        },
      })
      return owned(talk)
    },
    async attend(config, emit) {
      const openWire = await openWireOf(deps.voice)
      return owned(await openAttending({ config, openWire, formats: { hears, speaks }, clock, emit }))
    },
    shorten: shortenedMemory,
    async close() {
      closed = true
      for (const session of sessions) session.close()
      sessions.clear()
    },
  }
}
