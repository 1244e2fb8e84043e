/** Owns what the agent says in one call: one item at a time, text first, then sound as the sentences get ready. */
import { bytesOf } from '../../../model/frame.ts'
import type { EngineEvent } from '../../../model/voice-engine.ts'
import type { FliteVoice } from './flite.ts'
import { sentencesOf } from './sentences.ts'
import type { Speaker } from './speaker.ts'

export type AgentMouth = {
  /** Cuts off what is being said. `onSaid` when all sound of it is out, or it was cut off. */
  say(text: string, onSaid: () => void): void
  /** No more sound of the item that is being said. */
  stop(): void
  /** The item that is being said or played; null when it has been heard or cut off. */
  current(): { readonly itemId: string; readonly hasSound: boolean } | null
  /** The caller has heard it. False for an item of the past. */
  played(itemId: string): boolean
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

export function createAgentMouth({ speaker, voice, itemPrefix, emit, onFailed }: Deps): AgentMouth {
  let item: Item | null = null
  let items = 0

  const complete = (said: Item): void => {
    if (said.done) return
    said.done = true
    emit({ type: 'item_done', itemId: said.itemId })
    said.onSaid()
  }
  const stop = (): void => {
    const cut = item
    item = null
    if (cut) complete(cut)
  }
  const speakAll = async (said: Item, text: string): Promise<void> => {
    for (const sentence of sentencesOf(text)) {
      const samples = await speaker.sentence(sentence, voice)
      if (item !== said) return
      said.hasSound = true
      const bytes = bytesOf(samples)
      for (let at = 0; at < bytes.length; at += maxPayload)
        emit({ type: 'audio', itemId: said.itemId, payload: bytes.subarray(at, at + maxPayload) })
    }
    complete(said)
  }

  return {
    say(text, onSaid) {
      stop()
      const said: Item = { itemId: `${itemPrefix}${++items}`, onSaid, hasSound: false, done: false }
      item = said
      emit({ type: 'agent_text', itemId: said.itemId, text })
      speakAll(said, text).catch((error: unknown) => {
        if (item === said) onFailed(error)
      })
    },
    stop,
    current: () => item,
    played(itemId) {
      if (item?.itemId !== itemId) return false
      item = null
      return true
    },
  }
}
