/** Owns a voice engine that says what the test says and remembers what it was told. A real implementation of the port, without sound of its own. */
import type { Frame } from '../../model/frame.ts'
import type { AttendEvent, EngineConfig, EngineEvent, VoiceEngine } from '../../model/voice-engine.ts'

export type ScriptedEngine = VoiceEngine & {
  /** Speaks as the engine in the newest session. */
  emit(event: EngineEvent): void
  /** `frames` frames of sound as one utterance, complete. */
  say(itemId: string, text: string, frames: number): void
  /** What the conversation told the engine: `interrupt:item@ms`, `played:item`, `dtmf:1`, `typed:text`, `say:text`, `last:text`, `result:id:name:status`, `instruct:text`, `whisper:text`, `recall:role:text`, `hear out`, `close`. */
  readonly told: string[]
  readonly configs: EngineConfig[]
  heardFrames(): number
  /** Of them those with sound. */
  heardSound(): number
  /** Frames that it only heard. */
  attendedFrames(): number
  /** Tells of who it only hears, of the newest two such sessions; of each it is told `attend`, `attend: hear out` and `attend: close`. */
  tellAttended(event: AttendEvent, who?: 'caller' | 'supervisor'): void
  /** What it still has to say when the line is closed. */
  hearOut?: ((emit: (event: EngineEvent) => void) => Promise<void>) | undefined
}

type Options = {
  readonly failsToOpen?: string
  readonly voicemail?: string
  readonly hearOut?: ScriptedEngine['hearOut']
  /** It can hear without answering. */
  readonly attends?: true
}

export function createScriptedEngine(options: Options = {}): ScriptedEngine {
  const told: string[] = []
  const configs: EngineConfig[] = []
  let heard = 0
  let sound = 0
  let attended = 0
  const attending: ((event: AttendEvent) => void)[] = []
  let emit: (event: EngineEvent) => void = () => {}
  const speak = (event: EngineEvent): void => emit(event)
  const format = { encoding: 'pcm16', rateHz: 16000 } as const
  const engine: ScriptedEngine = {
    name: 'scripted',
    hears: [format],
    speaks: [format],
    told,
    hearOut: options.hearOut,
    configs,
    heardFrames: () => heard,
    heardSound: () => sound,
    attendedFrames: () => attended,
    tellAttended: (event, who = 'caller') => attending.at(who === 'caller' ? -2 : -1)?.(event),
    ...(options.attends && {
      async attend(_: unknown, listener: (event: AttendEvent) => void) {
        told.push('attend')
        attending.push(listener)
        return {
          hear: () => void attended++,
          hearOut: async () => void told.push('attend: hear out'),
          close: () => void told.push('attend: close'),
        }
      },
    }),
    emit: speak,
    say(itemId, text, frames) {
      speak({ type: 'agent_text', itemId, text })
      const payload: Frame['payload'] = new Uint8Array(640 * frames).fill(1)
      speak({ type: 'audio', itemId, payload })
      speak({ type: 'item_done', itemId })
    },
    open(config, listener) {
      if (options.failsToOpen) return Promise.reject(new Error(options.failsToOpen))
      configs.push(config)
      emit = listener
      return Promise.resolve({
        hear(payload) {
          heard++
          if (payload.some((byte) => byte !== 0)) sound++
        },
        interrupt: (item) => void told.push(item ? `interrupt:${item.itemId}@${item.playedMs}` : 'interrupt:nothing'),
        played: (itemId) => void told.push(`played:${itemId}`),
        typed: (text) => void told.push(`typed:${text}`),
        dtmf: (digit) => void told.push(`dtmf:${digit}`),
        say: (text) => void told.push(`say:${text}`),
        voicemail: options.voicemail ?? null,
        sayLast: (text) => void told.push(`last:${text}`),
        toolResult: (id, name, { status }) => void told.push(`result:${id}:${name}:${status}`),
        instruct: (instructions) => void told.push(`instruct:${instructions}`),
        recall: ({ role, text }) => void told.push(`recall:${role}:${text}`),
        whisper: (text) => void told.push(`whisper:${text}`),
        async hearOut() {
          told.push('hear out')
          await engine.hearOut?.(speak)
        },
        close: () => void told.push('close'),
      })
    },
    close: () => Promise.resolve(),
  }
  return engine
}
