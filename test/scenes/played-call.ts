/**
 * Owns an inbound call with a voice engine whose sound is played as a leg would, frame by frame: what the agent says comes out 20 ms at a time, is cut when the
 * caller is heard, and what came out is kept. Faster than life: the line waits for the engine whenever that has something to work out.
 */
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import { bytesOf, samplesOf } from '../../model/frame.ts'
import type { EngineConfig, EngineEvent, EngineSession, VoiceEngine } from '../../model/voice-engine.ts'

/** 20 ms at 16 kHz, of the line and of the agent. */
export const frameSamples = 320
/** So many looks, 5 ms apart, at which nothing new has come: engines on this machine are quicker. */
const quietLooks = 24
/** Root mean square of sound that a caller hears. */
const audible = 60

type Item = { readonly itemId: string; samples: Int16Array; playedMs: number; isDone: boolean }

export type PlayedCall = {
  readonly session: EngineSession
  readonly events: readonly EngineEvent[]
  /** One frame of the caller's line; resolves to the frame that the caller hears meanwhile. */
  frame(line: Int16Array): Promise<Int16Array>
  /** Texts of the agent's items, of those that began to sound. */
  said(): readonly string[]
  close(): void
}

export async function openPlayedCall(engine: VoiceEngine, config: EngineConfig): Promise<PlayedCall> {
  const events: EngineEvent[] = []
  const items: Item[] = []
  const texts = new Map<string, string>()
  const sounded: string[] = []
  let isCut = false
  const session = await engine.open(config, (event) => {
    events.push(event)
    if (event.type === 'agent_text') texts.set(event.itemId, event.text)
    if (event.type === 'audio') add(itemOf(event.itemId), samplesOf(event.payload))
    if (event.type === 'item_done') itemOf(event.itemId).isDone = true
    if (event.type === 'user_speech_started') isCut = true
  })
  const itemOf = (itemId: string): Item => {
    const known = items.find((item) => item.itemId === itemId)
    if (known) return known
    const item = { itemId, samples: new Int16Array(0), playedMs: 0, isDone: false }
    items.push(item)
    return item
  }
  const cut = (): void => {
    const [first] = items.splice(0)
    const heard = first && first.playedMs > 0 ? { itemId: first.itemId, playedMs: first.playedMs } : null
    isCut = false
    session.interrupt(heard)
  }
  const play = (): Int16Array => {
    const [item] = items
    const out = new Int16Array(frameSamples)
    if (item === undefined) return out
    if (item.playedMs === 0 && item.samples.length > 0) sounded.push(texts.get(item.itemId) ?? '')
    const at = item.playedMs * 16
    out.set(item.samples.subarray(at, at + frameSamples))
    if (at < item.samples.length) item.playedMs += 20
    if (item.isDone && item.playedMs * 16 >= item.samples.length) {
      items.shift()
      session.played(item.itemId)
    }
    return out
  }
  const owesText = (): boolean =>
    events.filter(({ type }) => type === 'user_speech_stopped').length >
    events.filter((event) => event.type === 'user_text' && event.isFinal).length
  let settledAt = -1
  /** Nothing is left to work out: texts of what was said have come, and so has what the agent says next. */
  const settled = async (): Promise<void> => {
    while (owesText()) await pause(5)
    if (items.some(({ samples, playedMs }) => samples.length > playedMs * 16) || settledAt === events.length) return
    for (let quiet = 0, count = events.length; quiet < quietLooks && items.length === 0;) {
      await pause(5)
      quiet = count === events.length ? quiet + 1 : 0
      count = events.length
    }
    settledAt = events.length
  }
  let frames = 0
  // The agent speaks first, and nothing of the engine is warm.
  while (!events.some(({ type }) => type === 'item_done')) await pause(5)
  return {
    session,
    events,
    async frame(line) {
      await settled()
      session.hear(bytesOf(line).slice())
      if (++frames % 5 === 0) await turn()
      const out = play()
      if (isCut) cut()
      return out
    },
    said: () => sounded,
    close: () => session.close(),
  }
}

function add(item: Item, samples: Int16Array): void {
  const whole = new Int16Array(item.samples.length + samples.length)
  whole.set(item.samples)
  whole.set(samples, item.samples.length)
  item.samples = whole
}

export const isAudible = (frame: Int16Array): boolean =>
  Math.sqrt(frame.reduce((sum, sample) => sum + sample * sample, 0) / frame.length) > audible
