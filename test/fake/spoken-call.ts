/**
 * Owns a call with a voice engine, without a telephone: the test speaks with a synthetic voice, faster than life, and plays what the agent says
 * when it likes. Time on the line is what was fed.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { bytesOf } from '../../model/frame.ts'
import type { EngineConfig, EngineEvent, EngineSession, VoiceEngine } from '../../model/voice-engine.ts'
import { toId } from '../../model/ids.ts'

const frameSamples = 320

export const callConfig = (changes: Partial<EngineConfig> = {}): EngineConfig => ({
  callId: toId<'call'>('01980000-0000-7000-8000-000000000001') ?? ('' as never),
  direction: 'inbound',
  language: 'en-US',
  worker: { ringTimeout: 30, firstSpeechTimeout: 4, recordingChannelMode: 'mixed', voiceId: 'rms' },
  script: null,
  instructions: null,
  context: null,
  customer: null,
  memory: null,
  ...changes,
})

export type SpokenCall = {
  readonly session: EngineSession
  readonly events: EngineEvent[]
  /** The first event that fits, from the ones not yet waited for; what came before it counts as seen. */
  next<Type extends EngineEvent['type']>(
    type: Type,
    fits?: (event: Extract<EngineEvent, { type: Type }>) => boolean,
  ): Promise<Extract<EngineEvent, { type: Type }>>
  /** The agent's next utterance, complete. */
  agent(): Promise<{ readonly itemId: string; readonly text: string }>
  /** The same, and it has been heard. */
  agentHeard(): Promise<string>
  /** Ms of sound that an item has had so far. */
  soundOf(itemId: string): number
  silence(ms: number): Promise<void>
  /** Speech and enough silence after it. */
  say(speech: Int16Array): Promise<void>
}

export async function openSpokenCall(engine: VoiceEngine, config: EngineConfig): Promise<SpokenCall> {
  const events: EngineEvent[] = []
  const looking = new Set<() => void>()
  let seen = 0
  const session = await engine.open(config, (event) => {
    events.push(event)
    for (const look of looking) look()
  })

  const next: SpokenCall['next'] = (type, fits = () => true) =>
    new Promise((resolve) => {
      const look = (): void => {
        for (let index = seen; index < events.length; index++) {
          const event = events[index] as Extract<EngineEvent, { type: typeof type }>
          if (event.type !== type || !fits(event)) continue
          seen = index + 1
          looking.delete(look)
          return resolve(event)
        }
      }
      looking.add(look)
      look()
    })
  const feed = async (samples: Int16Array): Promise<void> => {
    for (let at = 0; at < samples.length; at += frameSamples) {
      const frame = new Int16Array(frameSamples)
      frame.set(samples.subarray(at, at + frameSamples))
      session.hear(bytesOf(frame))
      if (at % (frameSamples * 10) === 0) await turn()
    }
  }
  const agent = async (): Promise<{ itemId: string; text: string }> => {
    const { itemId, text } = await next('agent_text')
    await next('item_done', (event) => event.itemId === itemId)
    return { itemId, text }
  }
  return {
    session,
    events,
    next,
    agent,
    async agentHeard() {
      const { itemId, text } = await agent()
      session.played(itemId)
      return text
    },
    soundOf: (itemId) =>
      events.reduce(
        (ms, event) => ms + (event.type === 'audio' && event.itemId === itemId ? event.payload.length / 32 : 0),
        0,
      ),
    silence: (ms) => feed(new Int16Array(ms * 16)),
    async say(speech) {
      await feed(speech)
      await feed(new Int16Array(900 * 16))
    },
  }
}
