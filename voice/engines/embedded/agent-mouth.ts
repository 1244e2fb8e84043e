/**
 * Owns what the agent says in one call: one item at a time, its text with the first sound, then sound as the sentences get ready. When the caller speaks, what has
 * no sound yet is not said at all; what has is cut off by who plays it, and nothing new is said before word of that has come.
 */
import { bytesOf } from '../../../model/frame.ts'
import type { EngineEvent } from '../../../model/voice-engine.ts'
import type { FliteVoice } from './flite.ts'
import { sentencesOf } from './sentences.ts'
import type { Speaker } from './speaker.ts'

export type AgentMouth = {
  /** Takes the place of what is being said. `onSaid` when all sound of it is out, or it was cut off. */
  say(text: string, onSaid: () => void): void
  /** The caller speaks. `at` is ms on the caller's line, as in `tick`. */
  fallSilent(at: number): void
  /** Something is being said or played. */
  speaking(): boolean
  tick(at: number): void
  /** Was cut off by who plays it. True when nobody had asked for that. */
  interrupted(): boolean
  /** The caller has heard it. False for an item of the past, and when the next one has begun by that. */
  played(itemId: string): boolean
  close(): void
}

type Deps = {
  readonly speaker: Speaker
  readonly voice: FliteVoice
  /** Items of a session that goes on have other names than those of the one before. */
  readonly itemPrefix: string
  emit(event: EngineEvent): void
  onFailed(error: unknown): void
}

type Item = { readonly itemId: string; readonly onSaid: () => void; hasSound: boolean; done: boolean }

/** 200 ms of 16-bit sound at 16 kHz at a time. */
const maxPayload = 6400
const frameSamples = 320
/** Without word that it was cut off the agent speaks again after this, ms of the caller's line. */
const maxYielding = 1000

export function createAgentMouth(deps: Deps): AgentMouth {
  const lips = createLips(deps)
  let yielding: { readonly since: number; next: (() => void) | null } | null = null

  const speakAgain = (): boolean => {
    const next = yielding?.next
    yielding = null
    next?.()
    return next != null
  }
  return {
    say(text, onSaid) {
      if (yielding) yielding.next = () => lips.say(text, onSaid)
      else lips.say(text, onSaid)
    },
    fallSilent(at) {
      if (lips.current()?.hasSound) yielding ??= { since: at, next: null }
      else lips.stop()
    },
    speaking: () => lips.current() !== null,
    tick(at) {
      if (!yielding || at - yielding.since < maxYielding) return
      lips.stop()
      speakAgain()
    },
    interrupted() {
      const unasked = yielding === null && lips.current() !== null
      lips.stop()
      speakAgain()
      return unasked
    },
    played: (itemId) => lips.played(itemId) && !speakAgain(),
    close: () => lips.stop(),
  }
}

function createLips({ speaker, voice, itemPrefix, emit, onFailed }: Deps) {
  let item: Item | null = null
  let items = 0

  const complete = (said: Item): void => {
    if (said.done) return
    said.done = true
    if (said.hasSound) emit({ type: 'item_done', itemId: said.itemId })
    said.onSaid()
  }
  const stop = (): void => {
    const cut = item
    item = null
    if (cut) complete(cut)
  }
  const sound = (said: Item, text: string, samples: Int16Array): void => {
    const { itemId } = said
    if (!said.hasSound) emit({ type: 'agent_text', itemId, text })
    said.hasSound = true
    const bytes = bytesOf(samples)
    for (let at = 0; at < bytes.length; at += maxPayload)
      emit({ type: 'audio', itemId, payload: bytes.subarray(at, at + maxPayload) })
  }
  const speakAll = async (said: Item, text: string): Promise<void> => {
    const sentences = sentencesOf(text)
    for (const sentence of sentences) {
      const samples = await speaker.sentence(sentence, voice)
      if (item !== said) return
      sound(said, text, samples)
    }
    // What cannot be pronounced is a moment of silence: the script goes on when that has been played.
    if (sentences.length === 0) sound(said, text, new Int16Array(frameSamples))
    complete(said)
  }
  return {
    stop,
    say(text: string, onSaid: () => void): void {
      stop()
      const said: Item = { itemId: `${itemPrefix}${++items}`, onSaid, hasSound: false, done: false }
      item = said
      speakAll(said, text).catch((error: unknown) => {
        if (item === said) onFailed(error)
      })
    },
    current: () => item,
    played(itemId: string): boolean {
      if (item?.itemId !== itemId) return false
      item = null
      return true
    },
  }
}
