/** Owns the engine that talks through OpenAI Realtime. Telephone sound passes through it untouched; other sound has 24 kHz. */
import type { AudioFormat } from '../../../model/frame.ts'
import type { Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import { EngineRefusal, type EngineSession, type VoiceEngine } from '../../../model/voice-engine.ts'
import { openAttending } from '../hosted/attend.ts'
import { openTalk } from '../hosted/talk.ts'
import type { OpenWire } from '../hosted/wire.ts'
import { createNotices } from '../notices.ts'
import { openOpenAiWire, type Provider } from './wire.ts'

const wide = { encoding: 'pcm16', rateHz: 24000 } as const
const formats: readonly AudioFormat[] = [wide, { encoding: 'pcmu', rateHz: 8000 }, { encoding: 'pcma', rateHz: 8000 }]

export function createOpenAiRealtimeEngine(deps: Provider & { readonly log: Log; readonly clock: Clock }): VoiceEngine {
  const { log, clock, ...provider } = deps
  const notices = createNotices(log)
  const sessions = new Set<Pick<EngineSession, 'close'>>()
  let closed = false
  const openWire: OpenWire = (setup, tell) => openOpenAiWire({ provider, clock, notices, log }, setup, tell)
  /** Throws where the engine was closed meanwhile. The same session, which is closed with the engine. */
  const owned = <Session extends Pick<EngineSession, 'close'>>(session: Session): Session => {
    if (closed) {
      session.close()
      throw new EngineRefusal('the engine is closed', false)
    }
    sessions.add(session)
    return {
      ...session,
      close() {
        sessions.delete(session)
        session.close()
      },
    }
  }
  return {
    name: 'voice_provider_a',
    hears: formats,
    speaks: formats,
    async open(config, emit) {
      if (config.worker.llmTemperature !== undefined)
        notices('OpenAI Realtime has no temperature: llmTemperature of workers is without effect')
      const talk = await openTalk({
        config,
        openWire,
        log,
        clock,
        speaksWhileToolsRun: true,
        emit(event) {
          if (event.type === 'failed') sessions.delete(talk)
          emit(event)
        },
      })
      return owned(talk)
    },
    attend: async (config, emit) =>
      owned(await openAttending({ config, openWire, formats: { hears: wide, speaks: wide }, clock, emit })),
    async close() {
      closed = true
      for (const session of sessions) session.close()
      sessions.clear()
    },
  }
}
