/** Owns the engine that talks through OpenAI Realtime. Telephone sound passes through it untouched; other sound has 24 kHz. */
import type { AudioFormat } from '../../../model/frame.ts'
import type { Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import { EngineRefusal, type EngineSession, type VoiceEngine } from '../../../model/voice-engine.ts'
import { openTalk } from '../hosted/talk.ts'
import { createNotices } from '../notices.ts'
import { openOpenAiWire, type Provider } from './wire.ts'

const formats: readonly AudioFormat[] = [
  { encoding: 'pcm16', rateHz: 24000 },
  { encoding: 'pcmu', rateHz: 8000 },
  { encoding: 'pcma', rateHz: 8000 },
]

export function createOpenAiRealtimeEngine(deps: Provider & { readonly log: Log; readonly clock: Clock }): VoiceEngine {
  const { log, clock, ...provider } = deps
  const notices = createNotices(log)
  const sessions = new Set<EngineSession>()
  let closed = false
  return {
    name: 'voice_provider_a',
    hears: formats,
    speaks: formats,
    async open(config, emit) {
      if (config.worker.llmTemperature !== undefined)
        notices('OpenAI Realtime has no temperature: llmTemperature of workers is without effect')
      const talk = await openTalk({
        config,
        openWire: (setup, tell) => openOpenAiWire({ provider, clock, notices, log }, setup, tell),
        log,
        clock,
        speaksWhileToolsRun: true,
        emit(event) {
          if (event.type === 'failed') sessions.delete(talk)
          emit(event)
        },
      })
      if (closed) {
        talk.close()
        throw new EngineRefusal('the engine is closed', false)
      }
      sessions.add(talk)
      return {
        ...talk,
        close() {
          sessions.delete(talk)
          talk.close()
        },
      }
    },
    async close() {
      closed = true
      for (const session of sessions) session.close()
      sessions.clear()
    },
  }
}
