/** Owns the sound of what the agent says: a text becomes an item, sentence by sentence, until it is all out or stopped. */
import { bytesOf } from '../../../model/frame.ts'
import type { EngineEvent } from '../../../model/voice-engine.ts'
import type { FliteVoice } from './flite.ts'
import { sentencesOf } from '../../english/sentences.ts'
import type { Synthesiser } from './synthesiser.ts'

export type ItemSynthesisDeps = {
  readonly synthesiser: Synthesiser
  readonly voice: FliteVoice
  /** Items of another session of the call have other names. */
  readonly itemPrefix: string
  emit(event: EngineEvent): void
  onFailed(error: unknown): void
}

/** What was stopped before all of it was heard. */
export type Cut = {
  /** Null, or word of another item: nothing of this one was heard. */
  heard(part: { readonly itemId: string; readonly playedMs: number } | null): void
  /** From the sentence that was cut on; empty when all of it was heard. */
  rest(): string
}

export type ItemSynthesis = {
  say(text: string, onSaid: () => void): void
  /** What it was saying; null when it was silent. */
  stop(): Cut | null
  speaking(): boolean
  /** Some of what it says has been given out. */
  hasSound(): boolean
  /** False for an item of the past. */
  played(itemId: string): boolean
}

type Item = {
  readonly itemId: string
  readonly sentences: readonly string[]
  /** Where each sentence that has sound ends, ms. */
  readonly ends: number[]
  readonly onSaid: () => void
  hasSound: boolean
  done: boolean
}

/** 200 ms of 16-bit sound at 16 kHz at a time. */
const maxPayload = 6400
const frameSamples = 320
const samplesPerMs = 16
/** A sentence of which only so much is missing has been heard, ms. */
const negligible = 200

export function createItemSynthesis({
  synthesiser,
  voice,
  itemPrefix,
  emit,
  onFailed,
}: ItemSynthesisDeps): ItemSynthesis {
  let item: Item | null = null
  let items = 0

  const complete = (said: Item): void => {
    if (said.done) return
    said.done = true
    if (said.hasSound) emit({ type: 'item_done', itemId: said.itemId })
    said.onSaid()
  }
  const stop = (): Cut | null => {
    const stopped = item
    item = null
    if (stopped === null) return null
    complete(stopped)
    return cutOf(stopped)
  }
  const sound = (said: Item, text: string, samples: Int16Array): void => {
    const { itemId } = said
    if (!said.hasSound) emit({ type: 'agent_text', itemId, text })
    said.hasSound = true
    said.ends.push((said.ends.at(-1) ?? 0) + samples.length / samplesPerMs)
    const bytes = bytesOf(samples)
    for (let at = 0; at < bytes.length; at += maxPayload)
      emit({ type: 'audio', itemId, payload: bytes.subarray(at, at + maxPayload) })
  }
  const speakAll = async (said: Item, text: string): Promise<void> => {
    for (const sentence of said.sentences) {
      const samples = await synthesiser.sentence(sentence, voice)
      if (item !== said) return
      sound(said, text, samples)
    }
    // What cannot be pronounced is a moment of silence: the script goes on when that has been played.
    if (said.sentences.length === 0) sound(said, text, new Int16Array(frameSamples))
    complete(said)
  }
  return {
    stop,
    say(text, onSaid) {
      stop()
      const itemId = `${itemPrefix}${++items}`
      const said: Item = { itemId, sentences: sentencesOf(text), ends: [], onSaid, hasSound: false, done: false }
      item = said
      speakAll(said, text).catch((error: unknown) => {
        if (item === said) onFailed(error)
      })
    },
    speaking: () => item !== null,
    hasSound: () => item?.hasSound ?? false,
    played(itemId) {
      if (item?.itemId !== itemId) return false
      item = null
      return true
    },
  }
}

function cutOf({ itemId, sentences, ends }: Item): Cut {
  let first = 0
  return {
    heard(part) {
      const playedMs = part?.itemId === itemId ? part.playedMs : 0
      first = ends.filter((end) => end - negligible <= playedMs).length
    },
    rest: () => sentences.slice(first).join(' '),
  }
}
