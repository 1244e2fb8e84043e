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
  add(sentence: string): void
  /** All its words have come. */
  end(calls: readonly ModelCall[]): void
  /** Nothing of it sounds any more, for now. Idempotent. */
  hold(): void
  isHeld(): boolean
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
  let calls: readonly ModelCall[] | null = null
  let called = false
  let waiting: string[] = []
  let state: 'going' | 'held' | 'over' = 'going'

  const makeCalls = (): void => {
    if (calls === null || called || run.isSilent()) return
    called = true
    if (calls.length > 0) deps.onCalls(calls)
  }
  const finish = (): void => {
    makeCalls()
    if (state !== 'going') return
    state = 'over'
    deps.emit({ type: 'reply_done' })
    deps.onOver()
  }
  const events = { onSound: makeCalls, onDone: finish }
  const endIfOver = (): void => {
    if (calls === null) return
    run.end()
    makeCalls()
  }
  let run = createRun(deps, deps.text, events)

  return {
    add(sentence) {
      if (state === 'held') waiting.push(sentence)
      if (state === 'going') run.speak(sentence)
    },
    end(made) {
      calls = made
      if (state === 'going') endIfOver()
    },
    hold() {
      if (state !== 'going') return
      state = 'held'
      waiting = [...run.silence(), ...waiting]
    },
    isHeld: () => state === 'held',
    resume(unheard) {
      if (state !== 'held') return
      state = 'going'
      run = createRun(deps, null, events)
      for (const sentence of [...unheard, ...waiting.splice(0)]) run.speak(sentence)
      endIfOver()
    },
    drop() {
      const wasGoing = state === 'going'
      state = 'over'
      deps.words.abort()
      if (wasGoing) run.silence()
    },
    hasSound: () => state === 'going' && run.hasSound(),
  }
}

type Run = {
  speak(sentence: string): void
  /** No more sentences come. */
  end(): void
  /** Cut off here. Returns the sentences that have not had all their sound. */
  silence(): string[]
  hasSound(): boolean
  /** It will sound, and does not yet. */
  isSilent(): boolean
}

/** From where a reply begins, or goes on, to where it is silenced or done: one item, if anything sounds. */
function createRun(deps: Deps, text: string | null, events: { onSound(): void; onDone(): void }): Run {
  const { emit } = deps
  let saying: { readonly itemId: string; readonly voice: ItemVoice } | null = null
  let hasSound = false

  const close = (): void => {
    const said = saying
    saying = null
    if (said?.voice.hasSound()) emit({ type: 'item_done', itemId: said.itemId })
  }
  const open = (): ItemVoice => {
    const { itemId, spoken } = deps.openItem()
    const voice = createItemVoice({
      ...deps,
      spoken,
      onText: (soFar) => emit({ type: 'agent_text', itemId, text: text ?? soFar }),
      onSound(payload) {
        hasSound = true
        emit({ type: 'audio', itemId, payload })
        events.onSound()
      },
      onDone() {
        close()
        events.onDone()
      },
    })
    saying = { itemId, voice }
    return voice
  }
  emit({ type: 'reply_started', says: deps.text !== null })
  return {
    speak: (sentence) => (saying?.voice ?? open()).add(sentence),
    end() {
      if (saying) saying.voice.end()
      else events.onDone()
    },
    silence() {
      const unsaid = saying?.voice.stop() ?? []
      close()
      emit({ type: 'reply_done' })
      return unsaid
    },
    hasSound: () => hasSound,
    isSilent: () => saying !== null && !hasSound,
  }
}
