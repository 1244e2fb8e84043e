/**
 * Owns what of the agent's sound the caller has heard: which sentence lies where in an item, so that a talk that was broken off is remembered as it was
 * heard and can be gone on with. Pure: time is ms on the caller's line. What was not said to be cut is taken to be played as it came.
 */
import { frameMs } from '../../../model/frame.ts'

/** Takes what of an item the caller has heard, or will hear. */
type Tell = (heard: string) => void

export type SpokenItem = {
  /** A new sentence: what sounds from here on is its. */
  sentence(text: string): void
  /** The sentence has had all its sound. */
  complete(): void
  sound(ms: number, at: number): void
  /** All sentences that have sounded. */
  text(): string
}

export type Spoken = {
  item(itemId: string, tell: Tell): SpokenItem
  /** Something is being played, as far as can be told from here. */
  isPlaying(at: number): boolean
  /** The last sentence that has begun to sound. */
  lastSentence(): string
  /**
   * The line was emptied: of `itemId` so much was heard, nothing of what came later; null: nothing of what was waiting. Returns the sentences with
   * all their sound that were not heard to their end, in order; null for an item that is not on the line.
   */
  cut(heard: { readonly itemId: string; readonly playedMs: number } | null, at: number): string[] | null
  /** What comes of a cut: `isFalse`, the agent goes on with the sentence that was cut and says it whole; or the cut stays. */
  settle(isFalse: boolean): void
}

type Sentence = { readonly text: string; ms: number; isComplete: boolean }
type Item = {
  readonly itemId: string
  readonly tell: Tell
  sentences: Sentence[]
  endsAt: number
  whole: string
}

const maxItems = 32
/** How long a sentence is of which not all sound has come. */
const msPerLetter = 60

export function createSpoken(): Spoken {
  let items: Item[] = []
  let cutItems: Item[] = []
  let freeAt = 0

  return {
    item(itemId, tell) {
      const item: Item = { itemId, tell, sentences: [], endsAt: 0, whole: '' }
      items = [...items, item].slice(-maxItems)
      return {
        sentence(text) {
          item.sentences.push({ text, ms: 0, isComplete: false })
          tell(textOf(item.sentences))
        },
        complete() {
          const last = item.sentences.at(-1)
          if (last) last.isComplete = true
        },
        sound(ms, at) {
          const last = item.sentences.at(-1)
          if (last) last.ms += ms
          freeAt = Math.max(freeAt, at) + ms
          item.endsAt = freeAt
        },
        text: () => textOf(item.sentences),
      }
    },
    isPlaying: (at) => freeAt > at,
    lastSentence: () => items.at(-1)?.sentences.at(-1)?.text ?? '',
    cut(heard, at) {
      const first = heard === null ? firstUnplayed(items, at) : items.findIndex(({ itemId }) => itemId === heard.itemId)
      if (first === -1 && heard !== null) return null
      freeAt = Math.min(freeAt, at)
      cutItems = first === -1 ? [] : items.slice(first)
      items = []
      return cutItems.flatMap((item) => cutItem(item, heard?.itemId === item.itemId ? heard.playedMs : 0))
    },
    settle(isFalse) {
      const last = items.at(-1)
      // Nobody said that it was cut: all sound that came has been heard.
      if (isFalse && cutItems.length === 0 && last)
        last.tell(textOf(last.sentences.filter(({ isComplete }) => isComplete)))
      for (const { tell, whole } of cutItems.splice(0)) if (isFalse) tell(whole.trim())
    },
  }
}

const firstUnplayed = (items: readonly Item[], at: number): number => items.findIndex(({ endsAt }) => endsAt > at)

const textOf = (sentences: readonly { readonly text: string }[]): string =>
  sentences
    .map(({ text }) => text)
    .join('')
    .trim()

/** Tells what was heard of it. */
function cutItem(item: Item, playedMs: number): string[] {
  const unheard: string[] = []
  let left = playedMs
  let heard = ''
  item.whole = ''
  for (const { text, ms, isComplete } of item.sentences) {
    const whole = isComplete ? ms : Math.max(ms, text.length * msPerLetter)
    // What is played is counted in whole frames.
    const isHeard = isComplete && left > 0 && left > ms - frameMs
    if (isHeard) item.whole += text
    else if (isComplete) unheard.push(text)
    heard += isHeard ? text : heardPart(text, left / Math.max(1, whole))
    left = Math.max(0, left - ms)
  }
  item.tell(heard.trim())
  return unheard
}

/** The words that fit into this part of the sound, by equal time per letter; letters where words are not parted. */
export function heardPart(text: string, share: number): string {
  if (share >= 1) return text
  const letters = Math.floor(text.length * Math.max(0, share))
  if (text[letters] === ' ') return text.slice(0, letters)
  if (text.trimEnd().includes(' ')) return text.slice(0, Math.max(0, text.lastIndexOf(' ', letters)))
  const part = text.slice(0, letters)
  return part.isWellFormed() ? part : part.slice(0, -1)
}
