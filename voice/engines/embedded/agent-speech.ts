/**
 * Owns what the agent says in one call: one item at a time, its text with the first sound, then sound as the sentences get ready. When the caller speaks, what has
 * no sound yet is not said at all; what has is cut off by who plays it, and nothing new is said before word of that has come. What was cut off
 * for nothing goes on with the sentence that was cut.
 */
import { createItemSynthesis, type Cut, type ItemSynthesis, type ItemSynthesisDeps } from './item-synthesis.ts'

export type AgentSpeech = {
  /** Takes the place of what is being said, but for words that were added. `onSaid` when all sound of it is out, or it was cut off. */
  say(text: string, onSaid: () => void): void
  /** Takes the place of everything that is said or was to be said. */
  sayLast(text: string, onSaid: () => void): void
  /** Words beside the conversation: said after the line that is being said, or now; after `sayAdded` when `isLater`. */
  add(text: string, isLater: boolean): void
  /** Added words get their turn when nothing else is being said. */
  sayAdded(): void
  /** The caller speaks. `at` is ms on the caller's line, as in `tick`. True when it was speaking until now. */
  fallSilent(at: number): boolean
  /** The caller did not really speak. False when there is nothing to go on with. */
  goOn(): boolean
  /** What was cut off is not gone on with: the caller has answered. */
  forget(): void
  /** Something is being said or played. */
  speaking(): boolean
  tick(at: number): void
  /** Was cut off by who plays it; null: nothing of it was heard. True when nobody had asked for that. */
  interrupted(heard: { readonly itemId: string; readonly playedMs: number } | null): boolean
  /** The caller has heard it. True when the line of the conversation is over by that, and nothing else is to be said. */
  played(itemId: string): boolean
  close(): void
}

/** Without word that it was cut off the agent speaks again after this, ms of the caller's line. */
const maxYielding = 1000
const maxAdded = 16

type Line = { readonly text: string; readonly isAdded: boolean; readonly onSaid: () => void }
const nothing = (): void => undefined

export function createAgentSpeech(deps: ItemSynthesisDeps): AgentSpeech {
  const synthesis = createItemSynthesis(deps)
  const lines = createLines(synthesis)
  const yielding = createYielding()
  const sayAdded = (): void => {
    if (!synthesis.speaking() && !yielding.isOn()) lines.next()
  }
  const say = (text: string, onSaid: () => void): void => {
    const line = { text, isAdded: false, onSaid }
    if (yielding.isOn()) yielding.thenSay(() => lines.begin(line))
    else if (lines.isAdded()) lines.queue(line)
    else lines.begin(line)
  }
  return {
    say,
    sayLast(text, onSaid) {
      lines.clear()
      say(text, onSaid)
    },
    add(text, isLater) {
      lines.queue({ text, isAdded: true, onSaid: nothing })
      if (!isLater) sayAdded()
    },
    sayAdded,
    fallSilent(at) {
      const wasSpeaking = synthesis.speaking() && !yielding.isOn()
      if (synthesis.hasSound()) yielding.begin(at)
      else lines.stop()
      return wasSpeaking
    },
    goOn: () => (yielding.isOn() ? yielding.elseSay(lines.rest) : lines.rest()),
    forget() {
      if (yielding.isOn()) yielding.forget(lines.rest, lines.forget)
      else lines.forget()
    },
    speaking: () => synthesis.speaking(),
    tick(at) {
      if (!yielding.isTooLong(at)) return
      lines.stop()
      yielding.end()
    },
    interrupted(heard) {
      const isUnasked = !yielding.isOn() && synthesis.speaking()
      lines.stop()
      lines.heard(heard)
      yielding.end()
      return isUnasked
    },
    played(itemId) {
      if (!synthesis.played(itemId)) return false
      lines.played()
      return !yielding.end() && !lines.next() && lines.isOver()
    },
    close() {
      lines.clear()
      yielding.drop()
      synthesis.stop()
    },
  }
}

/** What is said in which order. What begins something to say is true when there was something. */
function createLines(synthesis: ItemSynthesis) {
  let waiting: Line[] = []
  /** What is being said or was cut off last. */
  let line: Line | null = null
  let cut: Cut | null = null
  /** The line of the conversation has been played, and words that were added are said after it. */
  let isDue = false

  const begin = (next: Line): boolean => {
    line = next
    cut = null
    if (!next.isAdded) isDue = false
    synthesis.say(next.text, next.onSaid)
    return true
  }
  return {
    begin,
    /** Words that were added are being said. */
    isAdded: (): boolean => (line?.isAdded ?? false) && synthesis.speaking(),
    /** Of lines of the conversation the newest counts. */
    queue(next: Line): void {
      if (!next.isAdded) waiting = waiting.filter((other) => other.isAdded)
      if (!next.isAdded || waiting.length < maxAdded) waiting.push(next)
    },
    next(): boolean {
      const next = waiting.shift()
      return next !== undefined && begin(next)
    },
    /** What was cut off, from where it was. */
    rest(): boolean {
      const text = cut?.rest() ?? ''
      cut = null
      return text !== '' && line !== null && begin({ ...line, text, onSaid: nothing })
    },
    forget(): boolean {
      cut = null
      return false
    },
    stop(): void {
      cut = synthesis.stop() ?? cut
    },
    heard: (part: Parameters<Cut['heard']>[0]): void => cut?.heard(part),
    played(): void {
      cut = null
      isDue ||= line?.isAdded === false
    },
    /** True once for each line of the conversation. */
    isOver(): boolean {
      const wasDue = isDue
      isDue = false
      return wasDue
    },
    clear(): void {
      waiting = []
      line = null
    },
  }
}

/** From the moment the caller speaks until word comes of how much was heard; what is to be said then waits. */
function createYielding() {
  let since: number | null = null
  let next: (() => boolean) | null = null
  const drop = (): void => {
    since = null
    next = null
  }
  return {
    begin(at: number): void {
      since ??= at
    },
    isOn: () => since !== null,
    isTooLong: (at: number): boolean => since !== null && at - since >= maxYielding,
    thenSay(say: () => boolean): void {
      next = say
    },
    elseSay(say: () => boolean): boolean {
      next ??= say
      return true
    },
    /** What is to be said then in place of the rest of what was cut off stays. */
    forget(rest: () => boolean, forgetRest: () => boolean): void {
      if (next === null || next === rest) next = forgetRest
    },
    /** True when something is said now. */
    end(): boolean {
      const say = next
      drop()
      return say?.() ?? false
    },
    drop,
  }
}
