/**
 * Owns one reply of the agent from its first word to its last sound: sentences come, are spoken, and tools are called when all words are there. While
 * the caller speaks it is held, and then gone on with or dropped.
 */
import type { ModelCall } from './chat-reply.ts'
import { createItemVoice, type ItemVoice } from './item-voice.ts'
import type { SpokenItem } from './spoken.ts'
import type { Speak } from './speech.ts'
import type { WireEvent } from '../hosted/wire.ts'

export type Reply = {
  begin(): void
  add(sentence: string): void
  /** All its words have come. */
  end(calls: readonly ModelCall[]): void
  /** Nothing of it sounds any more, for now. Idempotent. */
  hold(): void
  /** It goes on, with what was cut off before it: sentences that were not heard. */
  resume(unheard: readonly string[]): void
  /** It is over, whatever is missing. Idempotent. */
  drop(): void
  /** Something of it is on the line since it began or went on. */
  hasSound(): boolean
}

type Deps = {
  /** Known from the beginning when it is said word for word. */
  readonly text: string | null
  /** Its words are no longer wanted. */
  readonly words: AbortController
  readonly speak: Speak
  readonly bytesPerMs: number
  at(): number
  openItem(): { readonly itemId: string; readonly spoken: SpokenItem }
  emit(event: WireEvent): void
  onCalls(calls: readonly ModelCall[]): void
  /** By itself; not after `drop`. */
  onOver(): void
  onFailed(error: unknown): void
}

export function createReply(deps: Deps): Reply {
  const { emit } = deps
  let state: 'going' | 'held' | 'over' = 'going'
  /** All of it, where that is known before it is said. */
  let { text } = deps
  /** Null: its words have not all come. */
  let calls: readonly ModelCall[] | null = null
  let areCalled = false
  /** Sentences that have not been said, while it is held. */
  let waiting: string[] = []
  /** Since it began or went on: one item, if anything sounds. */
  let saying: { readonly itemId: string; readonly voice: ItemVoice } | null = null
  let hasSound = false

  const begin = (): void => {
    hasSound = false
    emit({ type: 'reply_started', says: deps.text !== null })
  }
  const openVoice = (): ItemVoice => {
    const { itemId, spoken } = deps.openItem()
    const voice = createItemVoice({
      ...deps,
      spoken,
      onText: (soFar) => emit({ type: 'agent_text', itemId, text: text ?? soFar }),
      onSound(payload) {
        hasSound = true
        emit({ type: 'audio', itemId, payload })
        makeCalls()
      },
      onDone() {
        closeVoice()
        finish()
      },
    })
    saying = { itemId, voice }
    return voice
  }
  const closeVoice = (): void => {
    const said = saying
    saying = null
    if (said?.voice.hasSound()) emit({ type: 'item_done', itemId: said.itemId })
  }
  const speak = (sentence: string): void => (saying?.voice ?? openVoice()).add(sentence)
  /** Returns the sentences that have not had all their sound. */
  const silence = (): string[] => {
    const unsaid = saying?.voice.stop() ?? []
    closeVoice()
    emit({ type: 'reply_done' })
    return unsaid
  }
  /** Tools are called when all words are there, and not before what is said with them sounds. */
  const makeCalls = (): void => {
    const isSilent = saying !== null && !hasSound
    if (calls === null || areCalled || isSilent) return
    areCalled = true
    if (calls.length > 0) deps.onCalls(calls)
  }
  const finish = (): void => {
    makeCalls()
    if (state !== 'going') return
    state = 'over'
    emit({ type: 'reply_done' })
    deps.onOver()
  }
  const endIfWhole = (): void => {
    if (calls === null) return
    if (saying) saying.voice.end()
    else finish()
    makeCalls()
  }

  return {
    begin,
    add(sentence) {
      if (state === 'held') waiting.push(sentence)
      if (state === 'going') speak(sentence)
    },
    end(made) {
      calls = made
      if (state === 'going') endIfWhole()
    },
    hold() {
      if (state !== 'going') return
      state = 'held'
      waiting = [...silence(), ...waiting]
    },
    resume(unheard) {
      if (state !== 'held') return
      state = 'going'
      text = null
      begin()
      for (const sentence of [...unheard, ...waiting.splice(0)]) speak(sentence)
      endIfWhole()
    },
    drop() {
      const wasGoing = state === 'going'
      state = 'over'
      deps.words.abort()
      if (wasGoing) silence()
    },
    hasSound: () => state === 'going' && hasSound,
  }
}
