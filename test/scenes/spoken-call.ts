/**
 * Owns a call with a voice engine, without a telephone: the test speaks with a synthetic voice, faster than life, and plays what the agent says
 * when it likes. Time on the line is what was fed.
 */
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import { bytesOf, samplesPerFrame, type AudioFormat } from '../../model/frame.ts'
import type { EngineConfig, EngineEvent, EngineSession, VoiceEngine } from '../../model/voice-engine.ts'
import { toId } from '../../model/ids.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createResampler } from '../../media/pcm/resample.ts'

/** So many looks, 5 ms apart, at which nothing new has come: engines on this machine are quicker. */
const quietTurns = 30
/** The test speaks at 16 kHz, whatever the engine hears. */
const frameSamples = 320
const pcm16 = { encoding: 'pcm16', rateHz: 16000 } as const

export const callConfig = (changes: Partial<EngineConfig> = {}): EngineConfig => ({
  callId: toId<'call'>('01980000-0000-7000-8000-000000000001') ?? ('' as never),
  direction: 'inbound',
  language: 'en-US',
  worker: { ringTimeout: 30, firstSpeechTimeout: 4, recordingChannelMode: 'mixed', voiceId: 'rms' },
  script: null,
  instructions: null,
  context: null,
  customer: null,
  tools: [],
  formats: { hears: pcm16, speaks: pcm16 },
  history: [],
  owesReply: false,
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
  /** Ms fed so far. */
  at(): number
  /** The agent has been heard out: what it says until it has been silent for a moment is played to its end. */
  listens(): Promise<void>
  /** From here on all that the agent says is heard at once; the result tells the items so far. */
  hearEverything(): () => readonly string[]
  /** What is under way on this machine has come: a few turns of the event loop without an event. */
  settled(): Promise<void>
  /** The caller speaks over the item, which is cut off after `playedMs` when the engine hears it (or at the end, when it does not). */
  sayOver(speech: Int16Array, itemId: string, playedMs: number): Promise<void>
  silence(ms: number): Promise<void>
  /** Speech and enough silence after it, or so many ms. */
  say(speech: Int16Array, silence?: number): Promise<void>
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
  const toLine = renderingOf(config.formats.hears)
  const bytesPerMs = bytesPerMsOf(config.formats.speaks)
  let frames = 0
  const feed = async (samples: Int16Array): Promise<void> => {
    for (let at = 0; at < samples.length; at += frameSamples) {
      frames++
      const frame = new Int16Array(frameSamples)
      frame.set(samples.subarray(at, at + frameSamples))
      session.hear(toLine(frame))
      if (at % (frameSamples * 10) === 0) await turn()
    }
  }
  const agent = async (): Promise<{ itemId: string; text: string }> => {
    const { itemId } = await next('agent_text')
    await next('item_done', (event) => event.itemId === itemId)
    // All of its text: what came first was the beginning of it.
    const said = events.findLast((event) => event.type === 'agent_text' && event.itemId === itemId)
    return { itemId, text: said?.type === 'agent_text' ? said.text : '' }
  }
  const hearEverything = (): (() => string[]) => {
    const items: string[] = []
    let looked = 0
    looking.add(() => {
      for (; looked < events.length; looked++) {
        const event = events[looked]!
        if (event.type !== 'item_done') continue
        items.push(event.itemId)
        // Not within the engine's own call: whoever plays sound takes its time.
        setImmediate(() => session.played(event.itemId))
      }
    })
    return () => items
  }
  const settled = async (): Promise<void> => {
    for (let quiet = 0, count = events.length; quiet < quietTurns; quiet = count === events.length ? quiet + 1 : 0) {
      count = events.length
      await pause(5)
    }
  }
  return {
    session,
    events,
    next,
    agent,
    hearEverything,
    settled,
    at: () => frames * 20,
    async listens() {
      for (let unheard = true; unheard;) {
        await settled()
        const item = events.slice(seen).find((event) => event.type === 'agent_text')
        unheard = item !== undefined
        if (item) session.played((await agent()).itemId)
      }
    },
    async sayOver(speech, itemId, playedMs) {
      const heard = next('user_speech_started').then(() => session.interrupt({ itemId, playedMs }))
      await feed(speech)
      await feed(new Int16Array(900 * 16))
      await heard
    },
    async agentHeard() {
      const { itemId, text } = await agent()
      session.played(itemId)
      return text
    },
    soundOf: (itemId) =>
      events.reduce(
        (ms, event) => ms + (event.type === 'audio' && event.itemId === itemId ? event.payload.length / bytesPerMs : 0),
        0,
      ),
    silence: (ms) => feed(new Int16Array(ms * 16)),
    async say(speech, silence = 900) {
      await feed(speech)
      await feed(new Int16Array(silence * 16))
    },
  }
}

const bytesPerMsOf = ({ encoding, rateHz }: AudioFormat): number => (rateHz / 1000) * (encoding === 'pcm16' ? 2 : 1)

/** 20 ms at 16 kHz become 20 ms of the line. */
function renderingOf(format: AudioFormat): (samples: Int16Array) => Uint8Array {
  const resample = format.rateHz === 16_000 ? null : createResampler(16_000, format.rateHz)
  const wide = (samples: Int16Array): Int16Array => {
    if (resample === null) return samples
    const frame = new Int16Array(samplesPerFrame(format))
    frame.set(resample.convert(samples).subarray(0, frame.length))
    return frame
  }
  if (format.encoding === 'pcm16') return (samples) => bytesOf(wide(samples)).slice()
  const law = lawOfEncoding(format.encoding)
  return (samples) => {
    const bytes = new Uint8Array(samplesPerFrame(format))
    law.encode(wide(samples), bytes)
    return bytes
  }
}
