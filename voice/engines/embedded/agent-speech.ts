/**
 * Owns what the agent says in one call: one item at a time, its text with the first sound, then sound as the sentences get ready. When the caller
 * speaks, what has no sound yet is not said at all; what has sound is cut off by who plays it, and nothing new is said before word of that has come.
 * What was cut off by a false interruption goes on with the sentence that was cut.
 */
import { createItemSynthesis, type Cut, type ItemSynthesisDeps } from './item-synthesis.ts'

export type AgentSpeech = {
  /** Takes the place of what is being said, but for words that were added. `onSaid` when all sound of it is out, or it was cut off. */
  say(text: string, onSaid: () => void): void
  /** Takes the place of everything that is said or was to be said. */
  sayLast(text: string, onSaid: () => void): void
  /** Words beside the conversation: said after the line that is being said, or now; after `sayAdded` when `isLater`. */
  add(text: string, isLater: boolean): void
  /** Added words get their turn when nothing else is being said. */
  sayAdded(): void
  /** The caller speaks. `at` is ms on the caller's line, as in `tick`. True when the agent was speaking until now. */
  fallSilent(at: number): boolean
  /** The caller did not really speak. False when there is nothing to go on with. */
  goOn(): boolean
  /** The caller has answered: what was cut off is not gone on with. */
  forget(): void
  /** Something is being said or played. */
  speaking(): boolean
  tick(at: number): void
  /** What was said was cut off by who plays it; null: nothing of it was heard. True when the agent had not fallen silent before. */
  interrupted(heard: { readonly itemId: string; readonly playedMs: number } | null): boolean
  /** The caller has heard it. True when the line of the conversation is over by that, and nothing else is to be said. */
  played(itemId: string): boolean
  close(): void
}

/** Without word that it was cut off the agent speaks again after this, ms of the caller's line. */
const maxInterruption = 1000
const maxAdded = 16

/** `isAdded`: it is no line of the conversation, but words beside it. */
type Line = { readonly text: string; readonly isAdded: boolean; readonly onSaid: () => void }

/** From when the caller speaks over the agent until word comes of how much was heard; `next` is done after that. */
type Interruption = { readonly since: number; readonly next: 'nothing' | 'go on' | 'forget' | Line }

const nothing = (): void => undefined

export function createAgentSpeech(deps: ItemSynthesisDeps): AgentSpeech {
  const synthesis = createItemSynthesis(deps)
  let waiting: Line[] = []
  /** What is being said, or was said last. */
  let line: Line | null = null
  /** What was cut off, while the agent may go on with it. */
  let cut: Cut | null = null
  /** A line of the conversation has been played, and added words are said after it. */
  let isDue = false
  let interruption: Interruption | null = null

  const begin = (next: Line): void => {
    line = next
    cut = null
    if (!next.isAdded) isDue = false
    synthesis.say(next.text, next.onSaid)
  }
  const beginNext = (): boolean => {
    const next = waiting.shift()
    if (next !== undefined) begin(next)
    return next !== undefined
  }
  /** Says what was cut off, from the sentence that was cut. False when all of it was heard. */
  const goOn = (): boolean => {
    const text = cut?.rest() ?? ''
    cut = null
    if (text === '' || line === null) return false
    begin({ ...line, text, onSaid: nothing })
    return true
  }
  const stop = (): void => {
    cut = synthesis.stop() ?? cut
  }
  /** The interruption is over. True when something is said now. */
  const resume = (): boolean => {
    const next = interruption?.next ?? 'nothing'
    interruption = null
    if (next === 'nothing') return false
    if (next === 'go on') return goOn()
    if (next === 'forget') cut = null
    else begin(next)
    return next !== 'forget'
  }
  /** Of lines of the conversation the newest counts. */
  const queue = (next: Line): void => {
    if (!next.isAdded) waiting = waiting.filter((other) => other.isAdded)
    if (!next.isAdded || waiting.length < maxAdded) waiting.push(next)
  }
  const say = (text: string, onSaid: () => void): void => {
    const next: Line = { text, isAdded: false, onSaid }
    if (interruption !== null) interruption = { ...interruption, next }
    else if (line?.isAdded && synthesis.speaking()) queue(next)
    else begin(next)
  }
  const sayAdded = (): void => {
    if (!synthesis.speaking() && interruption === null) beginNext()
  }
  return {
    say,
    sayLast(text, onSaid) {
      waiting = []
      line = null
      say(text, onSaid)
    },
    add(text, isLater) {
      queue({ text, isAdded: true, onSaid: nothing })
      if (!isLater) sayAdded()
    },
    sayAdded,
    fallSilent(at) {
      const wasSpeaking = synthesis.speaking() && interruption === null
      if (synthesis.hasSound()) interruption ??= { since: at, next: 'nothing' }
      else stop()
      return wasSpeaking
    },
    goOn() {
      if (interruption === null) return goOn()
      if (interruption.next === 'nothing') interruption = { ...interruption, next: 'go on' }
      return true
    },
    forget() {
      if (interruption === null) cut = null
      // A line that is to be said then stays.
      else if (typeof interruption.next === 'string') interruption = { ...interruption, next: 'forget' }
    },
    speaking: () => synthesis.speaking(),
    tick(at) {
      if (interruption === null || at - interruption.since < maxInterruption) return
      stop()
      resume()
    },
    interrupted(heard) {
      const isUnasked = interruption === null && synthesis.speaking()
      stop()
      cut?.heard(heard)
      resume()
      return isUnasked
    },
    played(itemId) {
      if (!synthesis.played(itemId)) return false
      cut = null
      isDue ||= line?.isAdded === false
      if (resume() || beginNext() || !isDue) return false
      isDue = false
      return true
    },
    close() {
      waiting = []
      line = null
      interruption = null
      synthesis.stop()
    },
  }
}
