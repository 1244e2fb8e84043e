/** Owns the sound of one item: its sentences are spoken by requests of their own, two ahead of the one that sounds, and are heard in their order. */
import type { SpokenItem } from './spoken.ts'
import type { Speak } from './speech.ts'

export type ItemVoice = {
  add(sentence: string): void
  /** No more sentences come. */
  end(): void
  hasSound(): boolean
  /** No sound comes after this. Returns the sentences that have not had all of theirs. Idempotent. */
  stop(): string[]
}

type Deps = {
  readonly speak: Speak
  readonly spoken: SpokenItem
  readonly bytesPerMs: number
  /** Ms on the caller's line. */
  at(): number
  onText(text: string): void
  onSound(payload: Uint8Array): void
  /** All sentences have had all their sound, once. */
  onDone(): void
  onFailed(error: unknown): void
}

/** The one that sounds, and two ahead. */
const atOnce = 3

export function createItemVoice(deps: Deps): ItemVoice {
  const { speak, spoken, bytesPerMs } = deps
  const asking = new AbortController()
  /** The first one sounds. */
  const sentences: Sentence[] = []
  let hasSound = false
  let ended = false
  let stopped = false

  const sound = (payload: Uint8Array): void => {
    if (stopped) return
    hasSound = true
    spoken.sound(payload.length / bytesPerMs, deps.at())
    deps.onSound(payload)
  }
  const begin = (text: string): void => {
    if (stopped) return
    spoken.sentence(text)
    deps.onText(spoken.text())
  }
  const fail = (error: unknown): void => {
    if (!stopped) deps.onFailed(error)
  }
  const goOn = (): void => {
    for (;;) {
      for (const sentence of sentences.slice(0, atOnce)) sentence.ask()
      sentences[0]?.sound()
      if (stopped || !sentences[0]?.isOver()) break
      spoken.complete()
      sentences.shift()
    }
    if (stopped || !ended || sentences.length > 0) return
    stopped = true
    deps.onDone()
  }
  return {
    add(text) {
      if (stopped || ended) return
      const say = (onSound: (payload: Uint8Array) => void) => speak(text, asking.signal, onSound)
      sentences.push(createSentence({ text, say, onBegun: begin, onSound: sound, onOver: goOn, onFailed: fail }))
      goOn()
    },
    end() {
      ended = true
      goOn()
    },
    hasSound: () => hasSound,
    stop() {
      if (stopped) return []
      stopped = true
      asking.abort()
      return sentences.map(({ text }) => text)
    },
  }
}

type Sentence = {
  readonly text: string
  /** It is made, for when its turn comes. Idempotent. */
  ask(): void
  /** Its turn has come: what came early sounds, and what comes from now on. Idempotent. */
  sound(): void
  /** All its sound has come. */
  isOver(): boolean
}

type SentenceDeps = {
  readonly text: string
  say(onSound: (payload: Uint8Array) => void): Promise<void>
  /** Before its first sound. */
  onBegun(text: string): void
  onSound(payload: Uint8Array): void
  onOver(): void
  onFailed(error: unknown): void
}

function createSentence({ text, say, onBegun, onSound, onOver, onFailed }: SentenceDeps): Sentence {
  const early: Uint8Array[] = []
  let state: 'waiting' | 'asked' | 'over' = 'waiting'
  let hasTurn = false
  let begun = false

  const come = (payload: Uint8Array): void => {
    if (!hasTurn) return void early.push(payload)
    if (!begun) onBegun(text)
    begun = true
    onSound(payload)
  }
  const saidAll = async (): Promise<void> => {
    await say(come)
    state = 'over'
    onOver()
  }
  return {
    text,
    ask() {
      if (state !== 'waiting') return
      state = 'asked'
      saidAll().catch(onFailed)
    },
    sound() {
      hasTurn = true
      early.splice(0).forEach(come)
    },
    isOver: () => state === 'over',
  }
}
